"""Looks at all brokers of a cluster once a period, and appends what came to the table `counters` (clusters 1)."""

import time
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from headgate.cluster.brokers import BrokerLook, Cluster
from headgate.cluster.schemas import BROKER_LOOKS, COUNTERS
from headgate.core.clusters.counters import Increase, Reading
from headgate.core.clusters.demand import SECOND_US
from headgate.errors import ClusterError
from headgate.rows.kinds import USAGE
from headgate.tables.delta import Tables
from headgate.tables.query import newest

_MOST_AT_ONCE = 16
_FOUND_ANEW_US = 60 * SECOND_US
_FORGOTTEN_US = 600 * SECOND_US
_LAST_LOOKS = (
    "SELECT cluster, broker, max(seq) AS seq, max(at_us) AS at_us, max(CASE WHEN error IS NULL THEN at_us END) AS "
    "answered_us FROM t GROUP BY cluster, broker"
)
_NEWEST = newest("*", ("broker", "topic", "direction"), "at_us DESC, from_us", "true")


@dataclass(frozen=True, slots=True)
class BrokerRound:
    """What a broker told at at_us, or why it did not: one of look and error is None."""

    at_us: int
    took_ms: int
    look: BrokerLook[Any] | None
    error: str | None


class Round(NamedTuple):
    """A look at all brokers. seq: its number, from 1, over all collectors of the output.

    increases: what was added to `counters` since the last whole round, also by rounds that were written in part.
    """

    seq: int
    brokers: Mapping[str, BrokerRound]
    increases: Sequence[Increase]


class Collector:
    """What came is in the table `counters` once, however often the process is killed and started again.

    It goes on from the last rows of the table, after a start and after a round that could not be written, whole or in
    part: counters are cumulative, so what came in between is in the next row. Only what a counter had since its last
    row is lost where it begins anew meanwhile. A broker that does not answer is left out, and what it counted meanwhile
    comes with its next look. A round is whole once its rows of `broker_looks` are there; they come last.

    name: of this collector, in its rows. now_us: never goes back.
    """

    def __init__(self, cluster: Cluster, tables: Tables, name: str, now_us: Callable[[], int]) -> None:
        self.cluster_name = cluster.name()
        self._cluster, self._tables, self._name, self._now_us = cluster, tables, name, now_us
        self._begin()
        self._brokers: Sequence[str] = ()
        self._found_us: int | None = None
        self._answered_us: dict[str, int] = {}
        self._added: list[Increase] = []
        self._threads = ThreadPoolExecutor(_MOST_AT_ONCE)

    def _begin(self) -> None:
        """Go on from the last rows. Raises TableError and ClusterError."""
        tables = self._tables
        last = tables.select("broker_looks", _LAST_LOOKS).to_pylist()
        counted = [_increase(row) for row in tables.select("counters", _NEWEST).to_pylist()]
        times_us = [*(row["at_us"] for row in last), *(one.at_us for one in counted)]
        self._check({row["cluster"] for row in last}, max(times_us, default=0) - self._now_us())
        self._seq = max((row["seq"] for row in last), default=0)
        looked = {row["broker"]: row["answered_us"] for row in last if row["answered_us"] is not None}
        self._counting = self._cluster.counting(counted, looked)
        self._is_written = True

    def _check(self, clusters: AbstractSet[str], ahead_us: int) -> None:
        """Raise ClusterError where the tables are of another cluster, or of a time to come."""
        others = clusters - {self.cluster_name}
        if others:
            raise ClusterError(
                f"--output has counters of the cluster {', '.join(sorted(others))}, and this one is "
                f"{self.cluster_name}; give each cluster an --output of its own"
            )
        if ahead_us >= 0:
            raise ClusterError(
                f"the last look in --output is {ahead_us / SECOND_US:,.0f} s ahead of this machine's clock; correct "
                "the clock, or give a new --output"
            )

    def look(self) -> Round:
        """Ask all brokers at once, and append what came. Raises TableError where that cannot be; the next look then
        goes on from what the tables have.
        """
        if not self._is_written:
            self._begin()
        self._find()
        told = dict(zip(self._brokers, self._threads.map(self._ask, self._brokers), strict=True))
        if any(one.error for one in told.values()):
            self._found_us = None
        self._answered_us |= {broker: one.at_us for broker, one in told.items() if one.look is not None}
        self._seq += 1
        increases = [
            one
            for broker, of_broker in told.items()
            if of_broker.look is not None
            for one in self._counting.look(of_broker.at_us, broker, of_broker.look.readings)
        ]
        this = Round(self._seq, told, increases)
        self._is_written = False
        if increases:
            self._tables.extend("counters", self._counter_rows(this))
            self._added += increases
        if told:
            self._tables.extend("broker_looks", self._look_rows(this))
        self._is_written = True
        added, self._added = self._added, []
        return this._replace(increases=added)

    def _find(self) -> None:
        """The brokers that are there; those that were stay where the cluster does not tell."""
        now_us = self._now_us()
        if self._found_us is not None and now_us - self._found_us < _FOUND_ANEW_US:
            return
        try:
            found = self._cluster.brokers()
        except ClusterError:
            if not self._brokers:
                raise
            return
        # One that is away for a while is asked on, so that it is missed nowhere once it is back.
        stays = {broker for broker, at_us in self._answered_us.items() if now_us - at_us < _FORGOTTEN_US}
        self._brokers, self._found_us = sorted({*found, *stays}), now_us

    def _ask(self, broker: str) -> BrokerRound:
        at_us, began_s = self._now_us(), time.monotonic()
        look, error = None, None
        try:
            look = self._cluster.look(broker)
        except ClusterError as failed:
            error = str(failed)
        return BrokerRound(at_us, round((time.monotonic() - began_s) * 1000), look, error)

    def _counter_rows(self, this: Round) -> pa.Table:
        rows = this.increases
        columns: dict[str, list[Any]] = {
            "event_time": [one.at_us for one in rows],
            "kind": [USAGE.name] * len(rows),
            "at_us": [one.at_us for one in rows],
            "from_us": [one.from_us for one in rows],
            "broker": [one.broker for one in rows],
            "topic": [one.topic for one in rows],
            "direction": [one.direction for one in rows],
            "seq": [this.seq] * len(rows),
            "collector": [self._name] * len(rows),
        }
        for place, name in enumerate(Reading._fields):
            columns[name] = [one.came[place] for one in rows]
            columns[f"{name}_total"] = [one.total[place] for one in rows]
        return pa.table([pa.array(columns[field.name], field.type) for field in COUNTERS], schema=COUNTERS)

    def _look_rows(self, this: Round) -> pa.Table:
        rows = []
        for broker, told in this.brokers.items():
            cache = told.look.cache if told.look else None
            rows.append(
                {
                    "at_us": told.at_us,
                    "cluster": self.cluster_name,
                    "broker": broker,
                    "seq": this.seq,
                    "collector": self._name,
                    "took_ms": told.took_ms,
                    "topics": len(told.look.topics) if told.look else None,
                    "error": told.error,
                    "cache_hits_per_s": cache and cache.hits_per_s,
                    "cache_misses_per_s": cache and cache.misses_per_s,
                    "cache_used_bytes": cache and cache.used_bytes,
                }
            )
        return pa.Table.from_pylist(rows, BROKER_LOOKS)


def _increase(row: Mapping[str, Any]) -> Increase:
    """Of a row of `counters`."""
    came, total = (Reading(*(row[f"{name}{end}"] for name in Reading._fields)) for end in ("", "_total"))
    return Increase(row["from_us"], row["at_us"], row["broker"], row["topic"], row["direction"], came, total)
