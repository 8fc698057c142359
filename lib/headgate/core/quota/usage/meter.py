"""The usage of one broker: counts in, cuts of rows and heartbeats out (resource-groups 6).

Time is an argument. `advance` closes epochs and looks for early cuts at the instants at which both are due, one after
the other, so the same counts give the same rows whether time comes in one step or in many.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

from headgate.core.numbers import MAX, at_least
from headgate.core.quota.epochs import check_epoch
from headgate.core.quota.groups import FlagPair, IntPair, RatePair, TrafficClass, UsageKey, clamped
from headgate.core.quota.usage.counts import Counts, Sent, Wait
from headgate.core.quota.usage.reports import (
    QUARTERS,
    Measured,
    ReportReason,
    ReportRule,
    admitted_rate,
    decide_at_close,
    decide_early,
    decide_released,
    offered_rate,
)
from headgate.core.quota.usage.usage import NOTHING, PAIR_OF_NONE, Usage
from headgate.core.quota.usage.usage_report import MeterParameters, ReportKind, ReportRow, UsageReport
from headgate.core.state import PlainData, check_fields
from headgate.errors import InvalidArgument


class UsageMeter:
    """No count is reported twice or, while its (group, class) does not leave, forgotten before its epoch has closed.

    Counts may come in any order before the `advance` that closes their epoch; what comes later counts in the epoch
    that is then open.

    Arguments, each with its range:
        parameters: what to measure by; `from_state` may be given others, but of the same epoch length.
        created_ms: the first instant, >= 0; the epoch it lies in is the first to close.

    Raises InvalidArgument outside these ranges, and in operations for negative counts. Source: resource-groups 6.
    """

    __slots__ = ("_counts", "checked_ms", "clock_ms", "next_epoch", "parameters", "seq", "suppressed")

    def __init__(self, parameters: MeterParameters, *, created_ms: int) -> None:
        self.parameters = parameters
        self.clock_ms = at_least(0, created_ms, "created_ms")
        self.checked_ms = created_ms
        self.next_epoch = created_ms // parameters.epoch_ms
        self.seq = 0
        self.suppressed = 0
        self._counts: dict[UsageKey, Counts] = {}

    def count(self, key: UsageKey, at_ms: int, admitted: IntPair, offered: IntPair) -> None:
        """Messages and bytes that passed at `at_ms`, and that were tried for the first time then; each >= 0.

        A delayed message is offered when it arrives and admitted when it is let in.
        """
        at_least(0, admitted[0], "admitted messages")
        at_least(0, admitted[1], "admitted bytes")
        at_least(0, offered[0], "offered messages")
        at_least(0, offered[1], "offered bytes")
        open_ms = self._open_ms(at_ms)
        self._of(key).add(open_ms, admitted, offered)

    def hold_back(self, key: UsageKey, from_ms: int, until_ms: int, throttled: FlagPair) -> None:
        """Something was refused at `from_ms`, or delayed until `until_ms` >= from_ms, for want of messages or bytes.

        A wait that goes on is told again, from where it was told last.
        """
        at_least(at_least(0, from_ms, "from_ms"), until_ms, "until_ms")
        self._of(key).add_wait(Wait(self._open_ms(from_ms), self._open_ms(until_ms), throttled))

    def set_limit(self, key: UsageKey, at_ms: int, limit: RatePair) -> None:
        """The limit of the broker from `at_ms` on, messages and bytes a second; None is not limited."""
        for rate in limit:
            at_least(0, 0 if rate is None else rate, "limit")
        at_least(0, at_ms, "at_ms")
        self._of(key).set_limit(at_ms, clamped(limit))

    def advance(self, now_ms: int, *, config_version: int = 0) -> list[UsageReport]:
        """Move time to `now_ms` and return the cuts that became due, in order. An earlier `now_ms` changes nothing.

        Epochs without anything to say, one after the other, close in one cut.
        """
        cuts: list[UsageReport] = []
        now_ms = max(at_least(0, now_ms, "now_ms"), self.clock_ms)
        while (at_ms := min(self._close_due_ms(), self._check_due_ms())) <= now_ms:
            quiet_until_ms = self._quiet_until_ms(now_ms)
            if quiet_until_ms > at_ms:
                cuts += self._pass_over(quiet_until_ms, config_version)
            elif at_ms == self._close_due_ms():
                cuts.append(self._close(at_ms, config_version))
            else:
                cuts += self._check(at_ms, config_version)
        self.clock_ms = now_ms
        return cuts

    def leave(self, keys: Iterable[UsageKey], *, config_version: int = 0) -> list[UsageReport]:
        """These are no longer measured here (detached); readers that know of them are told, in at most one cut.

        Counts of epochs that have not closed are dropped. resource-groups 6.2
        """
        left = [(key, self._counts.pop(key)) for key in sorted(set(keys)) if key in self._counts]
        rows = [ReportRow(*key, NOTHING, ReportReason.LEAVE) for key, counts in left if counts.last is not None]
        return [self._cut(ReportKind.LEAVE, self.clock_ms, config_version, rows)] if rows else []

    def leave_all(self, *, config_version: int = 0) -> list[UsageReport]:
        """The broker shuts down: one cut without rows, if it ever made one before. resource-groups 6.2"""
        self._counts.clear()
        return [self._cut(ReportKind.LEAVE, self.clock_ms, config_version, ())] if self.seq else []

    def restart(self) -> None:
        """A new incarnation begins: readers drop what they knew, so nothing counts as sent. resource-groups 7.1"""
        self.seq = 0
        for counts in self._counts.values():
            counts.last = None

    def measured_keys(self) -> list[UsageKey]:
        """What is measured now, in order."""
        return sorted(self._counts)

    def state(self) -> PlainData:
        """Everything but the parameters, as plain data, a copy."""
        return {
            "epoch_ms": self.parameters.epoch_ms,
            "clock_ms": self.clock_ms,
            "checked_ms": self.checked_ms,
            "next_epoch": self.next_epoch,
            "seq": self.seq,
            "suppressed": self.suppressed,
            "counts": [[*key, counts.state()] for key, counts in self._counts.items()],
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any], parameters: MeterParameters) -> Self:
        """Rebuild the meter that `state` was taken from. Raises StateError for another version or epoch length."""
        numbers = ("clock_ms", "checked_ms", "next_epoch", "seq", "suppressed")
        check_fields(cls.__name__, state, ("epoch_ms", *numbers, "counts"))
        check_epoch(cls.__name__, state["epoch_ms"], parameters.epoch_ms)
        meter = cls(parameters, created_ms=0)
        for name in numbers:
            setattr(meter, name, state[name])
        for group_id, traffic_class, counts in state["counts"]:
            meter._counts[group_id, traffic_class] = Counts.from_state(counts, parameters.slot_ms)
        return meter

    def _of(self, key: UsageKey) -> Counts:
        if key not in self._counts:
            group_id, traffic_class = key
            at_least(1, group_id, "group_id")
            if traffic_class not in tuple(TrafficClass):
                raise InvalidArgument(f"traffic class: got {traffic_class!r}, allowed are 0 (publish) and 1 (dispatch)")
            self._counts[group_id, int(traffic_class)] = Counts(self.parameters.slot_ms)
        return self._counts[key]

    def _open_ms(self, at_ms: int) -> int:
        """When something of `at_ms` counts: then, or where its epoch has closed at the start of the one now open."""
        return max(at_least(0, at_ms, "at_ms"), self.next_epoch * self.parameters.epoch_ms)

    def _close_due_ms(self) -> int:
        return (self.next_epoch + 1) * self.parameters.epoch_ms + self.parameters.grace_ms

    def _check_due_ms(self) -> int:
        if self.parameters.report.rule is ReportRule.PULSAR:
            return MAX
        interval_ms = self.parameters.report.event_min_interval_ms
        return (self.checked_ms // interval_ms + 1) * interval_ms

    def _quiet_until_ms(self, now_ms: int) -> int:
        """Up to where nothing was counted and readers know so; -1 where there is something to say."""
        if not all(counts.quiet for counts in self._counts.values()):
            return -1
        first = [counts.first_ms() for counts in self._counts.values()]
        return min((now_ms, *(at_ms for at_ms in first if at_ms is not None)))

    def _pass_over(self, until_ms: int, config_version: int) -> Iterator[UsageReport]:
        """Close the epochs up to `until_ms` in which nothing happened: one heartbeat covers them all.

        The released rule repeats idle rows; of those, that of the last round is made.
        """
        newest = (until_ms - self.parameters.grace_ms) // self.parameters.epoch_ms - 1
        repeats = self.parameters.report.rule is ReportRule.PULSAR
        walked = max(self.parameters.report.suppress_rounds, 0) if repeats else 0
        self.next_epoch = max(self.next_epoch, newest - walked)
        while self.next_epoch <= newest:
            yield self._close(self._close_due_ms(), config_version)
        self.checked_ms = until_ms

    def _close(self, at_ms: int, config_version: int) -> UsageReport:
        epoch, epoch_ms = self.next_epoch, self.parameters.epoch_ms
        rows = []
        for key in sorted(self._counts):
            sent = self._sent(self._counts[key], epoch, (epoch + 1) * epoch_ms, at_ms, config_version)
            reason = self._reason_at_close(self._counts[key].last, sent)
            if reason is not None:
                rows.append(self._row(key, sent, reason))
            elif not sent.measured.usage.idle:
                self.suppressed += 1
        self.next_epoch += 1
        for key, counts in list(self._counts.items()):
            counts.forget(min(self.next_epoch * epoch_ms, at_ms - epoch_ms))
            if counts.empty:
                del self._counts[key]
        return self._cut(ReportKind.PERIODIC, at_ms, config_version, rows, epoch=epoch)

    def _check(self, at_ms: int, config_version: int) -> list[UsageReport]:
        """Rows that cannot wait for the close: rates over the last T, in the epoch now running."""
        self.checked_ms = at_ms
        rows = []
        for key in sorted(self._counts):
            last = self._counts[key].last
            sent = self._sent(self._counts[key], at_ms // self.parameters.epoch_ms, at_ms, at_ms, config_version)
            before, since_ms = (None, 0) if last is None else (last.measured, at_ms - last.at_ms)
            reason = decide_early(self.parameters.report, sent.measured, before, since_ms)
            if reason is not None:
                rows.append(self._row(key, sent, reason))
        return [self._cut(ReportKind.EVENT, at_ms, config_version, rows)] if rows else []

    def _reason_at_close(self, last: Sent | None, sent: Sent) -> ReportReason | None:
        report, epoch_ms = self.parameters.report, self.parameters.epoch_ms
        if report.rule is ReportRule.PULSAR:
            counts, elapsed_ms = (None, 0) if last is None else (last.admitted, sent.at_ms - last.at_ms)
            return decide_released(report, sent.admitted, counts, elapsed_ms, epoch_ms)
        measured, rounds = (None, 0) if last is None else (last.measured, sent.epoch - last.epoch)
        return decide_at_close(report, sent.measured, measured, rounds)

    def _sent(self, counts: Counts, epoch: int, until_ms: int, at_ms: int, config_version: int) -> Sent:
        """The row that could be sent now: rates over the T before `until_ms`."""
        epoch_ms = self.parameters.epoch_ms
        from_ms = until_ms - epoch_ms
        passed, tried = counts.counted(from_ms, until_ms)
        offered = PAIR_OF_NONE
        if self.parameters.demand_visible:
            _, lately = counts.counted(until_ms - epoch_ms // QUARTERS, until_ms)
            offered = offered_rate(tried[0], lately[0], epoch_ms), offered_rate(tried[1], lately[1], epoch_ms)
        admitted = admitted_rate(passed[0], epoch_ms), admitted_rate(passed[1], epoch_ms)
        usage = Usage(admitted, offered, counts.limit(until_ms), counts.throttled(from_ms, until_ms))
        return Sent(Measured(usage, config_version), passed, epoch, at_ms)

    def _row(self, key: UsageKey, sent: Sent, reason: ReportReason) -> ReportRow:
        self._counts[key].last = sent
        return ReportRow(*key, sent.measured.usage, reason)

    def _cut(
        self,
        kind: ReportKind,
        at_ms: int,
        config_version: int,
        rows: Iterable[ReportRow],
        *,
        epoch: int | None = None,
    ) -> UsageReport:
        self.seq += 1
        described = at_ms // self.parameters.epoch_ms if epoch is None else epoch
        return UsageReport(self.seq, described, kind, kind is ReportKind.PERIODIC, at_ms, config_version, tuple(rows))
