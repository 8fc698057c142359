"""`headgate enforce`: keeps tenants within their quotas on a running cluster until SIGTERM or Ctrl-C."""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from threading import Event

from headgate.cluster.enforce import Enforced, Enforcer, named, shown
from headgate.cluster.enforce_series import EnforceSeries
from headgate.cluster.feed import Feed, has_counters_of
from headgate.cluster.groups import Groups
from headgate.cluster.ledger import LeaseLostError, Ledger
from headgate.cluster.pushing import Pushing
from headgate.cluster.running import (
    ENFORCER_PATIENCE,
    clock,
    cluster_of,
    limits_of,
    own_name,
    stopped_by_signals,
    time_of_day,
)
from headgate.cluster.schemas import OF_ENFORCER
from headgate.cluster.shadow import Shadow
from headgate.conf import MetricsSettings
from headgate.conf.cluster import ClusterConf, load_cluster
from headgate.core.clusters.demand import SECOND_US
from headgate.core.clusters.pushes import Limit
from headgate.core.clusters.shared_quota import NONE
from headgate.errors import ClusterError, TableError
from headgate.metrics.endpoint import listening
from headgate.store_errors import is_away
from headgate.stores import check_reachable, is_there
from headgate.tables.delta import Tables

_LOOKED_EVERY_S = 0.5
_TOLD_EVERY_US = 60 * SECOND_US
_RETRIED_US = 5 * SECOND_US
_NAMED = 5
LEFT = 1
"""Exit status where limits could not be put back, or that could not be written down."""
_NOT_WRITTEN = "what is put back is not written down: the next start, or headgate enforce --release, does that"


def enforce(arguments: argparse.Namespace, tell: Callable[[str], None]) -> int:
    """Enforce until a signal comes, then put everything back; or only tell what would be. Raises HeadgateError."""
    conf = load_cluster(arguments.cluster)
    check_reachable(arguments.output, "--output")
    now_us = clock()

    def at_once(text: str) -> None:
        tell(f"{time_of_day(now_us())} {text}")

    series, port = EnforceSeries(), 0 if arguments.release else arguments.metrics_port
    with stopped_by_signals() as stop, listening(MetricsSettings(port=port), series.registry):
        _check(arguments, conf, at_once)
        limits = limits_of(conf)
        groups = Groups(arguments.output, now_us()) if conf.settings.groups and not arguments.release else None
        resources = conf.resources if groups is None else groups.resources()
        averaged_us = 0 if arguments.release else limits.averaged_us()
        if not arguments.apply and not arguments.release:
            shadow = _shadow(arguments, conf.settings.kept_hours, now_us, at_once)
            enforcer = Enforcer(resources, limits, None, at_once, averaged_us)
            _Run(conf, arguments, enforcer, groups, shadow, series, now_us, at_once).until(stop)
            shadow.end()
            return 0
        tables = Tables(arguments.output, OF_ENFORCER, conf.settings.kept_hours, ENFORCER_PATIENCE)
        ledger = Ledger(tables, own_name(), now_us)
        if not ledger.take(stop, at_once):
            return LEFT if arguments.release else 0
        enforcer = Enforcer(resources, limits, Pushing(limits, ledger), at_once, averaged_us)
        try:
            if not arguments.release:
                _Run(conf, arguments, enforcer, groups, ledger, series, now_us, at_once).until(stop)
        except LeaseLostError:
            raise
        except Exception as error:
            at_once(f"this process ends: {error}")
            if is_away(error):
                ledger.stop_writing()
                if not arguments.keep:
                    at_once(_NOT_WRITTEN)
            _end(enforcer, ledger, arguments, at_once)
            raise
        return _end(enforcer, ledger, arguments, at_once)


def _check(arguments: argparse.Namespace, conf: ClusterConf, tell: Callable[[str], None]) -> None:
    """Before anything is set or put back: a ledger is of one cluster. Raises ClusterError."""
    if (arguments.keep or arguments.fail_closed) and not arguments.apply:
        option = "--keep" if arguments.keep else "--fail-closed"
        raise ClusterError(f"{option}: got it without --apply, which alone sets limits; allowed: both, or none")
    if arguments.release and not is_there(f"{arguments.output}/enforced", ENFORCER_PATIENCE):
        raise ClusterError(
            f"--output {arguments.output} has no table enforced: no limits were set from there; correct it"
        )
    if not (has_counters_of(arguments.output, cluster_of(conf).name()) or arguments.release):
        tell("no counters yet: start headgate collect with the same --cluster and --output")


def _end(enforcer: Enforcer, ledger: Ledger, arguments: argparse.Namespace, tell: Callable[[str], None]) -> int:
    """Put everything back, unless it is to be kept, and give the lease back.

    Where the table cannot be written, limits are put back all the same. Raises TableError where none are to be.
    """
    if arguments.keep:
        tell(f"limits stay at {enforcer.open} places; headgate enforce --release puts them back")
        ledger.end()
        return 0
    try:
        status = _released(enforcer, "released", tell)
        ledger.end()
    except TableError as error:
        tell(str(error))
        ledger.stop_writing()
        tell(_NOT_WRITTEN)
        status = _released(enforcer, "released", tell) or LEFT
    return status


