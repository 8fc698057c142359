"""Who of those that share a limiter uses most of it, and who is only a victim; no table is read here."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from headgate.core.quota.config_tables import ConfigTables
from headgate.core.topic_names import topic_of, without_partition
from headgate.quota.usage.contention import Contention, Shared, Within
from headgate.quota.usage.excess import OWN, UNITS, Limiter

NO_TENANT = "(no tenant)"
Units = Mapping[tuple[str, Limiter], Iterable[str]]
"""What ran out of a limiter when it marked a tenant or topic, by its name."""


@dataclass(frozen=True, slots=True)
class TopicSum:
    """Sums of topic_usage over some seconds, for one topic on one broker.

    messages, bytes: that came. admitted_messages, admitted_bytes: that were let in. settled: publishes that were let in
    or failed; held: of these, those that came late or failed. In admitted traffic all are let in, and held are those
    that left a limiter empty. held_since: what held it last before these seconds, where nothing throttled it in them.
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
    held_since: Limiter | None = None


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
    by_limiter: dict[Limiter, float] = field(default_factory=lambda: defaultdict(float))
    held_since: dict[Limiter, int] = field(default_factory=lambda: defaultdict(int))


@dataclass(frozen=True, slots=True)
class Consumer:
    """A tenant or topic with what it did and the group that this is charged to, None for none.

    A topic is all of its partitions. Whose fault it is goes by tenants: of a topic, by its own.
    Counts are sums over the seconds. limiter: the one that held most of its publishes, and blame their part;
    where none was throttled and it was held all the same, that which still held it; None where nothing held it.
    shared: who exceeded a fair share of that limiter, by unit; empty where nobody shares it, or the tables do not
    tell. rivals: how many others sent anything under it. within: where nobody exceeded one, why it was held.
    let_through: by limits of its topics, of what it sent. also_at_fault: limiters that throttled fewer of its
    publishes, which it shares with others, and of which it exceeds a fair share.
    """

    name: str
    tenant: str
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
    shared: tuple[Shared, ...] = ()
    rivals: int = 0
    within: Within | None = None
    let_through: float = 1.0
    also_at_fault: tuple[Limiter, ...] = ()

    @property
    def is_held(self) -> bool:
        """Whether any limit did anything to it."""
        return bool(self.throttled or self.throttled_ns or self.held)

    @property
    def is_victim(self) -> bool:
        """Throttled by a limiter of which others exceed a fair share."""
        return bool(self.shared) and all(not one.is_within and one.is_victim(self.tenant) for one in self.shared)


def tenant_name(topic: str) -> str:
    """The tenant of a topic, by the rules of resource-groups 3.1."""
    parsed = topic_of(topic)
    return NO_TENANT if parsed is None else parsed.tenant


NAME_OF: Mapping[str, Callable[[str], str]] = {"tenant": tenant_name, "topic": without_partition}
"""What a topic counts for."""


def consumers_of(
    sums: Iterable[TopicSum],
    config: ConfigTables,
    by: str,
    units: Units,
    contention: Contention,
    *,
    group: str | None = None,
) -> list[Consumer]:
    """One for each name and group that it is charged to: most throttled time first, then most messages.

    by: tenant or topic. units: what ran out of limiters; contention: which tenants exceed a fair share of it, in the
    last of these seconds and before. group: only those charged to it; what they share is reckoned over all.
    """
    by_key: dict[tuple[str, str, str | None], _Sums] = defaultdict(_Sums)
    name_of = NAME_OF[by]
    for one in sums:
        topic = topic_of(one.topic)
        charged = None if topic is None else config.resolve(topic).group
        _add(by_key[name_of(one.topic), tenant_name(one.topic), charged], one, charged)
    consumers = [
        _consumer((name, tenant, charged), added, units, contention)
        for (name, tenant, charged), added in by_key.items()
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
    weight = max(one.held, 1) / ((one.by_topic + one.by_broker + one.by_group) or 1)
    sums.by_limiter[OWN] += weight * one.by_topic
    sums.by_limiter["broker", one.broker] += weight * one.by_broker
    sums.by_limiter["group", group or ""] += weight * one.by_group
    if one.held_since is not None:
        sums.held_since[one.held_since] += one.throttled_ns


def _consumer(
    key: tuple[str, str, str | None],
    sums: _Sums,
    units: Units,
    contention: Contention,
) -> Consumer:
    counts = sums.publishes, sums.messages, sums.bytes, sums.admitted_messages, sums.admitted_bytes
    name, tenant, _ = key
    known = (*key, *counts, sums.throttled, sums.settled, sums.held, sums.throttled_ns)
    by_limiter = sums.by_limiter if any(sums.by_limiter.values()) else sums.held_since
    limiter, marked = max(by_limiter.items(), key=lambda item: (item[1], item[0]), default=(OWN, 0))
    if not marked:
        return Consumer(*known)
    blame = marked / sum(by_limiter.values())
    ran_out = {other: units.get((name, other), UNITS) for other, marks in by_limiter.items() if marks and other != OWN}
    shared_of = {other: contention.shared(tenant, other, of_it) for other, of_it in ran_out.items()}
    shared = shared_of.pop(limiter, ())
    also = tuple(
        other
        for other, each in shared_of.items()
        if any(tenant in one.sharers for one in each)
        and contention.has_rate(other)
        and contention.rivals(tenant, other)
    )
    if limiter == OWN:
        return Consumer(*known, limiter, blame, also_at_fault=also)
    within = None
    if shared and shared[0].is_within:
        within = contention.why_within(limiter, shared[0].unit, contention.held_seconds(tenant, limiter))
    through = (
        contention.let_through(tenant, limiter, shared[0].unit, None if name == tenant else name) if shared else 1.0
    )
    return Consumer(*known, limiter, blame, shared, contention.rivals(tenant, limiter), within, through, also)
