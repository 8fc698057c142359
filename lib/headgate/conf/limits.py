"""Limits and attachments of the conf files as flat rows, which a job writes into its ordered stream."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from headgate.conf.policies import RatePolicies

if TYPE_CHECKING:
    from headgate.conf.load import Conf

RATE_MAX: Final = 2**53 - 1
"""The largest rate of a resource group; larger ones count as this (resource-groups.md 1)."""

Scope = Literal["default", "namespace", "topic", "broker", "group"]


@dataclass(frozen=True, slots=True)
class LimitRow:
    """The publish limit of one scope; a rate is a whole number from 0, and 0 is off. Of a group 0 blocks, None is off.

    `name` is the namespace, full topic name or group, and empty for `default` (every topic without a policy) and
    `broker`. A namespace or topic row of (0, 0) lifts the wider limits of a topic; no row means that they hold.
    """

    scope: Scope
    name: str
    messages_per_s: int | None
    bytes_per_s: int | None


@dataclass(frozen=True, slots=True)
class DispatchLimitRow(LimitRow):
    """The same of dispatches; groups alone have one."""


@dataclass(frozen=True, slots=True)
class SubscribeLimitRow:
    """How often a consumer may subscribe to a topic of this scope in a period; a rate or a period of 0 is off.

    `name` is as in a LimitRow. A namespace or topic row that is off lifts the wider limit; no row means that it holds.
    """

    scope: Literal["default", "namespace", "topic"]
    name: str
    subscribes_per_period: int
    period_s: int


@dataclass(frozen=True, slots=True)
class ConnectionLimitRow:
    """What holds connections of every broker; 0 is off, and io_threads is 0 where it is not set (rate-limiters 10)."""

    max_pending_publish_requests: int
    max_publish_buffer_mib: int
    io_threads: int
    pause_if_unwritable: bool
    cooldown_ms: int
    cooldown_permits: int
    cooldown_period_ms: int
    scope: Literal["broker"] = "broker"
    name: Literal[""] = ""


@dataclass(frozen=True, slots=True)
class AttachmentRow:
    """The group that a tenant, a namespace (tenant/namespace) or a topic (its full name) is attached to."""

    scope: Literal["tenant", "namespace", "topic"]
    name: str
    group: str


def publish_limits(conf: "Conf") -> list[LimitRow]:
    """Return one row for everything that the conf files can limit, set or not, so that a new file switches off too.

    The order is default, namespaces, topics, broker, groups, each by name: it depends on the settings alone. Group
    rows hold the quota of the whole cluster, also of groups that nothing is attached to.
    """
    broker = conf.broker
    rows = [LimitRow("default", "", broker.topic_publish_rate_messages_per_s, broker.topic_publish_rate_bytes_per_s)]
    rows += _policy_rows("namespace", conf.policies.namespaces)
    rows += _policy_rows("topic", conf.policies.topics)
    rows.append(
        LimitRow("broker", "", broker.broker_publish_rate_messages_per_s, broker.broker_publish_rate_bytes_per_s)
    )
    for name, group in sorted(conf.resource_groups.groups.items()):
        rows.append(LimitRow("group", name, _cut(group.publish_messages_per_s), _cut(group.publish_bytes_per_s)))
    return rows


def dispatch_limits(conf: "Conf") -> list[DispatchLimitRow]:
    """Return a row for each group, by name, with the quota of the whole cluster."""
    return [
        DispatchLimitRow("group", name, _cut(group.dispatch_messages_per_s), _cut(group.dispatch_bytes_per_s))
        for name, group in sorted(conf.resource_groups.groups.items())
    ]


def subscribe_limits(conf: "Conf") -> list[SubscribeLimitRow]:
    """Return the default, which is off or not, and a row for each namespace and topic with a policy, by name."""
    rate, period_s = conf.broker.subscribe_rate_per_period, conf.broker.subscribe_rate_period_s
    rows = [SubscribeLimitRow("default", "", max(0, rate), max(0, period_s))]
    policies: tuple[tuple[Literal["namespace", "topic"], Mapping[str, RatePolicies]], ...] = (
        ("namespace", conf.policies.namespaces),
        ("topic", conf.policies.topics),
    )
    for scope, by_name in policies:
        for name, rates in sorted(by_name.items()):
            if rates.subscribe is not None:
                rate, period_s = rates.subscribe.subscribes_per_period, rates.subscribe.period_s
                rows.append(SubscribeLimitRow(scope, name, rate, max(0, period_s)))
    return rows


def connection_limits(conf: "Conf") -> list[ConnectionLimitRow]:
    """Return the one row of what holds connections, set or not."""
    broker = conf.broker
    return [
        ConnectionLimitRow(
            max_pending_publish_requests=max(0, broker.max_pending_publish_requests_per_connection),
            max_publish_buffer_mib=max(0, broker.max_publish_buffer_mib),
            io_threads=broker.io_threads or 0,
            pause_if_unwritable=broker.pause_receiving_if_unwritable,
            cooldown_ms=max(0, broker.pause_receiving_cooldown_ms),
            cooldown_permits=max(0, broker.pause_receiving_cooldown_permits),
            cooldown_period_ms=max(0, broker.pause_receiving_cooldown_period_ms),
        )
    ]


def group_attachments(conf: "Conf") -> list[AttachmentRow]:
    """Return one row for everything that a group is attached to: tenants, namespaces, topics, each by name."""
    groups = conf.resource_groups
    rows = [AttachmentRow("tenant", name, group) for name, group in sorted(groups.tenants.items())]
    rows += [AttachmentRow("namespace", name, group) for name, group in sorted(groups.namespaces.items())]
    return rows + [AttachmentRow("topic", name, group) for name, group in sorted(groups.topics.items())]


def _policy_rows(scope: Scope, policies: Mapping[str, RatePolicies]) -> list[LimitRow]:
    return [
        LimitRow(scope, name, rates.publish.messages_per_s, rates.publish.bytes_per_s)
        for name, rates in sorted(policies.items())
        if rates.publish is not None
    ]


def _cut(rate_per_s: int | None) -> int | None:
    return None if rate_per_s is None else min(rate_per_s, RATE_MAX)