def _shadow(
    arguments: argparse.Namespace, kept_hours: int, now_us: Callable[[], int], tell: Callable[[str], None]
) -> Shadow:
    """Of a dry run, with a record if that is asked for."""
    has_ledger, tables = is_there(f"{arguments.output}/enforced", ENFORCER_PATIENCE), None
    if arguments.shadow:
        tell(f"shadow: nothing is set; what would be is recorded in {arguments.output}/enforced")
    else:
        tell("dry run: nothing is set; --apply does it")
    if arguments.shadow or has_ledger:
        tables = Tables(arguments.output, OF_ENFORCER, kept_hours, ENFORCER_PATIENCE)
        in_force = len(Ledger(tables, own_name(), now_us).open())
        if in_force:
            tell(f"headgate has set limits in {in_force} places: what they hold back is not seen here")
    return Shadow(tables if arguments.shadow else None, own_name(), now_us(), tell)


@dataclass
class _Run:
    """What goes on between start and signal.

    beside: the ledger of limits that are set, or who tells what would be. open_due_us: when limits are put back if
    there are no counters for too long; 0: then at once; None: they are.
    """

    conf: ClusterConf
    arguments: argparse.Namespace
    enforcer: Enforcer
    groups: Groups | None
    beside: Ledger | Shadow
    series: EnforceSeries
    now_us: Callable[[], int]
    tell: Callable[[str], None]
    told_us: int | None = None
    held: dict[str, bool] = field(default_factory=dict)
    open_due_us: int | None = 0

    def until(self, stop: Event) -> None:
        """Decide whenever a round is new."""
        started_us = self.now_us()
        feed = Feed(self.arguments.output, started_us)
        self.enforcer.go_on(started_us)
        self.series.take(self.enforcer.enforced)
        while not stop.wait(_LOOKED_EVERY_S):
            now_us = self.now_us()
            if self.groups is not None and (changed := self.groups.changed(now_us, self.tell)) is not None:
                self.tell("groups have changed")
                self.enforcer.change(changed, now_us)
            if looked := self.enforcer.round(feed, now_us):
                self.open_due_us = 0
                if isinstance(self.beside, Shadow):
                    self.beside.take(self.enforcer.enforced, looked, now_us)
                self.series.take(self.enforcer.enforced, now_us)
                self._show(now_us)
            elif self.open_due_us is not None and now_us > max(
                self.open_due_us, max(self.enforcer.heard_us, started_us) + self.conf.settings.hold_s * SECOND_US
            ):
                self._open(now_us)
            if isinstance(self.beside, Ledger):
                self.beside.renew()

    def _show(self, now_us: int) -> None:
        """Each minute, and when somebody comes to be held who was not, or nobody is any more."""
        is_due = self.told_us is None or now_us - self.told_us >= _TOLD_EVERY_US
        for one in self.enforcer.enforced:
            held = one.decision is not None and bool(one.decision.held)
            if one.decision is not None and (is_due or held != self.held.get(one.name)):
                self.told_us, self.held[one.name] = now_us, held
                for line in lines(one):
                    self.tell(line)

    def _open(self, now_us: int) -> None:
        """Without counters nobody is held for what was true once. What cannot be put back is tried again."""
        is_first, self.open_due_us = self.open_due_us == 0, None
        silent = f"no counters for {self.conf.settings.hold_s} s"
        if isinstance(self.beside, Shadow):
            self.tell(f"{silent}: see to headgate collect")
            return
        if self.arguments.fail_closed:
            self.tell(f"{silent}: limits stay as they are (--fail-closed); see to headgate collect")
            return
        if is_first:
            self.tell(f"{silent}: limits are put back until there are; see to headgate collect")
            left: object = _released(self.enforcer, silent, self.tell)
        else:
            left = self.enforcer.release(silent)
        if left:
            self.open_due_us = now_us + _RETRIED_US
        self.series.take(self.enforcer.enforced)


def _released(enforcer: Enforcer, reason: str, tell: Callable[[str], None]) -> int:
    before = enforcer.open
    failed = enforcer.release(reason)
    tell(f"put back at {before - enforcer.open} of {before} places")
    for path, why in failed.items():
        tell(f"not put back at {path}: {why}")
    if failed:
        tell("run headgate enforce --release when the cluster answers")
    return LEFT if failed else 0


def lines(one: Enforced) -> Iterator[str]:
    """What a resource uses, its quota, and who is held."""
    if (now := one.decision) is None:
        return
    words = [f"{one.name}: uses {shown(one.used)} of {shown(one.quota.quota)}", f"level {shown(now.level)}"]
    if one.quota.in_force != NONE:
        count = len(one.places) - len(one.not_set) - len(one.operators)
        words.append(f"in force {shown(one.quota.in_force)} on {count} of {len(one.places)}")
        if one.operators:
            words.append(f"a lower limit of the operator's on {len(one.operators)}")
        held = sorted(now.held)
        words.append(f"held: {named(held, _NAMED)}" if held else "nobody is held")
    yield "; ".join(words)
    if 0 in now.level and not one.not_enforceable:
        least = shown(Limit(*(cap if cap is None else 1 for cap in one.quota.quota)))
        yield f"{one.name}: the quota is too small for its {one.resource.shares}: each gets {least} all the same"
    if one.not_enforceable:
        yield f"{one.name}: not enforceable: {named(sorted(one.not_enforceable), _NAMED)}"
