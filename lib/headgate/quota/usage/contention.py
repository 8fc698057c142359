"""Whose fault it is that a limiter holds somebody in some seconds: who exceeded a fair share, or why if nobody did."""

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from operator import itemgetter
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.topic_names import without_partitions
from headgate.quota.usage.excess import UNITS, Excesses, Limiter, Traffic, by_second
from headgate.quota.usage.fair_share import SMALL, Amounts


class Reason(StrEnum):
    """Why somebody was held though nobody exceeded a fair share.

    BACKLOG: another limiter had held some of it, and let it go at once. SHARES: it fits into the quota, but not into
    the shares of brokers. ABOVE: somewhat more than the rate came, which fits into what was saved up. BLOCKED: the
    quota is 0.
    """

    BACKLOG = "backlog"
    SHARES = "shares"
    ABOVE = "above"
    BLOCKED = "blocked"


class Within(NamedTuple):
    """most: who sent most beyond what it usually sends, if that is known."""

    reason: Reason
    most: str | None = None


@dataclass(frozen=True)
class Shared:
    """Who exceeded a fair share of a limiter while it held somebody: the excess in `unit`, by name."""

    unit: str
    amounts: Amounts

    @classmethod
    def together(cls, several: Sequence["Shared"]) -> "Shared":
        """Of several times, in one unit."""
        amounts: dict[str, float] = defaultdict(float)
        for one in several:
            for name, amount in one.amounts.items():
                amounts[name] += amount
        return cls(several[0].unit, amounts)

    @property
    def is_within(self) -> bool:
        """Whether nobody did, in any of these seconds (`excesses`)."""
        return not self.amounts

    def part(self, name: str) -> float:
        """Of the excess, 0 without any."""
        return self.amounts[name] / sum(self.amounts.values()) if name in self.amounts else 0

    @property
    def largest(self) -> str:
        """Whose part is the largest; of equal ones the first by name."""
        return min(self.amounts, key=lambda name: (-self.amounts[name], name))

    @property
    def sharers(self) -> list[str]:
        """Who is at fault, largest part first."""
        ranked = sorted(self.amounts, key=lambda name: (-self.amounts[name], name))
        return [name for name in ranked if not self.is_victim(name)]

    def is_victim(self, name: str) -> bool:
        """Whether it has less than a tenth of what the largest has; of nobody where there is no excess."""
        return SMALL * self.amounts.get(name, 0) < max(self.amounts.values(), default=0)


