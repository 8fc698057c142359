"""What exceeds a fair share of a limiter's rate, second by second. Pure: no table."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

LEAST = 1e-9
"""A smaller part of a demand is an error of rounding."""
SMALL = 10
"""So many times as much has the one who is at fault as a victim, at least."""
Amounts = Mapping[str, float]
"""In one unit, by name of a tenant or topic."""


class Second(NamedTuple):
    """What came for a limiter in a second in which it held somebody or used up what it had saved, by name.

    second_s: since 1970. is_held: the former. let_in, failed: at the end of a wait, if any; None in admitted traffic,
    where nothing waits. usual: what came a second in the USUAL_S before, where a limiter that was full before begins to
    be used up; None elsewhere.
    """

    second_s: int
    is_held: bool
    arrived: Amounts
    let_in: Amounts | None
    failed: Amounts | None
    usual: Amounts | None


def excesses(seconds: Iterable[Second], per_s: float) -> Iterator[tuple[int, Amounts]]:
    """For each of the seconds, in order, in which a limiter held somebody: what exceeded a fair share, by name.

    That is what was left over as the second began, and what came to that in it. It is empty where nobody exceeded one:
    somebody was held for a burst shorter than a second, for a backlog that another limiter let go at once, or because
    the brokers' shares did not fit the load.

    The rate, and what was saved up of it for a second at most, is shared out second by second: each gets what it
    usually sends, and of the rest as much as any other, or all that it wants beyond that (max-min fairness). What is
    left of a demand is still there in the next second, whoever else was let in or charged meanwhile, until a second
    comes in which the limiter holds nobody. So who has nothing left over would have been let in at once by a limiter
    that is fair: he is a victim of those who have. A backlog and a debt belong to who made them, not to who sends while
    they are worked off.

    In offered traffic it is known what waits and what fails, which is not left over any more. Who has exceeded a fair
    share is at fault as well until all that he had sent by then has been let in or has failed; that part of his excess
    is what is left of that, but no more than he exceeded it by. If others are still held after that, it stays as it was
    last. Who exceeded it by less than a SMALL part of what another did in the same hold is at no fault.
    """
    fair: Amounts = {}
    last: Amounts = {}
    before: Amounts = {}
    kept: Amounts = {}
    came: dict[str, float] = defaultdict(float)
    went: dict[str, float] = defaultdict(float)
    sent: dict[str, float] = {}  # by who exceeded a fair share, up to when he did last
    most: dict[str, float] = {}  # by how much at most
    before_s, saved = 0, 0.0
    for second_s, is_held, arrived, let_in, failed, usual in seconds:
        if usual is not None or not is_held:
            fair = before = last = {}
            for of_hold in (came, went, sent, most):
                of_hold.clear()
        if usual is not None:
            before_s, saved = second_s - 1, per_s
            too_much = unserved(usual, per_s)
            kept = {name: amount - too_much.get(name, 0) for name, amount in usual.items()}
        rest = saved + per_s * (second_s - before_s - 1)
        left = unserved(fair, rest)
        saved = min(per_s, rest - _served(fair, left))
        capacity, wanted = saved + per_s, _together(left, arrived)
        over = fair = unserved(wanted, capacity, kept)
        saved = min(per_s, capacity - _served(wanted, fair))
        if let_in is not None and failed is not None:
            for name, amount in arrived.items():
                came[name] += amount
                went[name] = min(went[name] + let_in.get(name, 0) + failed.get(name, 0), came[name])
            fair = {name: waits for name, amount in fair.items() if (waits := amount - failed.get(name, 0)) > 0}
            sent |= {name: came[name] for name in fair}
            most |= {name: max(amount, most.get(name, 0)) for name, amount in fair.items()}
            over = {
                name: waits
                for name, amount in sent.items()
                if (waits := max(fair.get(name, 0), min(amount - went[name], most[name]))) > 0
                and most[name] * SMALL >= max(most.values())
            }
        before_s = second_s
        if is_held:
            last = {**over, **before} or last
            before = over
            yield second_s, last
        else:
            fair, saved = {}, min(per_s, max(capacity - sum(arrived.values()), 0))


def unserved(demands: Amounts, capacity: float, kept: Amounts | None = None) -> dict[str, float]:
    """What is left of demands, those that were met left out.

    kept: what some get in any case, no more than the capacity in all. Of the rest each gets as much as any other, or
    all that it wants beyond that.
    """
    kept = kept or {}
    beyond = {name: max(demand - kept.get(name, 0), 0) for name, demand in demands.items()}
    capacity -= sum(demand - beyond[name] for name, demand in demands.items())
    left = {}
    ranked = sorted(beyond.items(), key=lambda item: item[1])
    for place, (name, amount) in enumerate(ranked):
        part = min(amount, capacity / (len(ranked) - place))
        capacity -= part
        if amount - part > LEAST * demands[name]:
            left[name] = amount - part
    return left


def _served(demands: Amounts, left: Amounts) -> float:
    return sum(demands.values()) - sum(left.values())


def _together(left: Amounts, arrived: Amounts) -> dict[str, float]:
    return {name: left.get(name, 0) + arrived.get(name, 0) for name in {**left, **arrived}}
