"""How good the limits of a played trace were, beside the exact max-min split of each round (resource-groups 12.2)."""

from collections.abc import Sequence
from dataclasses import dataclass

from headgate.conformance.oracles.quota_rounds.trace import GONE, PlayedRound
from headgate.core.quota.allocation.exact_split import Split, exact_split


@dataclass(frozen=True, slots=True)
class Measures:
    """rounds_to_*: rounds from the event until the error stays within 10 or 1 percent; None: not within the trace.

    worst_overshoot: part of the quota. utilisation, useful_share, jain_end: 0 to 1. jaggedness: admitted rates going up
    and down more than the split does, in quotas. Source: resource-groups 12.2.
    """

    rounds_to_10: int | None
    rounds_to_1: int | None
    worst_overshoot: float
    utilisation: float
    useful_share: float
    jain_end: float
    jaggedness: float


def measure(
    played: Sequence[PlayedRound], weights: Sequence[int], event_round: int, window: int = 60, hold: int = 15
) -> Measures:
    """The measures of the rounds from `event_round` on.

    weights: of every broker. window: rounds looked at, cut at the end of the trace. hold: rounds for which an error has
    to stay low. Where the window holds no round to judge by, a measure has its best value.
    Source: resource-groups 12.2.
    """
    splits = [
        exact_split(round_.quota, round_.demand, weights, [limit != GONE for limit in round_.limits])
        for round_ in played
    ]
    judged = range(event_round, min(event_round + window, len(played)))
    in_window = [(played[number], splits[number]) for number in judged]
    sharing = [(round_.admitted, split) for round_, split in in_window if split.total > 0]
    return Measures(
        rounds_to_10=_rounds_to(10, played, splits, event_round, hold),
        rounds_to_1=_rounds_to(1, played, splits, event_round, hold),
        worst_overshoot=max(
            (max(0, sum(round_.admitted) - round_.quota) / round_.quota for round_, _ in in_window if round_.quota),
            default=0.0,
        ),
        utilisation=_mean([min(sum(used) * split.scale, split.total) / split.total for used, split in sharing]),
        useful_share=_mean([_useful(used, split) / split.total for used, split in sharing]),
        jain_end=_jain(*in_window[-1]) if in_window else 1.0,
        jaggedness=_jaggedness(played, splits, judged),
    )


def _rounds_to(
    percent: int, played: Sequence[PlayedRound], splits: Sequence[Split], event_round: int, hold: int
) -> int | None:
    """The first of `hold` rounds in a row, from the event on, whose error is at most `percent`."""
    held = 0
    for number in range(event_round, len(played)):
        held = held + 1 if _error_within(percent, played[number].admitted, splits[number]) else 0
        if held == hold:
            return number - hold + 1 - event_round
    return None


def _error_within(percent: int, used: Sequence[int], split: Split) -> bool:
    """Whether the sum of |a - x*| is at most that part of the sum of x*, in integers."""
    if split.total == 0:
        return not any(used)
    off = sum(abs(amount * split.scale - part) for amount, part in zip(used, split.parts, strict=True))
    return off * 100 <= percent * split.total


def _useful(used: Sequence[int], split: Split) -> int:
    """What was admitted within the split, in its scale."""
    return sum(min(amount * split.scale, part) for amount, part in zip(used, split.parts, strict=True))


def _jain(round_: PlayedRound, split: Split) -> float:
    """Jain's index of a_i / x*_i over the brokers that have a part; 1 if there is none, 0 if none admits anything."""
    parts = zip(round_.admitted, split.parts, strict=True)
    ratios = [amount * split.scale / part for amount, part in parts if part > 0]
    if not ratios:
        return 1.0
    squares = sum(ratio * ratio for ratio in ratios)
    return sum(ratios) ** 2 / (len(ratios) * squares) if squares > 0 else 0.0


def _jaggedness(played: Sequence[PlayedRound], splits: Sequence[Split], judged: range) -> float:
    if not judged or not played[judged[-1]].quota:
        return 0.0
    quota, steps = played[judged[-1]].quota or 1, [number for number in judged if number > 0]
    used = sum(_moved(played[number].admitted, 1, played[number - 1].admitted, 1) for number in steps)
    wanted = 0.0
    for number in steps:
        now, before = splits[number], splits[number - 1]
        wanted += _moved(now.parts, now.scale, before.parts, before.scale)
    return max(0.0, used - wanted) / quota


def _moved(now: Sequence[int], now_scale: int, before: Sequence[int], before_scale: int) -> float:
    """The sum of changes from one round to the next."""
    return sum(abs(new / now_scale - old / before_scale) for new, old in zip(now, before, strict=True))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 1.0
