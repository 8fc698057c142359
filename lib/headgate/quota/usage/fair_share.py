"""What exceeds a fair share of a limiter's rates, second by second. Pure: no table."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

LEAST = 1e-9
"""A smaller part of a demand is an error of rounding."""
SMALL = 10
"""So many times as much has the one who is at fault as a victim, at least."""
Amounts = Mapping[str, float]
"""In one unit, by name of a tenant or topic."""
ByUnit = Mapping[str, Amounts]


class Second(NamedTuple):
    """What came for a limiter in a second in which it held somebody or used up what it had saved, by unit and name.

    second_s: since 1970. is_held: the former; units: that had run out then. let_in, failed: at the end of a wait, if
    any; None in admitted traffic, where nothing waits. usual: what came a second in the USUAL_S before, where a limiter
    that was full before begins to be used up; None elsewhere.
    """

    second_s: int
    is_held: bool
    units: frozenset[str]
    arrived: ByUnit
    let_in: ByUnit | None
    failed: ByUnit | None
    usual: ByUnit | None


def excesses(seconds: Iterable[Second], per_s: Amounts) -> Iterator[tuple[int, ByUnit]]:
    """For each of the seconds, in order, in which a limiter held somebody, and each unit that had run out of it: what
    exceeded a fair share, by name. per_s: the rate in each unit that is limited.

    That is what was left over as the second began, and what came to that in it. It is empty where nobody exceeded one:
    somebody was held for a burst shorter than a second, for a backlog that another limiter or unit let go at once, or
    because the brokers' shares did not fit the load.

    The rate, and what was saved up of it for a second at most, is shared out second by second: each gets what it
    usually sends, and of the rest as much as any other, or all that it wants beyond that (max-min fairness). What is
    left of a demand is still there in the next second, whoever else was let in or charged meanwhile, until a second
    comes in which the limiter holds nobody. So who has nothing left over would have been let in at once by a limiter
    that is fair: he is a victim of those who have. A backlog and a debt belong to who made them, not to who sends while
    they are worked off. Each unit is shared out as if there were no other.

    In offered traffic it is known what waits and what fails, which is not left over any more. Who has exceeded a fair
    share is at fault as well until all that he had sent by then has been let in or has failed; that part of his excess
    is what is left of that, but no more than he exceeded it by then. If others are still held after that, it stays as
    it was last. Who exceeds it by less than a SMALL part of what another did in the same hold, less what has failed of
    that, is at no fault.
    """
    units = {unit: _Unit(rate) for unit, rate in per_s.items()}
    before_s = 0
    for second in seconds:
        if second.usual is not None:
            before_s = second.second_s - 1
        found = {}
        for name, unit in units.items():
            if second.usual is not None or not second.is_held:
                unit.forget()
            if second.usual is not None:
                unit.begin(second.usual[name])
            over = unit.serve(second.arrived[name], second.second_s - before_s - 1)
            if second.let_in is not None and second.failed is not None:
                unit.left = _without(over, second.failed[name])
                over = unit.waiting(second.arrived[name], second.let_in[name], second.failed[name])
            if not second.is_held:
                unit.forget()
            elif name in second.units:
                found[name] = unit.told(over)
            else:
                unit.last = unit.before = {}
        before_s = second.second_s
        if second.is_held:
            yield second.second_s, found


class _Unit:
    """saved: of the rate; left: over, by name. kept: what each usually sends, as far as that fits into the rate.

    came, went: since the hold began, by name. exceeded: by how much a fair share last when that was no less than what
    still waited of an excess before, and what had come by then; most: by how much at most, less what has failed since.
    before: the excess in the second before; last: that was told last.
    """

    def __init__(self, per_s: float) -> None:
        self.per_s = per_s
        self.saved = 0.0
        self.kept: Amounts = {}
        self.came: dict[str, float] = defaultdict(float)
        self.went: dict[str, float] = defaultdict(float)
        self.exceeded: dict[str, tuple[float, float]] = {}
        self.most: dict[str, float] = {}
        self.forget()

    def forget(self) -> None:
        """As a hold ends."""
        self.left: Amounts = {}
        self.last: Amounts = {}
        self.before: Amounts = {}
        for of_hold in (self.came, self.went, self.exceeded, self.most):
            of_hold.clear()

    def begin(self, usual: Amounts) -> None:
        """Full again, with what was usual until then."""
        too_much = unserved(usual, self.per_s)
        self.saved = self.per_s
        self.kept = {name: amount - too_much.get(name, 0) for name, amount in usual.items()}

    def serve(self, arrived: Amounts, pause_s: int) -> Amounts:
        """What is left over in the next second after a pause."""
        self._serve(self.left, self.saved + self.per_s * pause_s, {})
        self._serve(_together(self.left, arrived), self.saved + self.per_s, self.kept)
        return self.left

    def _serve(self, wanted: Amounts, capacity: float, kept: Amounts) -> None:
        self.left = unserved(wanted, capacity, kept)
        self.saved = min(self.per_s, capacity - sum(wanted.values()) + sum(self.left.values()))

    def waiting(self, arrived: Amounts, let_in: Amounts, failed: Amounts) -> Amounts:
        """The excess, with what waits of all that was sent by who exceeded a fair share."""
        for name, amount in arrived.items():
            self.came[name] += amount
            self.went[name] = min(self.went[name] + let_in.get(name, 0) + failed.get(name, 0), self.came[name])
        waits = {name: min(amount, sent - self.went[name]) for name, (amount, sent) in self.exceeded.items()}
        for name, amount in self.left.items():
            if amount >= waits.get(name, 0):
                self.exceeded[name] = amount, self.came[name]
                waits[name] = amount
        for name, most in self.most.items():
            self.most[name] = max(most - failed.get(name, 0), 0)
        self.most |= {name: max(amount, self.most.get(name, 0)) for name, amount in self.left.items()}
        largest = max(self.most.values(), default=0)
        return {name: amount for name, amount in waits.items() if amount > 0 and self.most[name] * SMALL >= largest}

    def told(self, over: Amounts) -> Amounts:
        """The excess, with what was left over as the second began; as it was last if there is none."""
        self.last = {**over, **self.before} or self.last
        self.before = over
        return self.last


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


def _without(amounts: Amounts, failed: Amounts) -> dict[str, float]:
    return {name: waits for name, amount in amounts.items() if (waits := amount - failed.get(name, 0)) > 0}


def _together(left: Amounts, arrived: Amounts) -> dict[str, float]:
    return {name: left.get(name, 0) + arrived.get(name, 0) for name in {**left, **arrived}}
