"""Whose fault it is that a limiter holds somebody: who exceeds a fair share, by hold and minute."""

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, reduce
from typing import NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.topic_names import NAMESPACE, TENANT, TOPIC
from headgate.conf.resource_groups import ResourceGroups
from headgate.core.topic_names import without_partition
from headgate.quota.usage.contention import Contention, Shared
from headgate.quota.usage.excess import (
    HELD_BY_ANY,
    IS_HELD,
    OWN,
    SCOPES,
    TRAFFIC,
    UNITS,
    USUAL_S,
    Limiter,
    OwnRates,
    RanOut,
    Traffic,
)
from headgate.report.screen import counted, plain
from headgate.report.sharers import SHOWN_SHARERS, listed
from headgate.report.throttling.causes import Cause, cause_of, let_through
from headgate.report.throttling.spans import QUIET, minute_of
from headgate.tables.sums import Made, Sums

_SHOWN_PHASES = 5
MOMENT_S = 3
"""What is nobody's fault for less is not told beside other times."""
MOVED = 0.2
"""A part of the excess that changes by so much is another phase."""
_Item = TypeVar("_Item")
_SECOND_US = 1_000_000
_APART_S = QUIET.total_seconds() + 1
ELSEWHERE = "by whose fault depends on other brokers, too: headgate usage, below, knows all of them"
THROTTLED_BY = tuple(f"throttled_by_{scope}" for scope in SCOPES)


def _held_topic(rows: pa.Table) -> pa.ChunkedArray:
    is_held = reduce(pc.or_, (pc.greater(pc.fill_null(rows[name], 0), 0) for name in HELD_BY_ANY))
    return pc.if_else(is_held, rows[TOPIC], "")


HELD_TOPIC = Made("held_topic", f"CASE WHEN {IS_HELD} THEN topic ELSE '' END", _held_topic)


def by_second(groups: ResourceGroups) -> Sums:
    """Sums of topic_usage by second and tenant, and by namespace or, where topics are attached to groups, by topic.

    held_topic: the topic of what was held in some way, else empty.
    """
    charged = TOPIC if groups.topics else NAMESPACE
    amounts = (f"{what}{unit}" for unit in UNITS for what in ("", "admitted_", "failed_"))
    counts = (*THROTTLED_BY, "throttled_publishes", "failed_publishes")
    by = (TENANT, charged, "broker", "event_time", HELD_TOPIC.name)
    return Sums("topic_usage", by, (*amounts, *counts), highest=("throttled_ns",), made=(HELD_TOPIC,))


class Culprit(NamedTuple):
    """Who has the largest part of the excess for the longest time, and the second of that in which it sent most."""

    name: str
    at: datetime


@dataclass(frozen=True)
class Fault:
    """words: who fills a limiter; empty where only one can, or the tables do not tell.

    is_victim: of somebody else. culprit: None where nobody exceeds a fair share. has_parts: the words tell parts of the
    excess.
    """

    words: str = ""
    is_victim: bool = False
    culprit: Culprit | None = None
    has_parts: bool = False


NOBODY = Fault()


class HeldBy(NamedTuple):
    """How a limiter marked a tenant.

    units: that ran out, most often first, by minute. marked: minutes with marks of any limiter; in a minute without,
    what held it before still does. unit: the one that held it for the longest time.
    """

    units: Mapping[str, Iterable[str]]
    marked: frozenset[str]
    unit: str


class _Phase(NamedTuple):
    """first_s, last_s: its seconds. shared: over all of it, by unit; cause: where nobody exceeded a fair share."""

    first_s: int
    last_s: int
    shared: Sequence[Shared]
    cause: Cause | None

    @property
    def span(self) -> str:
        """In words."""
        first, last = (f"{datetime.fromtimestamp(second_s, UTC):%H:%M:%S}" for second_s in self[:2])
        return first if first == last else f"{first} to {last}"


class _Led(NamedTuple):
    """A time in which somebody has the largest part of the excess.

    seconds: how many. sent: in that in which it sent most, at_s.
    """

    seconds: int
    sent: float
    at_s: int


