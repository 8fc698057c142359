"""`headgate collect`: follows the counters of a running cluster until SIGTERM or Ctrl-C."""

import argparse
import sys
from collections import Counter
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Gauge
from prometheus_client import Counter as CounterSeries

from headgate.cluster.collect import Collector, Round
from headgate.cluster.running import clock, cluster_of, own_name, stopped_by_signals, time_of_day
from headgate.cluster.schemas import OF_COLLECTOR
from headgate.conf import MetricsSettings
from headgate.conf.cluster import load_cluster
from headgate.core.clusters.demand import SECOND_US
from headgate.errors import TableError
from headgate.metrics.endpoint import listening
from headgate.store_errors import said
from headgate.stores import BRIEF, check_reachable
from headgate.tables.delta import Tables

_TOLD_EVERY_US = 60 * SECOND_US
_GIVEN_UP_US = 600 * SECOND_US
_EXIT_NOT_WRITTEN = 1
"""Nothing was wrong with the options: another start may do."""


def collect(arguments: argparse.Namespace, tell: Callable[[str], None]) -> int:
    """Collect until a signal comes; a round that has begun is finished. Raises HeadgateError where it cannot begin.

    If tables cannot be written for _GIVEN_UP_US, it ends with _EXIT_NOT_WRITTEN.
    """
    conf = load_cluster(arguments.cluster)
    check_reachable(arguments.output, "--output")
    series = CollectSeries()
    with stopped_by_signals() as stop, listening(MetricsSettings(port=arguments.metrics_port), series.registry):
        now_us = clock()
        tables = Tables(arguments.output, OF_COLLECTOR, conf.settings.kept_hours, BRIEF)
        collector = Collector(cluster_of(conf), tables, own_name(), now_us)
        tell(f"cluster {collector.cluster_name}: every {conf.settings.period_s} s into {arguments.output}/counters")
        progress, outage, due_us = Progress(tell), Outage(tell), now_us()
        while not stop.is_set():
            try:
                this = collector.look()
            except TableError as error:
                if not outage.lasts(error, now_us()):
                    sys.stderr.write(f"headgate: {error}\n")
                    return _EXIT_NOT_WRITTEN
            else:
                outage.ends(now_us())
                progress.take(this, now_us())
                series.take(this)
            due_us = max(due_us + conf.settings.period_s * SECOND_US, now_us())
            stop.wait((due_us - now_us()) / SECOND_US)
    tell("stopped; the next start goes on from here")
    return 0


class Outage:
    """A time in which rounds cannot be written: a line when it begins, and one when it is over."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._since_us: int | None = None

    def lasts(self, error: TableError, now_us: int) -> bool:
        """Take in that a round was not written; False once that is so for _GIVEN_UP_US."""
        if self._since_us is None:
            self._since_us = now_us
            self._tell(
                f"{time_of_day(now_us)} counters cannot be written, which is tried again with each look for "
                f"{_GIVEN_UP_US // SECOND_US // 60} minutes: {said(error.__cause__ or error)}"
            )
        return now_us - self._since_us < _GIVEN_UP_US

    def ends(self, now_us: int) -> None:
        """Take in that a round was written."""
        if self._since_us is not None:
            lasted_s = (now_us - self._since_us) // SECOND_US
            self._tell(
                f"{time_of_day(now_us)} counters are written again after {lasted_s} s; what came meanwhile is in this "
                "look, except from before a broker restarted or a topic moved"
            )
        self._since_us = None


class Progress:
    """A line at the first round and then each minute, and one whenever a broker ceases to answer, or does again."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._silent: set[str] = set()
        self._since_us: int | None = None
        self._rounds, self._took_ms = 0, 0
        self._came: Counter[str] = Counter()

    def take(self, this: Round, now_us: int) -> None:
        """Tell what there is to tell after a round."""
        for broker, told in this.brokers.items():
            if told.error and broker not in self._silent:
                self._tell(f"{time_of_day(now_us)} broker {broker} does not answer: {told.error}")
                self._silent.add(broker)
            elif told.error is None and broker in self._silent:
                self._tell(f"{time_of_day(now_us)} broker {broker} answers again")
                self._silent.discard(broker)
        self._silent &= this.brokers.keys()
        self._rounds += 1
        self._took_ms = max((self._took_ms, *(told.took_ms for told in this.brokers.values())))
        for one in this.increases:
            self._came[one.direction] += one.came.messages
            self._came[f"{one.direction}_bytes"] += one.came.bytes
        if self._since_us is None or now_us - self._since_us >= _TOLD_EVERY_US:
            self._line(this, now_us)

    def _line(self, this: Round, now_us: int) -> None:
        answered = [told.look for told in this.brokers.values() if told.look is not None]
        topics = len(set().union(*(look.topics for look in answered)))
        words = [f"{time_of_day(now_us)} {len(answered)} of {len(this.brokers)} brokers", f"{topics:,} topics"]
        if self._since_us is not None:
            seconds = (now_us - self._since_us) / SECOND_US
            for direction in ("in", "out"):
                messages, of_bytes = (self._came[key] / seconds for key in (direction, f"{direction}_bytes"))
                words.append(f"{direction} {messages:,.0f} msg/s {of_bytes:,.0f} B/s")
        self._tell("  ".join([*words, f"{self._rounds} looks, the longest {self._took_ms} ms"]))
        self._since_us, self._rounds, self._took_ms = now_us, 0, 0
        self._came.clear()


class CollectSeries:
    """What the endpoint tells of a collector."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._looks = CounterSeries(
            "headgate_collect_looks", "Looks at brokers.", ["broker", "outcome"], registry=self.registry
        )
        self._took = Gauge(
            "headgate_collect_look_seconds", "How long the last look took.", ["broker"], registry=self.registry
        )
        self._at = Gauge(
            "headgate_collect_last_look_timestamp_seconds",
            "When a broker answered last.",
            ["broker"],
            registry=self.registry,
        )
        self._topics = Gauge("headgate_collect_topics", "Topics that a broker has.", ["broker"], registry=self.registry)
        names = ["broker", "direction"]
        self._messages = CounterSeries(
            "headgate_collect_messages", "Messages that brokers counted.", names, registry=self.registry
        )
        self._bytes = CounterSeries(
            "headgate_collect_bytes", "Bytes that brokers counted.", names, registry=self.registry
        )

    def take(self, this: Round) -> None:
        """Take in a round."""
        for broker, told in this.brokers.items():
            self._looks.labels(broker, "failed" if told.look is None else "answered").inc()
            self._took.labels(broker).set(told.took_ms / 1000)
            if told.look is not None:
                self._at.labels(broker).set(told.at_us / SECOND_US)
                self._topics.labels(broker).set(len(told.look.topics))
        for one in this.increases:
            self._messages.labels(one.broker, one.direction).inc(one.came.messages)
            self._bytes.labels(one.broker, one.direction).inc(one.came.bytes)
