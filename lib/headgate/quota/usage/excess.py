"""Whose traffic a limiter holds back: which seconds it held, and who exceeded a fair share of its rate in them."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.quota.usage.fair_share import SMALL, Amounts, ByUnit, Second, excesses

Limiter = tuple[str, str]
"""Scope and name: topic, broker or group; all limiters of topics are one, which nobody shares."""
OWN: Limiter = ("topic", "")
UNITS = MESSAGES, BYTES = "messages", "bytes"
PREFIXES = "", "let_in_", "failed_"
"""Begin the names of columns of TRAFFIC in each unit: what came, was let in, failed."""
USUAL_S, LEAST_USUAL_S = 10, 3
"""So long before more than the rate begins to come, what a tenant sends is what it usually sends; of less than the
latter nothing is known.
"""


def ran_out(marks: Mapping[str, int]) -> list[str]:
    """The units that ran out of a limiter, most often first. marks: how often each did."""
    return sorted(marks, key=lambda unit: (-marks[unit], unit))


SCOPES = ("topic", "broker", "group")
TRAFFIC = pa.schema(
    [
        ("second_s", pa.int64()),
        ("broker", pa.string()),
        ("group", pa.string()),
        ("name", pa.string()),
        ("messages", pa.int64()),
        ("bytes", pa.int64()),
        ("let_in_messages", pa.int64()),
        ("let_in_bytes", pa.int64()),
        ("failed_messages", pa.int64()),
        ("failed_bytes", pa.int64()),
        *((f"by_{scope}", pa.int64()) for scope in SCOPES),
        ("held", pa.int64()),
    ]
)
"""What came in a second under a limiter of a broker or group.