class Faults:
    """Who is at fault where a limiter holds a tenant.

    seconds: sums `by_second`. usage: sums of topic_usage by tenant, topic and broker, with its counts of publishes
    and `waited_s`.
    rate_of, shares, blocked: over all brokers of the tables (Contention). ran_out, own_rates: see Traffic.
    has_all_brokers: else nothing can be said of a quota that others use, too.
    without_usual: limiters that were overloaded from the start, as far as they were asked about.
    """

    def __init__(
        self,
        seconds: pa.Table,
        usage: pa.Table,
        groups: ResourceGroups,
        rate_of: Callable[[Limiter, str], float],
        ran_out: RanOut,
        *,
        shares: Container[Limiter] = frozenset(),
        blocked: Container[Limiter] = frozenset(),
        own_rates: OwnRates | None = None,
        has_all_brokers: bool = True,
    ) -> None:
        self._has_all_brokers = has_all_brokers
        self._usage, self._groups = usage, groups
        traffic = Traffic(_traffic(seconds, groups), ran_out, own_rates)
        self._contention = Contention(traffic, rate_of, shares=shares, blocked=blocked)
        self._most_held_topic = cache(self._most_held_topic_of)
        self.without_usual: set[Limiter] = set()

    def fault(self, tenant: str, limiter: Limiter, held_by: HeldBy) -> Fault:
        """As `_fault_of`; limits of topics that hold much of it as well have a word, too."""
        fault = self._fault_of(tenant, limiter, held_by)
        if not fault.words:
            return fault
        through = let_through(min(self._contention.let_through(tenant, limiter, unit) for unit in UNITS))
        return replace(fault, words=f"{fault.words}{through}") if through else fault

    def _fault_of(self, tenant: str, limiter: Limiter, held_by: HeldBy) -> Fault:
        """Who exceeds a fair share of a limiter while it holds a tenant.

        Who has less than a tenth of the largest part of the excess is a victim; the others share the fault. Where that
        or the unit changes from one hold or minute to the next, each phase is told by itself.
        """
        if limiter == OWN:
            return NOBODY
        if limiter in self._contention.shares and not self._has_all_brokers:
            return Fault(ELSEWHERE)
        found: list[_Phase] = []
        ran_out: Iterable[str] = ()
        led: dict[str, list[_Led]] = defaultdict(list)
        for seconds in _pieces(
            self._contention.held_seconds(tenant, limiter), lambda at: self._contention.has_excess(limiter, at)
        ):
            minute = minute_of(datetime.fromtimestamp(seconds[0], UTC))
            ran_out = held_by.units.get(minute, () if minute in held_by.marked else ran_out)
            if shared := self._contention.shared(tenant, limiter, ran_out, seconds):
                is_within, unit = shared[0].is_within, shared[0].unit
                if not is_within:
                    first = next((one for one in shared if one.unit == held_by.unit), shared[0])
                    sent, at = self._contention.most_in(first.largest, limiter, first.unit, seconds)
                    led[first.largest].append(_Led(len(seconds), sent, at))
                cause = cause_of(self._contention.why_within(limiter, unit, seconds)) if is_within else None
                found.append(_Phase(seconds[0], seconds[-1], shared, cause))
        if not found:
            return NOBODY
        phases = list(_phases(piece for hold in _holds(found) for piece in _told(hold)))
        over = [shared for phase in phases if phase.cause is None for shared in phase.shared]
        is_victim = bool(over) and all(shared.is_victim(tenant) for shared in over)
        culprit = _culprit(led) if led else None
        is_shared = self._contention.rivals(tenant, limiter) > 0
        if is_shared and any(
            phase.cause is None and phase.first_s in self._contention.without_usual(limiter, one.unit)[: USUAL_S + 1]
            for phase in phases
            for one in phase.shared
        ):
            self.without_usual.add(limiter)
        more = len(phases) - _SHOWN_PHASES
        if len(phases) == 1:
            if phases[0].cause is not None:
                return Fault(phases[0].cause.words)
            by_unit = phases[0].shared
            is_same = len({frozenset(shared.sharers) for shared in by_unit}) == 1
            words = self._at_length(tenant, limiter, by_unit) if is_same else _briefly(tenant, by_unit)
            return Fault(words, is_victim, culprit, has_parts=True)
        shown = "; ".join(
            f"{phase.span} {_briefly(tenant, phase.shared) if phase.cause is None else phase.cause.briefly}"
            for phase in phases[:_SHOWN_PHASES]
        )
        others = f"; and {counted(more, 'more change')}" if more > 0 else ""
        return Fault(f"by time: {shown}{others}", is_victim, culprit, has_parts=True)

    def _at_length(self, tenant: str, limiter: Limiter, by_unit: Sequence[Shared]) -> str:
        """What is said where it is the same all the time, and in each unit."""
        first = by_unit[0]
        sharers, largest = first.sharers, first.largest
        fault = ", and ".join(f"{listed(shared)} of the excess {shared.unit}" for shared in by_unit)
        whole = " and ".join(f"{shared.part(largest):.0%} of the excess {shared.unit}" for shared in by_unit)
        whole = f"{whole}, {self._most_held_topic(largest, limiter, first.unit)}"
        if first.is_victim(tenant):
            of_excess = f"; {plain(tenant)} is a victim"
            if len(sharers) == 1:
                return f"fault of {plain(largest)}: {whole}{of_excess}"
            return f"fault of {fault}{of_excess}"
        if len(sharers) == 1:
            return f"its own fault: {whole}"
        own = f"; {plain(tenant)} {first.part(tenant):.0%}" if len(sharers) > SHOWN_SHARERS else ""
        return f"shared fault of {fault}{own}"

    def _most_held_topic_of(self, tenant: str, limiter: Limiter, unit: str) -> str:
        """Of those that a limiter limits, that of which most waited longest: of all that waited, its part goes by what
        each limiter throttled.

        Without any that waited, that which sent most; in words.
        """
        rows = self._usage.filter(pc.fill_null(pc.equal(self._usage[TENANT], tenant), False))
        scope, name = limiter
        sent: dict[str, float] = defaultdict(float)
        held: dict[str, float] = defaultdict(float)
        for row in rows.to_pylist():
            topic, amount = row[TOPIC], row[unit] or 0
            if name == (row["broker"] if scope == "broker" else self._groups.group_of(topic)):
                sent[topic] += amount
                throttled = {by: row[by] or 0 for by in THROTTLED_BY}
                by_all = sum(throttled.values())
                part = throttled[f"throttled_by_{scope}"] / by_all if by_all else 1
                held[topic] += amount * part * row["waited_s"] / (row["publishes"] or 1)
        if not any(held.values()):
            return f"most sent: {plain(_foremost(sent, sent))}"
        return f"most held: {plain(_foremost(held, sent))}"


