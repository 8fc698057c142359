"""Which group a topic is charged to, and which limit of several binds (resource-groups 2, 3)."""

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from headgate.core.quota.groups import UNLIMITED, RatePair, TrafficClass, stricter
from headgate.core.topic_names import Topic

ClassLimits = Mapping[TrafficClass, RatePair]


class AttachedTo(StrEnum):
    """What a group is attached to; `exempt` is traffic that has no group whatever is attached."""

    TOPIC = "topic"
    NAMESPACE = "namespace"
    TENANT = "tenant"
    EXEMPT = "exempt"


FIELDS = {AttachedTo.TENANT: "tenants", AttachedTo.NAMESPACE: "namespaces", AttachedTo.TOPIC: "topics"}
"""The field of `Attachments` by scope."""


@dataclass(frozen=True, slots=True)
class Attachments:
    """Names of groups by what they are attached to: tenants, tenant/namespace, full topic names without partition."""

    tenants: Mapping[str, str] = field(default_factory=dict)
    namespaces: Mapping[str, str] = field(default_factory=dict)
    topics: Mapping[str, str] = field(default_factory=dict)

    def of(self, topic: Topic) -> Iterator[tuple[AttachedTo, str]]:
        """The groups attached to the topic, its namespace and its tenant, narrowest first."""
        scopes = (
            (AttachedTo.TOPIC, topic.name),
            (AttachedTo.NAMESPACE, topic.namespace),
            (AttachedTo.TENANT, topic.tenant),
        )
        for scope, resource in scopes:
            name = self.by_scope(scope).get(resource)
            if name is not None:
                yield scope, name

    def by_scope(self, scope: AttachedTo) -> Mapping[str, str]:
        """The attachments of one scope."""
        attached: Mapping[str, str] = getattr(self, FIELDS[scope])
        return attached

    def names(self) -> set[str]:
        """All groups that are attached to anything, whether or not they exist."""
        return {name for scope in FIELDS for name in self.by_scope(scope).values()}


@dataclass(frozen=True, slots=True)
class Resolution:
    """The one group that a topic's traffic is charged to, None for none.

    scope: what it is attached to, None where nothing is.
    dangling: attached groups that do not exist and were skipped, in the order in which they were met.
    """

    group: str | None
    scope: AttachedTo | None
    dangling: tuple[str, ...] = ()


def resolve(topic: Topic, attachments: Attachments, groups: Container[str], *, replication: bool = False) -> Resolution:
    """The first group that exists of those attached to the topic, its namespace, its tenant.

    groups: names of those that exist. replication: traffic of a replicator, which is exempt.
    Source: resource-groups 3.
    """
    if replication:
        return Resolution(None, AttachedTo.EXEMPT)
    dangling: list[str] = []
    for scope, name in attachments.of(topic):
        if name in groups:
            return Resolution(name, scope, tuple(dangling))
        dangling.append(name)
    return Resolution(None, None, tuple(dangling))


def effective_limits(
    resolution: Resolution, topic_limits: ClassLimits, group_limits: Mapping[str, ClassLimits]
) -> dict[TrafficClass, RatePair]:
    """What binds a topic's traffic, by class: the stricter of its own limit and its group's, in each dimension.

    Exempt traffic has no limit here. Limits a second; None is no bound. Source: resource-groups 2, 3.4.
    """
    if resolution.scope is AttachedTo.EXEMPT:
        return dict.fromkeys(TrafficClass, UNLIMITED)
    of_group = {} if resolution.group is None else group_limits.get(resolution.group, {})
    return {
        traffic_class: stricter(topic_limits.get(traffic_class, UNLIMITED), of_group.get(traffic_class, UNLIMITED))
        for traffic_class in TrafficClass
    }