let_in, failed: null in admitted traffic. by: publishes that a limiter of the scope throttled.
held: whether anything of it waited, was throttled or failed, else 0.
"""


RanOut = Mapping[tuple[Limiter, str], Mapping[str, Sequence[int]]]
"""Of a limiter on a broker, the seconds in which it marked anybody as a unit had run out, in order, by unit."""
ENDS_S = 10
"""A unit has not run out any more if for so long only the other one did."""


def limiter_of(row: Mapping[str, Any]) -> Limiter:
    """Of a row of marks, or of a sum of them by scope and limiter."""
    return OWN if row["scope"] == OWN[0] else (row["scope"], row["limiter"])


def units_of(row: Mapping[str, Any]) -> Sequence[str]:
    """What had run out, of a sum of marks by unit and too (topic_query.RAN_OUT, RAN_OUT_TOO)."""
    return UNITS if row["too"] else (row["unit"],)


def ran_out_by(marks: Iterable[Mapping[str, Any]]) -> RanOut:
    """marks: sums by scope, limiter, broker, second_s, unit and too."""
    found: dict[tuple[Limiter, str], dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for row in marks:
        for unit in units_of(row):
            found[limiter_of(row), row["broker"]][unit].add(row["second_s"])
    return {of: {unit: sorted(seconds) for unit, seconds in by_unit.items()} for of, by_unit in found.items()}


class Excesses(NamedTuple):
    """by_second: in which a limiter held anybody (fair_share.excesses).

    usual: in each stretch (`_stretches`), empty where it is not known.
    """

    by_second: dict[int, Amounts]
    usual: list[tuple[range, Amounts]]


class Traffic:
    """rows: of TRAFFIC, in any order. ran_out: of a limiter and broker that it does not know, each unit may have."""

    def __init__(self, rows: pa.Table, ran_out: RanOut | None = None) -> None:
        self.rows = rows
        self._ran_out = ran_out or {}
        self.under = cache(self._under)
        self.held_seconds = cache(self._held_seconds)

    def _under(self, limiter: Limiter) -> pa.Table:
        """The rows that a limiter of a broker or group limits. held: whether this limiter held them, by `_holds`.

        before: whether it did so after another one, in the same hold. Of what another one holds comes what that lets
        in; after it, no less than that.
        """
        scope, name = limiter
        rows = self.rows.filter(pc.fill_null(pc.equal(self.rows[scope], name), False))
        held, before = _holds(rows, scope)
        is_elsewhere = pc.and_(pc.greater(rows["held"], 0), pc.equal(held, 0))
        for unit in UNITS:
            let_in = pc.coalesce(rows[f"let_in_{unit}"], rows[unit])
            came = pc.if_else(before, pc.max_element_wise(rows[unit], let_in), rows[unit])
            came = pc.if_else(is_elsewhere, let_in, came)
            rows = rows.set_column(rows.schema.get_field_index(unit), unit, came)
        return rows.set_column(rows.schema.get_field_index("held"), "held", held).append_column("before", before)

    def _held_seconds(self, limiter: Limiter) -> set[int]:
        """Those in which it held anybody."""
        return self._held(self.under(limiter), limiter, None)

    def _held(self, rows: pa.Table, limiter: Limiter, unit: str | None) -> set[int]:
        """The seconds in which it held anybody on a broker where the unit had run out; None: whatever had."""
        rows = rows.filter(pc.greater(rows["held"], 0))
        if unit is None:
            return set(rows["second_s"].to_pylist())
        places = rows.group_by(["broker", "second_s"], use_threads=False).aggregate([]).to_pydict()
        return {
            second_s
            for broker, second_s in zip(places["broker"], places["second_s"], strict=True)
            if self._has_run_out(limiter, broker, second_s, unit)
        }

    def _has_run_out(self, limiter: Limiter, broker: str, second_s: int, unit: str) -> bool:
        """Whether it had by then, and not only the other one for ENDS_S."""
        by_unit = self._ran_out.get((limiter, broker), {})
        last = {
            one: seconds[place - 1]
            for one, seconds in by_unit.items()
            if (place := bisect_right(seconds, second_s)) > 0
        }
        return not last or (unit in last and last[unit] >= max(last.values()) - ENDS_S)

    def excesses(self, limiter: Limiter, per_s: Amounts) -> dict[str, Excesses]:
        """By unit. per_s: the limiter's rate in each unit that it limits."""
        rows = self.under(limiter)
        held = {unit: self._held(rows, limiter, unit) for unit in per_s}
        all_held = self.held_seconds(limiter)
        all_seconds = sorted(pc.unique(rows["second_s"]).to_pylist())
        stretches = _stretches(rows, all_held, per_s)
        asked = set[int]().union(*stretches) & set(all_seconds)
        before = {one.start - ago for one in stretches for ago in range(1, USUAL_S + 1)}
        rows = rows.filter(pc.is_in(rows["second_s"], pa.array(asked | before, pa.int64())))
        came, let_in, failed = ({unit: _by_second(rows, f"{what}{unit}") for unit in per_s} for what in PREFIXES)
        usual = {unit: _usual(stretches, came[unit], all_held) for unit in per_s}
        has_waits = not rows["let_in_messages"].null_count
        begins = {one.start for one in stretches}
        seconds = (
            Second(
                at,
                at in all_held,
                frozenset(unit for unit in per_s if at in held[unit]),
                _at(came, at),
                _at(let_in, at) if has_waits else None,
                _at(failed, at) if has_waits else None,
                {unit: usual[unit][at] for unit in per_s} if at in begins else None,
            )
            for at in sorted(asked)
        )
        found = list(excesses(seconds, per_s))
        return {
            unit: Excesses(
                {second_s: by_unit[unit] for second_s, by_unit in found if unit in by_unit},
                [(one, usual[unit][one.start]) for one in stretches],
            )
            for unit in per_s
        }

    def ran_out(self, limiter: Limiter) -> set[str]:
        """The units that ever did."""
        return {unit for (of, _), by_unit in self._ran_out.items() if of == limiter for unit in by_unit}


def _by_second(rows: pa.Table, column: str) -> dict[int, dict[str, float]]:
    """Sums by second and name."""
    found: dict[int, dict[str, float]] = defaultdict(dict)
    sums = rows.group_by(["second_s", "name"], use_threads=False).aggregate([(column, "sum")]).to_pydict().values()
    for second_s, name, amount in zip(*sums, strict=True):
        found[second_s][name] = amount or 0
    return found


