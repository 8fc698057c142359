"""Whose traffic a limiter holds back: what exceeds a fair share of its rate. No table is read here."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

Limiter = tuple[str, str]
"""Scope and name: topic, broker or group; all limiters of topics are one, which nobody shares."""
OWN: Limiter = ("topic", "")
UNITS = MESSAGES, BYTES = "messages", "bytes"
SMALL = 10
"""So many times as much has the one who is at fault as a victim, at least."""
FEW_MARKS = 0.1
"""Of all marks of a limiter: a unit that ran out less often does not count."""
Amounts = Mapping[str, float]
"""In one unit, by name of a tenant or topic."""


class Second(NamedTuple):
    """What came for a limiter in a second in which it held somebody, by name; failed: the sum of what was given up.

    second_s: since 1970. begins: the limiter held nobody when anything came before.
    """

    second_s: int
    arrived: Amounts
    failed: float
    begins: bool


class Excess(NamedTuple):
    """What was left over after a second in which a limiter held somebody.

    is_within: all that came would have fit into the rate, so it was held for a shorter burst, or because the brokers'
    shares did not fit the load; by_name then goes by half of what came.
    """

    by_name: Amounts
    is_within: bool


def excesses(held: Iterable[Second], per_s: float) -> Iterator[tuple[int, Excess]]:
    """For each of the seconds, in order, in which a limiter held somebody: what exceeded a fair share, by name.

    The rate is shared out second by second, smallest demand first (max-min fairness). What is left of a demand is still
    there in the next second, whoever else was let in or charged meanwhile, until it is let in or fails, or a second
    comes in which the limiter holds nobody. So who has nothing left over would have been let in at once by a limiter
    that is fair: he is a victim of those who have. A backlog and a debt belong to who made them, not to who sends while
    they are worked off.
    """
    left: Amounts = {}
    before_s = 0
    for second_s, arrived, failed, begins in held:
        left = {} if begins else unserved(left, per_s * (second_s - before_s - 1))
        over = _without(unserved(_together(left, arrived), per_s), failed)
        if over or left:
            yield second_s, Excess(over or left, is_within=False)
        else:
            yield second_s, Excess(unserved(arrived, sum(arrived.values()) / 2), is_within=True)
        left, before_s = over, second_s


def unserved(demands: Amounts, capacity: float) -> dict[str, float]:
    """What is left of demands, those that were met left out: each gets as much as any other, or all that it wants."""
    over = {}
    ranked = sorted(demands.items(), key=lambda item: item[1])
    for place, (name, demand) in enumerate(ranked):
        part = min(demand, capacity / (len(ranked) - place))
        capacity -= part
        if demand > part:
            over[name] = demand - part
    return over


def ran_out(marks: Mapping[str, int]) -> tuple[str, ...]:
    """The units that ran out of a limiter, most often first. marks: how often each did; a few are left out."""
    least = sum(marks.values()) * FEW_MARKS
    return tuple(sorted((unit for unit in marks if marks[unit] >= least), key=lambda unit: (-marks[unit], unit)))


def _together(left: Amounts, arrived: Amounts) -> dict[str, float]:
    return {name: left.get(name, 0) + arrived.get(name, 0) for name in {**left, **arrived}}


def _without(over: dict[str, float], failed: float) -> dict[str, float]:
    """Each gives up as large a part."""
    whole = sum(over.values())
    return {name: amount * (1 - failed / whole) for name, amount in over.items()} if failed < whole else {}


TRAFFIC = pa.schema(
    [
        ("second_s", pa.int64()),
        ("broker", pa.string()),
        ("group", pa.string()),
        ("name", pa.string()),
        ("messages", pa.int64()),
        ("bytes", pa.int64()),
        ("failed_messages", pa.int64()),
        ("failed_bytes", pa.int64()),
        ("by_broker", pa.int64()),
        ("by_group", pa.int64()),
        ("held", pa.int64()),
    ]
)
"""What came in a second under a limiter of a broker or group. by_broker, by_group: publishes that one of these
throttled. held: whether anything of it waited, was throttled or failed, else 0.
"""


@dataclass(frozen=True)
class Traffic:
    """Rows of TRAFFIC, in any order."""

    rows: pa.Table

    def under(self, limiter: Limiter) -> pa.Table:
        """The rows that a limiter of a broker or group limits."""
        scope, name = limiter
        return self.rows.filter(pc.fill_null(pc.equal(self.rows[scope], name), False))

    def excesses(self, limiter: Limiter, unit: str, per_s: float) -> dict[int, Excess]:
        """By second in which it held anybody. unit: messages or bytes."""
        rows = self.under(limiter)
        is_held = pc.or_(pc.greater(rows[f"by_{limiter[0]}"], 0), pc.greater(rows["held"], 0))
        held = set(rows.filter(is_held)["second_s"].to_pylist())
        begins: dict[int, bool] = {}
        was_held = False
        for second_s in sorted(pc.unique(rows["second_s"]).to_pylist()):
            begins[second_s] = not was_held
            was_held = second_s in held
        rows = rows.filter(pc.is_in(rows["second_s"], pa.array(held, pa.int64())))
        grouped = rows.group_by(["second_s", "name"], use_threads=False).aggregate(
            [(unit, "sum"), (f"failed_{unit}", "sum")]
        )
        arrived: dict[int, dict[str, float]] = defaultdict(dict)
        failed: dict[int, float] = defaultdict(float)
        for second_s, name, came, given_up in zip(*grouped.to_pydict().values(), strict=True):
            arrived[second_s][name] = came or 0
            failed[second_s] += given_up or 0
        return dict(excesses((Second(at, arrived[at], failed[at], begins[at]) for at in sorted(held)), per_s))


@dataclass(frozen=True)
class Shared:
    """Who exceeded a fair share of a limiter while it held somebody: the excess in `unit`, by name.

    is_within: in none of these seconds did more come than the limiter's rate (Excess).
    """

    unit: str
    amounts: Amounts
    is_within: bool

    @classmethod
    def together(cls, several: Iterable["Shared"]) -> "Shared":
        """Of several times, in one unit; those within the rate do not count beside others."""
        found = list(several)
        over = [one for one in found if not one.is_within] or found
        amounts: dict[str, float] = defaultdict(float)
        for one in over:
            for name, amount in one.amounts.items():
                amounts[name] += amount
        return cls(over[0].unit, amounts, over[0].is_within)

    def part(self, name: str) -> float:
        """Of the excess."""
        return self.amounts.get(name, 0) / sum(self.amounts.values())

    @property
    def largest(self) -> str:
        """Whose part is the largest; of equal ones the first by name."""
        return min(self.amounts, key=lambda name: (-self.amounts[name], name))

    def is_victim(self, name: str) -> bool:
        """Whether it has less than a tenth of what the largest has."""
        return SMALL * self.amounts.get(name, 0) < self.amounts[self.largest]


class Contention:
    """Who exceeds a fair share of which limiter.

    rate_of: of a limiter in a unit, per second, over all brokers that `traffic` tells of; 0 where none is known, so
    that all that came counts. since_s: earlier seconds have an effect on later ones, and are not asked about.
    """

    def __init__(self, traffic: Traffic, rate_of: Callable[[Limiter, str], float], since_s: int = 0) -> None:
        self._traffic, self._since_s = traffic, since_s
        self._excesses = cache(lambda limiter, unit: traffic.excesses(limiter, unit, rate_of(limiter, unit)))

    def held_seconds(self, name: str, limiter: Limiter) -> list[int]:
        """Those in which it was held, in order."""
        rows = self._traffic.under(limiter)
        is_held = pc.and_(pc.equal(rows["name"], name), pc.greater(rows["held"], 0))
        seconds = pc.unique(rows.filter(is_held)["second_s"]).to_pylist()
        return sorted(second_s for second_s in seconds if second_s >= self._since_s)

    def rivals(self, name: str, limiter: Limiter) -> int:
        """How many others sent anything."""
        rows = self._traffic.under(limiter)
        rows = rows.filter(pc.greater_equal(rows["second_s"], self._since_s))
        return len({*rows["name"].to_pylist()} - {name})

    def shared(
        self, name: str, limiter: Limiter, ran_out: Sequence[str], seconds: Sequence[int] | None = None
    ) -> Shared | None:
        """In the unit that ran out. None where nothing of that unit came.

        seconds: those asked about; without them all in which `name` is held. ran_out: units, most often first. Of
        several that counts in which `name` is no victim, if there is one: nobody who is at fault in one unit is a
        victim in the other.
        """
        seconds = self.held_seconds(name, limiter) if seconds is None else seconds
        of_units = [found for unit in ran_out if (found := self._of(limiter, unit, seconds)) is not None]
        at_fault = (found for found in of_units if not found.is_victim(name))
        return next(at_fault, of_units[0] if of_units else None)

    def _of(self, limiter: Limiter, unit: str, seconds: Sequence[int]) -> Shared | None:
        by_second = self._excesses(limiter, unit)
        found = [by_second[second_s] for second_s in seconds if second_s in by_second]
        return Shared.together(Shared(unit, *one) for one in found) if any(one.by_name for one in found) else None
