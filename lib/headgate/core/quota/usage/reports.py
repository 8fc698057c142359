"""When a broker reports its usage: rates of an epoch, and the decision at its close and inside it (resource-groups 6).

A decision is a reason to send a row, or None. It depends on the present usage, the last row sent and the time since
then alone; nothing accumulates over suppressed epochs, since values are rates.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from headgate.core.names import one_of
from headgate.core.numbers import at_least, int64
from headgate.core.quota.allocation.binary32 import from_integer, rounded
from headgate.core.quota.groups import FlagPair, IntPair
from headgate.core.quota.rates import capped
from headgate.core.quota.usage.usage import Usage

SECOND_MS = 1000
QUARTERS = 4


class ReportRule(StrEnum):
    """Which test suppresses a row: the table of 6.2, or the one of the released broker."""

    HEADGATE = "headgate"
    PULSAR = "pulsar"


class ReportReason(StrEnum):
    """Why a row is sent (resource-groups 6.2)."""

    LEAVE = "leave"
    ZERO = "zero"
    FIRST = "first"
    CONFIG = "config"
    THROTTLED = "throttled"
    EVERY = "every"
    MANDATORY = "mandatory"
    CLEARED = "cleared"
    CHANGE = "change"


@dataclass(frozen=True, slots=True)
class ReportParameters:
    """What decides about rows; the defaults are those of resource-groups 14.

    suppress_rounds: R, the epochs after which a row is sent whatever it says; 0: every epoch, below 0: never.
    tolerance_percent: a smaller or equal change is suppressed; below 0 none is.
    event_min_interval_ms: the least time between two rows of a (group, class), but for a leave; >= 1.
    event_change_percent: a demand that changed by more is sent inside the epoch.

    Raises InvalidArgument for anything else.
    """

    rule: ReportRule = ReportRule.HEADGATE
    suppress_rounds: int = 5
    tolerance_percent: int = 5
    event_min_interval_ms: int = 100
    event_change_percent: int = 10

    def __post_init__(self) -> None:
        object.__setattr__(self, "rule", one_of(ReportRule, self.rule, "rule"))
        int64(self.suppress_rounds, "suppress_rounds")
        int64(self.tolerance_percent, "tolerance_percent")
        at_least(1, self.event_min_interval_ms, "event_min_interval_ms")
        int64(self.event_change_percent, "event_change_percent")


@dataclass(frozen=True, slots=True)
class Measured:
    """Usage and the configuration version it was measured under: what a row says, as far as decisions look at it."""

    usage: Usage
    config_version: int = 0


def admitted_rate(count: int, epoch_ms: int) -> int:
    """A count over an epoch, a second, rounded up: no traffic is reported as none, and any as some.

    count: >= 0. epoch_ms: T, >= 1. Raises InvalidArgument for a negative count. Source: resource-groups 6.1.
    """
    return capped(_rounded_up(at_least(0, count, "count") * SECOND_MS, epoch_ms))


def offered_rate(count: int, last_quarter_count: int, epoch_ms: int) -> int:
    """First attempts a second: over the epoch, or over its last quarter where that is more.

    The quarter shows a demand that rose within the epoch. Counts >= 0; `epoch_ms`: T, >= 1. Raises InvalidArgument for
    a negative count. Source: resource-groups 6.1.
    """
    last_quarter = at_least(0, last_quarter_count, "last_quarter_count") * QUARTERS
    return capped(_rounded_up(max(at_least(0, count, "count"), last_quarter) * SECOND_MS, epoch_ms))


def moved(value: int | None, last: int | None, percent: int) -> bool:
    """Whether `value` differs from `last` by more than `percent` of `last`. Source: resource-groups 6.2."""
    if value is None or last is None:
        return (value is None) is not (last is None)
    if last == 0:
        return value > 0
    return abs(value - last) * 100 > percent * last


def decide_at_close(
    parameters: ReportParameters, current: Measured, last: Measured | None, rounds: int, *, leaving: bool = False
) -> ReportReason | None:
    """Why the row of a closed epoch is sent, None where it is suppressed: the first rule of the table that matches.

    last: the last row sent that no leave followed. rounds: k, epochs since then; any number where there is none.
    leaving: detached, or the broker shuts down. Source: resource-groups 6.2.
    """

    def routine(last: Measured) -> ReportReason | None:
        if parameters.suppress_rounds == 0:
            return ReportReason.EVERY
        if 0 < parameters.suppress_rounds <= rounds:
            return ReportReason.MANDATORY
        if _rises(last.usage.throttled, current.usage.throttled):
            return ReportReason.CLEARED
        return ReportReason.CHANGE if _changed(current.usage, last.usage, parameters.tolerance_percent) else None

    return _first_match(current, last, routine, leaving=leaving)


def decide_early(
    parameters: ReportParameters, current: Measured, last: Measured | None, since_ms: int, *, leaving: bool = False
) -> ReportReason | None:
    """Why a row is sent inside the epoch, None where it can wait: rules 1 to 5, then a change of demand.

    since_ms: time since the last row; any number where there is none. Nothing but a leave is sent before the least
    interval has passed. Source: resource-groups 6.2.
    """

    def demand_changed(last: Measured) -> ReportReason | None:
        (messages, of_bytes), (messages_before, bytes_before) = current.usage.demand, last.usage.demand
        percent = parameters.event_change_percent
        is_other = moved(messages, messages_before, percent) or moved(of_bytes, bytes_before, percent)
        return ReportReason.CHANGE if is_other else None

    reason = _first_match(current, last, demand_changed, leaving=leaving)
    too_soon = last is not None and since_ms < parameters.event_min_interval_ms
    return None if too_soon and reason is not ReportReason.LEAVE else reason


def decide_released(
    parameters: ReportParameters, counts: IntPair, last: IntPair | None, elapsed_ms: int, period_ms: int
) -> ReportReason | None:
    """The test of the released broker, on counts per period instead of rates.

    counts, last: messages and bytes of this period and of the last one reported, None before the first.
    elapsed_ms: time since that report, any number where there is none. period_ms: of one round, >= 1; in the released
    broker its publish interval. Source: resource-groups 6.2.
    """
    rounds = parameters.suppress_rounds
    if rounds == 0:
        return ReportReason.EVERY
    if rounds > 0 and (last is None or elapsed_ms >= period_ms * rounds):
        return ReportReason.MANDATORY
    pairs = zip(counts, last or (0, 0), strict=True)
    drifted = any(_drift(count, before, parameters.tolerance_percent) for count, before in pairs)
    return ReportReason.CHANGE if drifted else None


def _first_match(
    current: Measured,
    last: Measured | None,
    later_rules: Callable[[Measured], ReportReason | None],
    *,
    leaving: bool,
) -> ReportReason | None:
    """Rules 1 to 5, which hold at the close and inside an epoch; a rule that matches may say that nothing is sent."""
    if leaving:
        return None if last is None else ReportReason.LEAVE
    if current.usage.idle:
        return None if last is None or last.usage.idle else ReportReason.ZERO
    if last is None or last.usage.idle:
        return ReportReason.FIRST
    if current.config_version != last.config_version:
        return ReportReason.CONFIG
    if _rises(current.usage.throttled, last.usage.throttled):
        return ReportReason.THROTTLED
    return later_rules(last)


def _rises(flags: FlagPair, before: FlagPair) -> bool:
    return (flags[0] and not before[0]) or (flags[1] and not before[1])


def _changed(usage: Usage, last: Usage, percent: int) -> bool:
    values = (*usage.admitted, *usage.offered, *usage.limit)
    before = (*last.admitted, *last.offered, *last.limit)
    return any(moved(value, was, percent) for value, was in zip(values, before, strict=True))


def _drift(count: int, last: int, tolerance_percent: int) -> bool:
    """The released drift test: every operation rounds to IEEE single precision by itself. resource-groups 6.2"""
    if count <= 0:
        return False
    if last == 0 or tolerance_percent <= 0:
        return True
    percent = rounded(rounded(from_integer(abs(count - last)) * 100) / from_integer(last))
    return percent > tolerance_percent


def _rounded_up(amount: int, divisor: int) -> int:
    return -(-amount // divisor)