def _at(by_unit: Mapping[str, Mapping[int, Amounts]], second_s: int) -> ByUnit:
    return {unit: by_second.get(second_s, {}) for unit, by_second in by_unit.items()}


def _sums(rows: pa.Table, unit: str, seconds: Collection[int]) -> dict[tuple[int, str], float]:
    """What came in these seconds, by second and name."""
    rows = rows.filter(pc.is_in(rows["second_s"], pa.array(seconds, pa.int64())))
    sums = rows.group_by(["second_s", "name"], use_threads=False).aggregate([(unit, "sum")]).to_pydict().values()
    return {(second_s, name): amount or 0 for second_s, name, amount in zip(*sums, strict=True)}


def _holds(rows: pa.Table, scope: str) -> tuple[pa.Array, pa.Array]:
    """Whether it is the limiter of this scope that holds each row of TRAFFIC, and whether another one held it before.

    In one hold, of a name on a broker, a limiter holds from where it first throttled something of it until for ENDS_S
    only others did. A hold in which none throttled anything of it, as it waits behind others, counts for all.
    """
    keys = [rows[column].combine_chunks().dictionary_encode().indices for column in ("name", "broker", "group")]
    codes = [pc.fill_null(key, -1).to_numpy(zero_copy_only=False) for key in keys]
    second = rows["second_s"].to_numpy()
    of_row = [rows["held"].to_numpy(), *(rows[f"by_{one}"].to_numpy() for one in (scope, *SCOPES))]
    order = np.lexsort((second, *codes))
    if not len(order):
        return pa.array([], pa.int64()), pa.array([], pa.bool_())
    changes = np.any([np.diff(code[order], prepend=-2) for code in codes], axis=0)
    second = second[order]
    is_first = changes | (np.diff(second, prepend=second[0]) != 0)
    at = np.flatnonzero(is_first)
    held, own, *each = (np.add.reduceat(values[order], at) for values in of_row)
    second, place, others = second[at], np.arange(len(at)), sum(each) - own
    is_begun = changes[at] | (np.diff(second, prepend=second[0]) > ENDS_S)
    is_begun[1:] |= held[:-1] == 0
    begun = np.maximum.accumulate(np.where(is_begun, place, 0))
    last_own, last_other = (np.maximum.accumulate(np.where(counts > 0, place, -1)) for counts in (own, others))
    has_own, has_other = last_own >= begun, last_other >= begun
    of_hold = np.cumsum(is_begun) - 1
    is_known = np.bincount(of_hold, own + others)[of_hold] > 0
    is_recent = ~has_other | (second[last_own] >= second[last_other] - ENDS_S)
    is_held = (held > 0) & np.where(is_known, has_own & is_recent, True)
    back = np.empty(len(order), np.int64)
    back[order] = np.cumsum(is_first) - 1
    return pa.array(is_held[back].astype(np.int64)), pa.array((is_held & has_other)[back])


def _stretches(rows: pa.Table, held: Container[int], per_s: Amounts) -> list[range]:
    """Times in which a limiter that began full was not full again, each up to the last second in which it held anybody.

    Each begins where more began to come than a rate, which can be a while before it holds anybody: what was saved up
    has to be used first. Without a known rate it begins with a hold.
    """
    sums = rows.group_by(["second_s"], use_threads=False).aggregate([(unit, "sum") for unit in per_s])
    found: list[range] = []
    saved, was_held, from_s, before_s = dict(per_s), False, 0, None
    for second_s, *amounts in zip(*sums.sort_by("second_s").to_pydict().values(), strict=True):
        is_held = second_s in held
        if before_s is not None:
            saved = {unit: min(rate, saved[unit] + rate * (second_s - before_s - 1)) for unit, rate in per_s.items()}
        if before_s is None or (not was_held and all(saved[unit] >= rate for unit, rate in per_s.items())):
            from_s = second_s
        if is_held:
            if found and found[-1].start == from_s:
                found.pop()
            found.append(range(from_s, second_s + 1))
        for (unit, rate), amount in zip(per_s.items(), amounts, strict=True):
            rest = max(saved[unit], 0) if was_held and not is_held else saved[unit]
            saved[unit] = min(rate, rest + rate - (amount or 0))
        was_held, before_s = is_held, second_s
    return found