class Contention:
    """Who exceeds a fair share of which limiter.

    rate_of: of a limiter in a unit, per second, over all brokers that `traffic` tells of; 0 where none is known, so
    that all that came counts. since_s: earlier seconds have an effect on later ones, and are not asked about.
    shares: limiters of which a broker had less than the whole quota. blocked: those with a quota of 0.
    """

    def __init__(
        self,
        traffic: Traffic,
        rate_of: Callable[[Limiter, str], float],
        since_s: int = 0,
        shares: Container[Limiter] = frozenset(),
        blocked: Container[Limiter] = frozenset(),
    ) -> None:
        self.shares, self._blocked = shares, blocked
        self._rate_of, self._since_s = rate_of, since_s
        self._under, self._held_seconds = traffic.under, traffic.held_seconds
        self._traffic = traffic
        self._of_limiter = cache(self._excesses_of)
        self._backlogs = cache(
            lambda limiter: set(traffic.under(limiter).filter(pc.field("before"))["second_s"].to_pylist())
        )
        self._came = cache(lambda limiter, unit: by_second(traffic.under(limiter), unit))

    def _excesses_of(self, limiter: Limiter) -> dict[str, Excesses]:
        rates = {unit: self._rate_of(limiter, unit) for unit in UNITS}
        limited = {unit for unit in UNITS if rates[unit]} | self._traffic.ran_out(limiter)
        return self._traffic.excesses(limiter, {unit: rates[unit] for unit in UNITS if unit in (limited or UNITS)})

    def _excesses(self, limiter: Limiter, unit: str) -> Excesses:
        return self._of_limiter(limiter).get(unit, Excesses({}, []))

    def held_seconds(self, name: str, limiter: Limiter) -> list[int]:
        """Those in which it was held, in order."""
        return [second_s for second_s in self._traffic.places(limiter).get(name, ()) if second_s >= self._since_s]

    def let_through(self, name: str, limiter: Limiter, unit: str, topic: str | None = None) -> float:
        """The part of what it sent that limits of its topics let through, while this limiter held it.

        topic: all partitions of that alone.
        """
        seconds = pa.array(self.held_seconds(name, limiter), pa.int64())
        rows = self._under(limiter)
        rows = rows.filter(pc.and_(pc.equal(rows["name"], name), pc.is_in(rows["second_s"], seconds)))
        if topic is not None:
            rows = rows.filter(pc.equal(without_partitions(rows["topic"]), topic))
        of_limited = rows.filter(pc.is_in(rows["topic"], self._traffic.limited_topics))
        kept_back = (pc.sum(of_limited[f"sent_{unit}"]).as_py() or 0) - (pc.sum(of_limited[unit]).as_py() or 0)
        sent = pc.sum(rows[f"sent_{unit}"]).as_py() or 0
        return 1 - kept_back / sent if sent else 1.0

    def has_excess(self, limiter: Limiter, second_s: int) -> bool:
        """Whether anybody exceeded a fair share of any unit that had run out in this second."""
        return any(self._excesses(limiter, unit).by_second.get(second_s) for unit in UNITS)

    def most_in(self, name: str, limiter: Limiter, unit: str, seconds: Sequence[int]) -> tuple[float, int]:
        """How much it sent in that of these seconds in which it sent most, and in which; the first counts.

        Of those in which its part of the excess is the largest, if there are any.
        """
        by_second, came = self._excesses(limiter, unit).by_second, self._came(limiter, unit)
        leads = [at for at in seconds if by_second.get(at) and Shared(unit, by_second[at]).largest == name]
        return max(((came.get(at, {}).get(name, 0), at) for at in leads or seconds), key=itemgetter(0))

    def why_within(self, limiter: Limiter, unit: str, seconds: Sequence[int]) -> Within:
        """Why it held anybody in these seconds, though nobody exceeded a fair share."""
        if limiter in self._blocked:
            return Within(Reason.BLOCKED)
        stretch, usual = self._stretch_at(limiter, unit, seconds[0])
        last_s = seconds[0]
        while last_s + 1 in stretch and not self.has_excess(limiter, last_s + 1):
            last_s += 1
        if not self._backlogs(limiter).isdisjoint(range(seconds[0], last_s + 1)):
            return Within(Reason.BACKLOG)
        if limiter in self.shares and not self._is_above(limiter, unit, range(stretch.start, last_s + 1)):
            return Within(Reason.SHARES)
        return Within(Reason.ABOVE, self._most_above(usual, limiter, unit, seconds[0]))

    def _stretch_at(self, limiter: Limiter, unit: str, second_s: int) -> tuple[range, Amounts]:
        """The stretch of a second with what is usual in it; of a second outside of any it is that alone."""
        stretches = self._excesses(limiter, unit).usual
        return next((one for one in stretches if second_s in one[0]), (range(second_s, second_s + 1), {}))

    def _is_above(self, limiter: Limiter, unit: str, seconds: range) -> bool:
        """Whether more came than the rate."""
        came = self._came(limiter, unit)
        return sum(sum(came.get(at, {}).values()) for at in seconds) > self._rate_of(limiter, unit) * len(seconds)

    def _most_above(self, usual: Amounts, limiter: Limiter, unit: str, second_s: int) -> str | None:
        """Who sent most beyond what it usually sends, by a SMALL part of the rate or more; None if none is known."""
        if not usual:
            return None
        above = {name: -amount for name, amount in usual.items()}
        for name, amount in self._came(limiter, unit).get(second_s, {}).items():
            above[name] = above.get(name, 0) + amount
        most = min(above, key=lambda name: (-above[name], name))
        return most if SMALL * above[most] >= self._rate_of(limiter, unit) and above[most] > 0 else None

    def without_usual(self, limiter: Limiter, unit: str) -> range:
        """The seconds in which nothing is known of what is usual, as the limiter was overloaded from the start."""
        return next((stretch for stretch, usual in self._excesses(limiter, unit).usual[:1] if not usual), range(0))

    def has_rate(self, limiter: Limiter) -> bool:
        """Whether its rate is known in any unit."""
        return any(self._rate_of(limiter, unit) for unit in UNITS)

    def rivals(self, name: str, limiter: Limiter) -> int:
        """How many others sent anything."""
        rows = self._under(limiter)
        rows = rows.filter(pc.greater_equal(rows["second_s"], self._since_s))
        return len({*rows["name"].to_pylist()} - {name})

    def shared(
        self, name: str, limiter: Limiter, ran_out: Iterable[str], seconds: Sequence[int] | None = None
    ) -> tuple[Shared, ...]:
        """In each unit that ran out, if more came than a fair share; first that in which `name` has most.

        If no more did, what is left over of the other unit counts: what is held by it for long is too much at once
        afterwards. Without that, in those that ran out, within the rate. ran_out: units, most often first; those count
        that ran out on a broker where `name` was held then. seconds: those asked about; without them all in which
        `name` is held.
        """
        if limiter in self._blocked:
            return (Shared(next(iter(ran_out), UNITS[0]), {}),)
        seconds = self.held_seconds(name, limiter) if seconds is None else seconds
        where_held = self._traffic.ran_out_of(name, limiter, seconds)
        ran_out = list(ran_out)
        ran_out = [unit for unit in ran_out if unit in where_held] or ran_out
        others = [unit for unit in UNITS if ran_out and unit not in ran_out and self._rate_of(limiter, unit)]
        within = self._each(limiter, ran_out, seconds)
        over = [shared for shared in within if not shared.is_within]
        over = over or [shared for shared in self._each(limiter, others, seconds) if not shared.is_within] or within
        return tuple(sorted(over, key=lambda shared: -shared.part(name)))

    def _each(self, limiter: Limiter, units: Iterable[str], seconds: Sequence[int]) -> list[Shared]:
        found = (self._of(limiter, unit, seconds) for unit in units)
        return [shared for shared in found if shared is not None]

    def _of(self, limiter: Limiter, unit: str, seconds: Sequence[int]) -> Shared | None:
        by_second = self._excesses(limiter, unit).by_second
        found = [by_second[second_s] for second_s in seconds if second_s in by_second]
        found = found or self._last(limiter, by_second, seconds)
        is_known = any(found) or (found and self._rate_of(limiter, unit))
        return Shared.together([Shared(unit, one) for one in found]) if is_known else None

    def _last(self, limiter: Limiter, by_second: Mapping[int, Amounts], seconds: Sequence[int]) -> list[Amounts]:
        """What was left over last in the same hold, before these seconds."""
        held = self._held_seconds(limiter)
        before_s = seconds[0] - 1 if seconds else 0
        while before_s in held and before_s not in by_second:
            before_s -= 1
        return [by_second[before_s]] if before_s in by_second else []
