"""Which group a tenant's traffic is charged to, and what part of its quota that is."""

from dataclasses import dataclass

from headgate.core.quota.config_tables import ConfigTables
from headgate.core.quota.groups import Dimension, TrafficClass
from headgate.core.topic_names import topic_of
from headgate.quota.usage.topic_view import NO_TENANT
from headgate.service.pages.flow import FLOW, IS_ADMITTED, TABLE, TOTAL, Flow
from headgate.service.pages.read import Read
from headgate.service.pages.span import Span
from headgate.tables.query import text


@dataclass(frozen=True)
class Blocked:
    """A group of which a quota is 0. quotas: which, such as "publish messages"."""

    group: str
    quotas: tuple[str, ...]


@dataclass(frozen=True)
class TenantUse:
    """A tenant's traffic in one group, None for none, over some seconds.

    quotas: of the group, messages/s and bytes/s, None for no limit. topics: how many had traffic.
    shares: of these quotas, by what was allowed, and by that and what was held together.
    """

    tenant: str
    group: str | None
    topics: int
    flow: Flow
    is_admitted: bool
    quotas: tuple[int | None, int | None]
    seconds: int

    @property
    def is_blocked(self) -> bool:
        return 0 in self.quotas

    @property
    def allowed_share(self) -> float | None:
        """Of the quota that is used most; None without one."""
        return self._share(0)

    @property
    def share(self) -> float | None:
        """Allowed plus held: above 1 where more came than the whole quota."""
        return self._share(1)

    def _share(self, held: int) -> float | None:
        flow = self.flow
        amounts = flow.allowed_messages + held * flow.held_messages, flow.allowed_bytes + held * flow.held_bytes
        shares = [amount / self.seconds / quota for amount, quota in zip(amounts, self.quotas, strict=True) if quota]
        return max(shares, default=None)


def tenants(read: Read, span: Span, config: ConfigTables, where: str = "true") -> list[TenantUse]:
    """One for each tenant and group: those of blocked groups first, then the largest share, then whoever has no quota,
    by what came.
    """
    attached = list(config.attachments.topics)
    own = (
        f"CASE WHEN topic IN ({', '.join(map(text, attached))}) THEN topic END" if attached else "CAST(NULL AS STRING)"
    )
    rows = read.rows(
        TABLE,
        f"SELECT tenant, namespace, {own} AS own, count(*) AS topics, bool_and(is_admitted) AS is_admitted, {TOTAL} "  # noqa: S608
        f"FROM (SELECT tenant, namespace, topic, {IS_ADMITTED}, {FLOW} FROM {TABLE} WHERE {span.where()} AND {where} "
        "GROUP BY tenant, namespace, topic) GROUP BY 1, 2, 3",
    )
    sums: dict[tuple[str, str | None], list[tuple[int, bool, Flow]]] = {}
    for row in rows:
        name = row["own"] or (f"persistent://{row['namespace']}/-" if row["namespace"] else "")
        topic = topic_of(name) if name else None
        group = None if topic is None else config.resolve(topic).group
        key = row["tenant"] or NO_TENANT, group
        sums.setdefault(key, []).append((row["topics"], row["is_admitted"], Flow.of(row)))
    found = [
        TenantUse(
            tenant,
            group,
            sum(topics for topics, _, _ in parts),
            Flow.total(flow for _, _, flow in parts),
            all(is_admitted for _, is_admitted, _ in parts),
            quotas_of(config, group),
            span.seconds,
        )
        for (tenant, group), parts in sums.items()
    ]
    return sorted(found, key=_urgency)


def quotas_of(config: ConfigTables, group: str | None) -> tuple[int | None, int | None]:
    """Of publishes, messages/s and bytes/s."""
    known = config.groups.get(group or "")
    return (None, None) if known is None else (known.rates[0], known.rates[1])


def blocked(config: ConfigTables, *groups: str | None) -> tuple[Blocked, ...]:
    """Those of the groups that are blocked, by name; of all that are attached to anything if none is given."""
    names = groups or config.attachments.names()
    found = []
    for group in (config.groups[name] for name in sorted(filter(None, names)) if name in config.groups):
        zero = [
            f"{traffic_class.name.lower()} {dimension.name.lower()}"
            for traffic_class in TrafficClass
            for dimension in Dimension
            if group.quota(traffic_class, dimension) == 0
        ]
        if zero:
            found.append(Blocked(group.name, tuple(zero)))
    return tuple(found)


def _urgency(one: TenantUse) -> tuple[bool, bool, float, int, str, str]:
    """Who is blocked comes first."""
    flow = one.flow
    return (
        not one.is_blocked,
        one.share is None,
        -(one.share or 0),
        -flow.allowed_messages - flow.held_messages,
        one.tenant,
        one.group or "",
    )
