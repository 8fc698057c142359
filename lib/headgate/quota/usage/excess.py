"""Which seconds a limiter held, and who exceeded a fair share of its rates in them."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow import mark_reasons
from headgate.quota.usage.fair_share import Amounts, ByUnit, Second, excesses

Limiter = tuple[str, str]
"""Scope and name: topic, broker or group; all limiters of topics are one, which nobody shares."""
OWN: Limiter = ("topic", "")
UNITS = MESSAGES, BYTES = mark_reasons.UNITS
PREFIXES = "", "let_in_", "failed_"
"""Begin the names of columns of TRAFFIC in each unit: what came, was let in, failed."""
USUAL = "usual_"
"""Begins the names of columns of what goes into what is usual: what comes, or would if no other limiter held it."""
USUAL_S, LEAST_USUAL_S = 30, 3
"""So long before more than the rate begins to come, what a tenant sends is what it usually sends; of less than the
latter nothing is known.
"""


def ran_out(marks: Mapping[str, int]) -> list[str]:
    """The units that ran out of a limiter, most often first. marks: how often each did."""
    return sorted(marks, key=lambda unit: (-marks[unit], unit))


SHARED_SCOPES = ("broker", "group")
SCOPES = (OWN[0], *SHARED_SCOPES)
TRAFFIC = pa.schema(
    [
        ("second_s", pa.int64()),
        ("broker", pa.string()),
        ("group", pa.string()),
        ("name", pa.string()),
        ("topic", pa.string()),
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

topic: of what was held in some way; empty or null for all the rest together. let_in, failed: null in admitted traffic.
by: publishes that a limiter of the scope throttled. held: whether anything of it waited, was throttled or failed, or 0.
"""


