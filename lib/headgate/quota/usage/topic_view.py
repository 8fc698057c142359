"""Who of those that share a limiter uses most of it, and who is only a victim; no table is read here."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from headgate.core.quota.config_tables import ConfigTables
from headgate.core.quota.topics import topic_of

NO_TENANT = "(no tenant)"
Limiter = tuple[str, str]
"""Scope and name: topic, broker or group; all limiters of topics are one, which nobody shares."""
OWN: Limiter = ("topic", "")
UNITS = MESSAGES, BYTES = "messages", "bytes"
FEW_MARKS = 0.1
"""Of all marks of a limiter: a unit that ran out less often does not count."""


@dataclass(frozen=True, slots=True)
class TopicSum:
    """Sums of topic_usage over some seconds, for one topic on one broker.

    messages, bytes: that came. admitted_messages, admitted_bytes: that were let in. settled: publishes that were let in
    or failed; held: of these, those that came late or failed. In admitted traffic all are let in, and held are those
    that left a limiter empty.
    """

    topic: str
    broker: str
    publishes: int
    messages: int
    bytes: int
    admitted_messages: int
    admitted_bytes: int
    throttled: int
    settled: int
    held: int
    by_topic: int
    by_broker: int
    by_group: int
    throttled_ns: int


@dataclass(slots=True)
class _Sums:
    publishes: int = 0
    messages: int = 0
    bytes: int = 0
    admitted_messages: int = 0
    admitted_bytes: int = 0
    throttled: int = 0
    settled: int = 0
    held: int = 0
    throttled_ns: int = 0
    by_limiter: dict[Limiter, int] = field(default_factory=lambda: defaultdict(int))


@dataclass(frozen=True, slots=True)
class Consumer:
    """A tenant or topic with what it did and the group that this is charged to, None for none.

    Counts are sums over the seconds. limiter: the one that throttled most of its publishes, and blame their part;
    None where nothing was throttled. share: its part of all that that limiter let in, in `unit`, that ran out; without
    marks that say which, in messages or bytes, whichever is more. rivals: how many others share the limiter. taker: the
    one of all that has most of it, and its part.
    """

    name: str
    group: str | None
    publishes: int
    messages: int
    bytes: int
    admitted_messages: int
    admitted_bytes: int
    throttled: int
    settled: int
    held: int
    throttled_ns: int
    limiter: Limiter | None = None
    blame: float = 0.0
    share: float = 1.0
    rivals: int = 0
    taker: tuple[str, float] | None = None
    unit: str | None = None

    @property
    def is_victim(self) -> bool:
        """Throttled by a limiter of which another has more than twice its part."""
        return self.limiter is not None and self.taker is not None and is_small(self.share, self.taker[1])


def is_small(share: float, largest: float) -> bool:
    """Whether a part of a limiter's traffic is less than half of the largest: who is throttled with it is a victim.

    In whole percent, as screens show both: 33 of 67 is less than half.
    """
    return 2 * round(100 * share) < round(100 * largest)


def tenant_name(topic: str) -> str:
    """The tenant of a topic, by the rules of resource-groups 3.1."""
    parsed = topic_of(topic)
    return NO_TENANT if parsed is None else parsed.tenant


def consumers_of(
    sums: Iterable[TopicSum],
    config: ConfigTables,
    name_of: Callable[[str], str],
    units: Mapping[Limiter, Sequence[str]],
    group: str | None = None,
) -> list[Consumer]:
    """One for each name and group that it is charged to: most throttled time first, then most messages.

    name_of: what a topic counts for. units: what ran out of a limiter. group: only those charged to it; what they share
    is reckoned over all.
    """
    by_key: dict[tuple[str, str | None], _Sums] = defaultdict(_Sums)
    traffic: dict[Limiter, dict[str, list[int]]] = defaultdict(lambda: defaultdict(lambda: [0, 0]))
    for one in sums:
        topic, name = topic_of(one.topic), name_of(one.topic)
        charged = None if topic is None else config.resolve(topic).group
        _add(by_key[name, charged], one, charged)
        for limiter in (("broker", one.broker), ("group", charged)):
            if limiter[1] is not None:
                used = traffic[limiter[0], limiter[1]][name]
                used[0] += one.admitted_messages
                used[1] += one.admitted_bytes
    consumers = [
        _consumer(name, charged, added, traffic, units)
        for (name, charged), added in by_key.items()
        if group in {None, charged}
    ]
    return sorted(consumers, key=_urgency)


def _urgency(one: Consumer) -> tuple[int, int, int, str, str]:
    return -one.throttled_ns, -one.throttled, -one.messages, one.name, one.group or ""


def _add(sums: _Sums, one: TopicSum, group: str | None) -> None:
    sums.publishes += one.publishes
    sums.messages += one.messages
    sums.bytes += one.bytes
    sums.admitted_messages += one.admitted_messages
    sums.admitted_bytes += one.admitted_bytes
    sums.throttled += one.throttled
    sums.settled += one.settled
    sums.held += one.held
    sums.throttled_ns += one.throttled_ns
    sums.by_limiter[OWN] += one.by_topic
    sums.by_limiter["broker", one.broker] += one.by_broker
    sums.by_limiter["group", group or ""] += one.by_group


def _consumer(
    name: str,
    group: str | None,
    sums: _Sums,
    traffic: dict[Limiter, dict[str, list[int]]],
    units: Mapping[Limiter, Sequence[str]],
) -> Consumer:
    counts = sums.publishes, sums.messages, sums.bytes, sums.admitted_messages, sums.admitted_bytes
    known = (name, group, *counts, sums.throttled, sums.settled, sums.held, sums.throttled_ns)
    limiter, marked = max(sums.by_limiter.items(), key=lambda item: (item[1], item[0]))
    if not marked:
        return Consumer(*known)
    blame = marked / sum(sums.by_limiter.values())
    under = traffic.get(limiter, {})
    unit = own_unit(name, {unit: _of_unit(under, unit) for unit in units.get(limiter, ())})
    shares = shares_of(under, unit)
    if name not in shares:
        return Consumer(*known, limiter, blame)
    taker = max(shares.items(), key=lambda item: (item[1], item[0]))
    return Consumer(*known, limiter, blame, shares[name], len(shares) - 1, taker, unit)


def ran_out(marks: Mapping[str, int]) -> tuple[str, ...]:
    """The units that ran out of a limiter, most often first. marks: how often each did; a few are left out."""
    least = sum(marks.values()) * FEW_MARKS
    return tuple(sorted((unit for unit in marks if marks[unit] >= least), key=lambda unit: (-marks[unit], unit)))


def own_unit(name: str, amounts: Mapping[str, Mapping[str, int]]) -> str | None:
    """Of the units that ran out of a limiter, that in which one of those under it comes closest to who has most: nobody
    who is at fault in one is a victim in the other. None without any. amounts: by unit, of everybody.
    """
    parts = {
        unit: of_all.get(name, 0) / max(of_all.values()) for unit, of_all in amounts.items() if any(of_all.values())
    }
    return max(parts, key=lambda unit: parts[unit], default=None)


def _of_unit(traffic: Mapping[str, Sequence[int]], unit: str) -> dict[str, int]:
    return {name: used[UNITS.index(unit)] for name, used in traffic.items()}


def shares_of(traffic: Mapping[str, Sequence[int]], unit: str | None) -> dict[str, float]:
    """Parts by name of those that sent anything: of this unit or, if it is None, of the one that gives the larger part.

    traffic: messages and bytes.
    """
    totals = [sum(used) for used in zip(*traffic.values(), strict=True)]
    counted = slice(None) if unit is None else slice(UNITS.index(unit), UNITS.index(unit) + 1)
    return {
        name: max(
            amount / total if total else 0.0 for amount, total in zip(used[counted], totals[counted], strict=True)
        )
        for name, used in traffic.items()
        if any(used[counted])
    }
