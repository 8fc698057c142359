"""Limits and attachments of the conf files as flat rows, which a job writes into its ordered stream."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from headgate.conf.conf import Conf
from headgate.conf.policies import RatePolicies

RATE_MAX: Final = 2**53 - 1
"""The largest rate of a resource group; larger ones count as this (resource-groups.md 1)."""

Scope = Literal["default", "namespace", "topic", "broker", "group"]
Level = Literal["dispatch", "subscription", "replicator"]


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
class LevelLimitRow:
    """The dispatch limit of a level that is no group's; a rate is a whole number from 0 in `period_s`, and 0 is off.

    level: `dispatch` (of the topic, or with scope `broker` of the broker), `subscription` or `replicator`. `name` is as
    in a LimitRow. A namespace or topic row of (0, 0) lifts the wider limit; no row means that it holds. relative: the
    topic's publish rate is added to what is not off.
    """

    level: Level
    scope: Literal["default", "namespace", "topic", "broker"]
    name: str
    messages_per_period: int
    bytes_per_period: int
    period_s: int = 1
    relative: bool = False


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
class UnloadLimitRow:
    """How many unloads of bundles each broker starts a second, 0 is off, and how long it waits for one, from 1 ms."""

    scope: Literal["broker"]
    name: str
    starts_per_s: int
    timeout_ms: int


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


ConfRow = LimitRow | LevelLimitRow | SubscribeLimitRow | UnloadLimitRow | ConnectionLimitRow | AttachmentRow


def conf_limits(conf: Conf) -> list[ConfRow]:
    """Return every limit and attachment of the conf files, kind by kind."""
    return [
        *publish_limits(conf),
        *dispatch_limits(conf),
        *level_limits(conf),
        *subscribe_limits(conf),
        *unload_limits(conf),
        *connection_limits(conf),
        *group_attachments(conf),
    ]


def publish_limits(conf: Conf) -> list[LimitRow]:
    """Return one row for everything that the conf files can limit, set or not, so that a new file switches off too.

    The order is default, namespaces, topics, broker, groups, each by name: it depends on the settings alone. Group
    rows hold the quota of the whole cluster, also of groups that nothing is attached to.
    """
    broker = conf.broker
    rows = [LimitRow("default", "", broker.topic_publish_rate_messages_per_s, broker.topic_publish_rate_bytes_per_s)]
    rows += [
        LimitRow(scope, name, policies.publish.messages_per_s, policies.publish.bytes_per_s)
        for scope, name, policies in _by_name(conf)
        if policies.publish is not None
    ]
    rows.append(
        LimitRow("broker", "", broker.broker_publish_rate_messages_per_s, broker.broker_publish_rate_bytes_per_s)
    )
    for name, group in sorted(conf.resource_groups.groups.items()):
        rows.append(LimitRow("group", name, _cut(group.publish_messages_per_s), _cut(group.publish_bytes_per_s)))
    return rows


def dispatch_limits(conf: Conf) -> list[DispatchLimitRow]:
    """Return a row for each group, by name, with the quota of the whole cluster."""
    return [
        DispatchLimitRow("group", name, _cut(group.dispatch_messages_per_s), _cut(group.dispatch_bytes_per_s))
        for name, group in sorted(conf.resource_groups.groups.items())
    ]


def level_limits(conf: Conf) -> list[LevelLimitRow]:
    """Return the broker's row, and of each level its default and a row for each namespace and topic with a policy."""
    broker = conf.broker
    rates = (broker.broker_dispatch_rate_messages_per_s, broker.broker_dispatch_rate_bytes_per_s)
    rows = [LevelLimitRow("dispatch", "broker", "", *rates)]
    defaults: tuple[tuple[Level, int, int], ...] = (
        ("dispatch", broker.topic_dispatch_rate_messages_per_s, broker.topic_dispatch_rate_bytes_per_s),
        (
            "subscription",
            broker.subscription_dispatch_rate_messages_per_s,
            broker.subscription_dispatch_rate_bytes_per_s,
        ),
        ("replicator", broker.replicator_dispatch_rate_messages_per_s, broker.replicator_dispatch_rate_bytes_per_s),
    )
    for level, messages, bytes_ in defaults:
        relative = broker.dispatch_rate_relative_to_publish_rate
        rows.append(LevelLimitRow(level, "default", "", messages, bytes_, relative=relative))
        for scope, name, policies in _by_name(conf):
            rate = {
                "dispatch": policies.dispatch,
                "subscription": policies.subscription_dispatch,
                "replicator": policies.replicator_dispatch,
            }[level]
            if rate is not None:
                period_s = max(1, rate.period_s)
                amounts = (rate.messages_per_period, rate.bytes_per_period, period_s, rate.relative_to_publish_rate)
                rows.append(LevelLimitRow(level, scope, name, *amounts))
    return rows


def subscribe_limits(conf: Conf) -> list[SubscribeLimitRow]:
    """Return the default, which is off or not, and a row for each namespace and topic with a policy, by name."""
    rate, period_s = conf.broker.subscribe_rate_per_period, conf.broker.subscribe_rate_period_s
    rows = [SubscribeLimitRow("default", "", max(0, rate), max(0, period_s))]
    for scope, name, policies in _by_name(conf):
        if policies.subscribe is not None:
            rate, period_s = policies.subscribe.subscribes_per_period, policies.subscribe.period_s
            rows.append(SubscribeLimitRow(scope, name, rate, max(0, period_s)))
    return rows


def unload_limits(conf: Conf) -> list[UnloadLimitRow]:
    """Return the one row for every broker, which names no one."""
    return [UnloadLimitRow("broker", "", conf.broker.unload_starts_per_s, conf.broker.bundle_unloading_timeout_ms)]


def connection_limits(conf: Conf) -> list[ConnectionLimitRow]:
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


def group_attachments(conf: Conf) -> list[AttachmentRow]:
    """Return one row for everything that a group is attached to: tenants, namespaces, topics, each by name."""
    groups = conf.resource_groups
    rows = [AttachmentRow("tenant", name, group) for name, group in sorted(groups.tenants.items())]
    rows += [AttachmentRow("namespace", name, group) for name, group in sorted(groups.namespaces.items())]
    return rows + [AttachmentRow("topic", name, group) for name, group in sorted(groups.topics.items())]


def _by_name(conf: Conf) -> Iterator[tuple[Literal["namespace", "topic"], str, RatePolicies]]:
    """Scope, name and policies of every namespace, then of every topic, each by name."""
    for name, policies in sorted(conf.policies.namespaces.items()):
        yield "namespace", name, policies
    for name, policies in sorted(conf.policies.topics.items()):
        yield "topic", name, policies


def _cut(rate_per_s: int | None) -> int | None:
    return None if rate_per_s is None else min(rate_per_s, RATE_MAX)