def _usual(stretches: Iterable[range], arrived: Mapping[int, Amounts], held: Container[int]) -> dict[int, Amounts]:
    """By the begin of a stretch what came a second in the USUAL_S before, as far back as nobody was held.

    Of less than LEAST_USUAL_S it is what it was before the stretch before; of the first one it is not known then.
    """
    usual: dict[int, Amounts] = {}
    last: Amounts = {}
    for from_s in (one.start for one in stretches):
        sums: dict[str, float] = defaultdict(float)
        count = 0
        for second_s in range(from_s - 1, from_s - USUAL_S - 1, -1):
            if second_s in held:
                break
            if second_s in arrived:
                count = from_s - second_s
                for name, amount in arrived[second_s].items():
                    sums[name] += amount
        if count >= LEAST_USUAL_S:
            last = {name: amount / count for name, amount in sums.items()}
        usual[from_s] = last
    return usual


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
    """

    def __init__(self, traffic: Traffic, rate_of: Callable[[Limiter, str], float], since_s: int = 0) -> None:
        self._rate_of, self._since_s = rate_of, since_s
        self._under, self._held_seconds = traffic.under, traffic.held_seconds
        self._traffic = traffic
        self._of_limiter = cache(self._excesses_of)

    def _excesses_of(self, limiter: Limiter) -> dict[str, Excesses]:
        rates = {unit: self._rate_of(limiter, unit) for unit in UNITS}
        limited = {unit for unit in UNITS if rates[unit]} | self._traffic.ran_out(limiter)
        return self._traffic.excesses(limiter, {unit: rates[unit] for unit in UNITS if unit in (limited or UNITS)})

    def _excesses(self, limiter: Limiter, unit: str) -> Excesses:
        return self._of_limiter(limiter).get(unit, Excesses({}, []))

    def held_seconds(self, name: str, limiter: Limiter) -> list[int]:
        """Those in which it was held, in order."""
        rows = self._under(limiter)
        is_held = pc.and_(pc.equal(rows["name"], name), pc.greater(rows["held"], 0))
        seconds = pc.unique(rows.filter(is_held)["second_s"]).to_pylist()
        return sorted(second_s for second_s in seconds if second_s >= self._since_s)

    def came_at_once(self, name: str, limiter: Limiter, second_s: int) -> bool:
        """Whether another limiter had held what this one holds, earlier in the same hold."""
        rows = self._under(limiter)
        rows = rows.filter(pc.and_(pc.equal(rows["name"], name), pc.equal(rows["second_s"], second_s)))
        return bool(pc.any(rows["before"]).as_py())

    def most_above_usual(self, limiter: Limiter, unit: str, seconds: Sequence[int]) -> str | None:
        """Who sent most beyond what it usually sends, in these seconds of a stretch; None if that is not known."""
        usual = next((usual for stretch, usual in self._excesses(limiter, unit).usual if seconds[0] in stretch), {})
        if not usual:
            return None
        above = {name: -amount * len(seconds) for name, amount in usual.items()}
        for (_, name), amount in _sums(self._under(limiter), unit, seconds).items():
            above[name] = above.get(name, 0) + amount
        most = min(above, key=lambda name: (-above[name], name), default=None)
        return None if most is None or above[most] <= 0 else most

    def without_usual(self, limiter: Limiter, unit: str) -> range:
        """The seconds in which nothing is known of what is usual, as the limiter was overloaded from the start."""
        return next((stretch for stretch, usual in self._excesses(limiter, unit).usual[:1] if not usual), range(0))

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
        afterwards. Without that, in those that ran out, within the rate. ran_out: units, most often first. seconds:
        those asked about; without them all in which `name` is held.
        """
        seconds = self.held_seconds(name, limiter) if seconds is None else seconds
        ran_out = list(ran_out)
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