HELD_BY_ANY = ("throttled_publishes", "throttled_ns", "failed_publishes")
IS_HELD = f"{' + '.join(f'coalesce({name}, 0)' for name in HELD_BY_ANY)} > 0"
"""SQL: of a row of topic_usage, whether anything of it waited, was throttled or failed."""
OwnRates = Mapping[tuple[str, str], Amounts]
"""By topic and broker, the rates of the topic's own limit per second, by unit; without units that are not limited."""
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
    """rows: of TRAFFIC, in any order. ran_out: of a limiter and broker that it does not know, each unit may have.

    own_rates: of topics that their own limits throttled; these are limited_topics.
    """

    def __init__(self, rows: pa.Table, ran_out: RanOut | None = None, own_rates: OwnRates | None = None) -> None:
        self.rows = rows
        self._ran_out, self._own_rates = ran_out or {}, own_rates or {}
        self.limited_topics = pa.array(sorted({topic for topic, _ in self._own_rates}), pa.string())
        self.under = cache(self._under)
        self.places = cache(self._places)
        self.held_seconds = cache(self._held_seconds)

    def _under(self, limiter: Limiter) -> pa.Table:
        """The rows that a limiter of a broker or group limits. held: whether this limiter held them, by `_holds`.

        sent: what was sent, by unit. before: whether it held them after another one that others share, in the same
        hold. Of what another one holds comes what that lets in, but not what it had held before; of a topic with a
        limit of its own never more than that passes.
        """
        scope, name = limiter
        rows = self.rows.filter(pc.fill_null(pc.equal(self.rows[scope], name), False))
        held, before = _holds(rows, scope)
        is_elsewhere = pc.and_(pc.greater(rows["held"], 0), pc.equal(held, 0))
        for unit in UNITS:
            sent = rows[unit]
            came = pc.if_else(is_elsewhere, pc.coalesce(rows[f"let_in_{unit}"], sent), sent)
            rows = rows.set_column(rows.schema.get_field_index(unit), unit, came).append_column(f"sent_{unit}", sent)
        rows = self._through_own_limits(rows, is_elsewhere)
        is_kept_back = pc.and_(is_elsewhere, pc.invert(pc.is_in(rows["topic"], self.limited_topics)))
        for unit in UNITS:
            rows = rows.append_column(f"{USUAL}{unit}", pc.if_else(is_kept_back, rows[f"sent_{unit}"], rows[unit]))
        return rows.set_column(rows.schema.get_field_index("held"), "held", held).append_column("before", before)

    def _through_own_limits(self, rows: pa.Table, is_elsewhere: pa.Array) -> pa.Table:
        """Of a topic with a limit of its own comes what passes that: its rate, with a second of it saved up at first.

        A large publish passes whole, and its debt counts. Where other limiters alone hold it, that is what they let in.
        What has failed does not come any more.
        """
        limited = rows.append_column("place", pa.array(np.arange(len(rows)))).append_column("elsewhere", is_elsewhere)
        limited = limited.filter(pc.is_in(rows["topic"], self.limited_topics))
        came = {unit: rows[unit].to_numpy().copy() for unit in UNITS} if len(limited) else {}
        waiting: dict[str, float] = {}
        saved: dict[str, float] = {}
        before: tuple[str, str] | None = None
        before_s = 0
        for row in limited.sort_by([(key, "ascending") for key in ("topic", "broker", "second_s")]).to_pylist():
            of, second_s = (row["topic"], row["broker"]), row["second_s"]
            if not (rates := self._own_rates.get(of)) or row["let_in_messages"] is None:
                continue
            if of != before or second_s > before_s + 1:
                waiting, saved = dict.fromkeys(UNITS, 0.0), dict(rates)
            before, before_s = of, second_s
            wanted = {unit: waiting[unit] + (row[f"sent_{unit}"] or 0) for unit in UNITS}
            if row["elsewhere"]:
                passed = {unit: float(row[f"let_in_{unit}"] or 0) for unit in UNITS}
            else:
                parts = [(saved[unit] + rate) / wanted[unit] for unit, rate in rates.items() if wanted[unit]]
                part = max(min(parts, default=1), 0)
                passed = {unit: max(min(part, 1) * wanted[unit], row[f"let_in_{unit}"] or 0) for unit in UNITS}
            for unit in UNITS:
                came[unit][row["place"]] = passed[unit]
                waiting[unit] = max(wanted[unit] - passed[unit] - (row[f"failed_{unit}"] or 0), 0)
            saved = {unit: min(saved[unit] + rate - passed[unit], rate) for unit, rate in rates.items()}
        for unit, amounts in came.items():
            rows = rows.set_column(rows.schema.get_field_index(unit), unit, pa.array(amounts))
        return rows

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
        came, let_in, failed = ({unit: by_second(rows, f"{what}{unit}") for unit in per_s} for what in PREFIXES)
        usual = {unit: _usual(stretches, by_second(rows, f"{USUAL}{unit}"), all_held) for unit in per_s}
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

    def _places(self, limiter: Limiter) -> Mapping[str, Mapping[int, Sequence[str]]]:
        """By name and second, in order, the brokers on which it held somebody."""
        rows = self.under(limiter).filter(pc.field("held") > 0)
        places = rows.group_by(["second_s", "name", "broker"], use_threads=False).aggregate([]).sort_by("second_s")
        found: dict[str, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
        for second_s, name, broker in zip(*places.to_pydict().values(), strict=True):
            found[name][second_s].append(broker)
        return found

    def ran_out_of(self, name: str, limiter: Limiter, seconds: Iterable[int]) -> set[str]:
        """The units that had run out on a broker as the limiter held `name` there."""
        places = self.places(limiter).get(name, {})
        at = [(broker, second_s) for second_s in seconds for broker in places.get(second_s, ())]
        return {unit for unit in UNITS if any(self._has_run_out(limiter, *place, unit) for place in at)}

    def ran_out(self, limiter: Limiter) -> set[str]:
        """The units that ever did."""
        return {unit for (of, _), by_unit in self._ran_out.items() if of == limiter for unit in by_unit}


def by_second(rows: pa.Table, column: str) -> dict[int, dict[str, float]]:
    """Sums by second and name."""
    found: dict[int, dict[str, float]] = defaultdict(dict)
    sums = rows.group_by(["second_s", "name"], use_threads=False).aggregate([(column, "sum")]).to_pydict().values()
    for second_s, name, amount in zip(*sums, strict=True):
        found[second_s][name] = amount or 0
    return found


def _at(by_unit: Mapping[str, Mapping[int, Amounts]], second_s: int) -> ByUnit:
    return {unit: by_second.get(second_s, {}) for unit, by_second in by_unit.items()}


def _holds(rows: pa.Table, scope: str) -> tuple[pa.Array, pa.Array]:
    """Whether it is the limiter of this scope that holds each row of TRAFFIC, and whether another one held it before
    that is no topic's.

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
    held, own, of_topics, *each = (np.add.reduceat(values[order], at) for values in of_row)
    second, place, shared = second[at], np.arange(len(at)), sum(each) - own
    others = shared + of_topics
    is_begun = changes[at] | (np.diff(second, prepend=second[0]) > ENDS_S)
    is_begun[1:] |= held[:-1] == 0
    begun = np.maximum.accumulate(np.where(is_begun, place, 0))
    last_own, last_other, last_shared = (
        np.maximum.accumulate(np.where(counts > 0, place, -1)) for counts in (own, others, shared)
    )
    has_own, has_other, has_shared = last_own >= begun, last_other >= begun, last_shared >= begun
    of_hold = np.cumsum(is_begun) - 1
    is_known = np.bincount(of_hold, own + others)[of_hold] > 0
    is_recent = ~has_other | (second[last_own] >= second[last_other] - ENDS_S)
    is_held = (held > 0) & np.where(is_known, has_own & is_recent, True)
    back = np.empty(len(order), np.int64)
    back[order] = np.cumsum(is_first) - 1
    return pa.array(is_held[back].astype(np.int64)), pa.array((is_held & has_shared)[back])


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
    """By the begin of a stretch what came a second in the USUAL_S before.

    If somebody was held in them, the time since then counts, and for the rest of them what was usual before the stretch
    before. Of less than LEAST_USUAL_S it is not known for the first stretch.
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
        if last:
            rest_s = USUAL_S - count
            last = {name: (sums[name] + rest_s * last.get(name, 0)) / USUAL_S for name in {**last, **sums}}
        elif count >= LEAST_USUAL_S:
            last = {name: amount / count for name, amount in sums.items()}
        usual[from_s] = last
    return usual