def _culprit(led: Mapping[str, Sequence[_Led]]) -> Culprit:
    """led: by name."""
    name = max(led, key=lambda name: (sum(piece.seconds for piece in led[name]), name))
    most = max(led[name], key=lambda piece: piece.sent)
    return Culprit(name, datetime.fromtimestamp(most.at_s, UTC))


def _foremost(amounts: Mapping[str, float], sent: Mapping[str, float]) -> str:
    """The topic with most; one of its partitions only if that has two thirds of it, and of what the topic sent."""
    whole: dict[str, float] = defaultdict(float)
    for topic, amount in amounts.items():
        whole[without_partition(topic)] += amount
    most = min(whole, key=lambda topic: (-whole[topic], topic))
    partitions = {topic: amount for topic, amount in amounts.items() if without_partition(topic) == most}
    foremost = min(partitions, key=lambda topic: (-partitions[topic], topic))
    sent_whole = sum(sent[topic] for topic in partitions)
    has_most = 3 * partitions[foremost] >= 2 * whole[most] and 3 * sent[foremost] >= 2 * sent_whole
    return foremost if has_most else most


def _traffic(seconds: pa.Table, groups: ResourceGroups) -> pa.Table:
    """TRAFFIC of sums `by_second`."""
    charged = seconds.column_names[1]
    names = seconds[charged].combine_chunks().dictionary_encode()
    topics = (
        name if charged == TOPIC or name is None else f"persistent://{name}/-" for name in names.dictionary.to_pylist()
    )
    of_group = pa.array((None if topic is None else groups.group_of(topic) for topic in topics), pa.string())
    columns = {
        "second_s": pc.divide(pc.cast(seconds["event_time"], pa.int64()), _SECOND_US),
        "broker": seconds["broker"],
        "group": of_group.take(names.indices),
        "name": seconds[TENANT],
        "topic": seconds[HELD_TOPIC.name],
        **{unit: seconds[unit] for unit in UNITS},
        **{f"let_in_{unit}": seconds[f"admitted_{unit}"] for unit in UNITS},
        **{f"failed_{unit}": seconds[f"failed_{unit}"] for unit in UNITS},
        **{f"by_{scope}": pc.fill_null(seconds[f"throttled_by_{scope}"], 0) for scope in SCOPES},
        "held": pc.cast(pc.not_equal(seconds[HELD_TOPIC.name], ""), pa.int64()),
    }
    return pa.table(columns, TRAFFIC)


