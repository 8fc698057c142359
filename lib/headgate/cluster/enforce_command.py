"""`headgate enforce`: keeps tenants within their quotas on a running cluster until SIGTERM or Ctrl-C."""

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Event

from headgate.cluster.collect import clock
from headgate.cluster.enforce import Enforced, Enforcer, shown
from headgate.cluster.feed import Feed
from headgate.cluster.ledger import Ledger
from headgate.cluster.pulsar_limits import PulsarLimits
from headgate.cluster.pushing import Pushing
from headgate.cluster.running import cluster_of, own_name, stopped_by_signals
from headgate.cluster.schemas import OF_ENFORCER
from headgate.conf.cluster import ClusterConf, load_cluster
from headgate.core.clusters.pushes import Limit
from headgate.core.clusters.shared_quota import NONE
from headgate.errors import ClusterError
from headgate.tables.delta import Tables

SECOND_US = 1_000_000
_LOOKED_EVERY_S = 0.5
_TOLD_EVERY_US = 60 * SECOND_US
_NAMED = 5
LEFT = 1
"""Exit status where limits could not be put back."""


def enforce(arguments: argparse.Namespace, tell: Callable[[str], None]) -> int:
    """Enforce until a signal comes, and then put everything back. Raises HeadgateError."""
    conf = load_cluster(arguments.cluster)
    now_us = clock()

    def at_once(text: str) -> None:
        tell(f"{datetime.fromtimestamp(now_us() // SECOND_US, UTC):%H:%M:%S} {text}")

    with stopped_by_signals() as stop:
        limits = PulsarLimits(conf)
        if not arguments.apply and not arguments.release:
            tell("dry run: nothing is set; --apply does it")
            enforcer = Enforcer(conf.resources, limits, None, at_once)
            _Run(conf, arguments, enforcer, None, now_us, at_once).until(stop)
            return 0
        ledger = Ledger(Tables(arguments.output, OF_ENFORCER), own_name(), now_us)
        if not ledger.take(stop, at_once):
            return 0
        enforcer = Enforcer(conf.resources, limits, Pushing(limits, ledger), at_once)
        if not arguments.release:
            _Run(conf, arguments, enforcer, ledger, now_us, at_once).until(stop)
        status = 0 if arguments.keep else _released(enforcer, "released", at_once)
        ledger.end()
        return status


@dataclass
class _Run:
    """What goes on between start and signal."""

    conf: ClusterConf
    arguments: argparse.Namespace
    enforcer: Enforcer
    ledger: Ledger | None
    now_us: Callable[[], int]
    tell: Callable[[str], None]
    told_us: int | None = None
    held: dict[str, bool] = field(default_factory=dict)
    is_open: bool = False

    def until(self, stop: Event) -> None:
        """Decide whenever a round is new."""
        started_us = self.now_us()
        feed = Feed(self.arguments.output, started_us)
        self._check(feed)
        self.enforcer.go_on(started_us)
        while not stop.wait(_LOOKED_EVERY_S):
            now_us = self.now_us()
            if self.enforcer.round(feed, now_us):
                self.is_open = False
                self._show(now_us)
            elif now_us - max(feed.newest_us, started_us) > self.conf.settings.hold_s * SECOND_US and not self.is_open:
                self._open()
            if self.ledger is not None:
                self.ledger.renew()

    def _show(self, now_us: int) -> None:
        """Each minute, and when somebody comes to be held who was not, or nobody is any more."""
        is_due = self.told_us is None or now_us - self.told_us >= _TOLD_EVERY_US
        for one in self.enforcer.enforced:
            held = one.decision is not None and bool(one.decision.held)
            if one.decision is not None and (is_due or held != self.held.get(one.name)):
                self.told_us, self.held[one.name] = now_us, held
                for line in lines(one):
                    self.tell(line)

    def _check(self, feed: Feed) -> None:
        """Raise ClusterError for the counters of another cluster."""
        counted, named = feed.cluster(), cluster_of(self.conf).name()
        if counted is None:
            self.tell("no counters yet: start headgate collect with the same --cluster and --output")
        elif counted != named:
            raise ClusterError(
                f"--output has counters of the cluster {counted}, and cluster.toml names {named}; give the --output of "
                "that cluster"
            )

    def _open(self) -> None:
        """Without counters nobody is held for what was true once."""
        self.is_open = True
        silent = f"no counters for {self.conf.settings.hold_s} s"
        if self.arguments.fail_closed:
            self.tell(f"{silent}: limits stay as they are (--fail-closed); see to headgate collect")
            return
        self.tell(f"{silent}: limits are put back until there are; see to headgate collect")
        _released(self.enforcer, silent, self.tell)


def _released(enforcer: Enforcer, reason: str, tell: Callable[[str], None]) -> int:
    failed = enforcer.release(reason)
    for path, why in failed.items():
        tell(f"not put back at {path}: {why}")
    if failed:
        tell("run headgate enforce --release when the cluster answers")
    return LEFT if failed else 0


def lines(one: Enforced) -> Iterator[str]:
    """What a resource uses, its quota, and who is held."""
    if (now := one.decision) is None:
        return
    used = Limit(*(amount if quota else None for amount, quota in zip(now.used_per_s, one.quota.quota, strict=True)))
    words = [f"{one.name}: uses {shown(used)} of {shown(one.quota.quota)}", f"level {shown(now.level)}"]
    if one.quota.in_force != NONE:
        words.append(f"in force {shown(one.quota.in_force)} on {len(one.paths) - len(one.missing)} of {len(one.paths)}")
    held = sorted(now.held)
    words.append(f"held: {', '.join(held[:_NAMED])}{_more(held)}" if held else "nobody is held")
    yield "; ".join(words)
    if one.outside:
        yield f"{one.name}: not enforceable: {', '.join(sorted(one.outside)[:_NAMED])}{_more(sorted(one.outside))}"


def _more(names: Sequence[str]) -> str:
    return f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