def _pieces(seconds: Iterable[int], has_excess: Callable[[int], bool]) -> Iterator[list[int]]:
    """Times without a pause longer than a moment, and each minute of them; of that, those with an excess and without.

    Moments are parts of the time before.
    """
    for piece in _split(seconds, lambda one, next_: next_ - one > MOMENT_S or next_ // 60 != one // 60):
        runs: list[list[int]] = []
        for run in _split(piece, lambda one, next_: has_excess(one) != has_excess(next_)):
            if runs and (_is_moment(run) or _is_moment(runs[-1]) or has_excess(run[0]) == has_excess(runs[-1][0])):
                runs[-1] += run
            else:
                runs.append(run)
        yield from runs


def _is_moment(seconds: Sequence[int]) -> bool:
    return seconds[-1] - seconds[0] < MOMENT_S


def _holds(pieces: Iterable[_Phase]) -> Iterator[list[_Phase]]:
    return _split(pieces, lambda one, next_: next_.first_s - one.last_s > _APART_S)


def _split(items: Iterable[_Item], is_end: Callable[[_Item, _Item], bool]) -> Iterator[list[_Item]]:
    """Runs of items. is_end: whether one ends between two of them."""
    run: list[_Item] = []
    for item in items:
        if run and is_end(run[-1], item):
            yield run
            run = []
        run.append(item)
    if run:
        yield run


def _told(hold: list[_Phase]) -> list[_Phase]:
    """Its pieces, but for moments that are nobody's fault right beside an excess: what is saved up is used first.

    What is nobody's fault has one cause, that of most seconds.
    """
    seconds: Counter[Cause] = Counter()
    for piece in hold:
        if piece.cause is not None:
            seconds[piece.cause] += piece.last_s - piece.first_s + 1
    told: list[_Phase] = []
    began_s: int | None = None
    for before, piece, after in zip([None, *hold[:-1]], hold, [*hold[1:], None], strict=True):
        if piece.cause is not None and piece.last_s - piece.first_s < MOMENT_S:
            if before is not None and before.cause is None and piece.first_s - before.last_s <= MOMENT_S:
                continue
            if after is not None and after.cause is None and after.first_s - piece.last_s <= MOMENT_S:
                began_s = piece.first_s if began_s is None else began_s
                continue
        cause = None if piece.cause is None else seconds.most_common(1)[0][0]
        told.append(piece._replace(first_s=piece.first_s if began_s is None else began_s, cause=cause))
        began_s = None
    return told


def _phases(pieces: Iterable[_Phase]) -> Iterator[_Phase]:
    """One for each run of them in which the same tenants share the fault much alike, or nobody has any."""
    for of_run in _split(pieces, _is_another):
        together = [
            Shared.together([shared for piece in of_run for shared in piece.shared if shared.unit == first.unit])
            for first in of_run[0].shared
        ]
        yield _Phase(of_run[0].first_s, of_run[-1].last_s, together, of_run[0].cause)


def _is_another(one: _Phase, next_: _Phase) -> bool:
    """Whether others share the fault, in other units, or a part is another by MOVED."""
    before, after = ({shared.unit: shared for shared in phase.shared} for phase in (one, next_))
    if one.cause != next_.cause or before.keys() != after.keys():
        return True
    return any(
        {*shared.sharers} != {*after[unit].sharers}
        or any(abs(shared.part(name) - after[unit].part(name)) >= MOVED for name in shared.sharers)
        for unit, shared in before.items()
    )


def _briefly(tenant: str, by_unit: Sequence[Shared]) -> str:
    """Where it is at fault comes first."""
    return ", and ".join(_of_unit(tenant, shared) for shared in by_unit)


def _of_unit(tenant: str, shared: Shared) -> str:
    excess = f"of the excess {shared.unit}"
    if shared.is_victim(tenant):
        return f"victim of {listed(shared)} {excess}"
    if len(shared.sharers) == 1:
        return f"its own fault ({shared.part(tenant):.0%} {excess})"
    return f"shared fault of {listed(shared)} {excess}"
