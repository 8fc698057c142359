"""Conf with other limits of topics and tenants in place: what stays, and which group a tenant has to itself."""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import replace

from headgate.conf import Conf, LimitRow, PublishRate, RatePolicies, ResourceGroup, ResourceGroups
from headgate.core.quota.groups import UNLIMITED, RatePair
from headgate.core.topic_names import namespace_of, tenant_of


def topic_rates(conf: Conf, topic: str) -> RatePair:
    """Messages and bytes a second that a topic may publish now, None: not limited. topic: without partition."""
    for policies in (conf.policies.topics.get(topic), conf.policies.namespaces.get(namespace_of(topic))):
        if policies is not None and policies.publish is not None:
            return policies.publish.messages_per_s or None, policies.publish.bytes_per_s or None
    return conf.broker.topic_publish_rate_messages_per_s or None, conf.broker.topic_publish_rate_bytes_per_s or None


def tenant_rates(conf: Conf, tenant: str) -> RatePair:
    """The quota of the group that a tenant is attached to now, with others or not; None: not limited."""
    group = conf.resource_groups.groups.get(conf.resource_groups.tenants.get(tenant, ""))
    return UNLIMITED if group is None else (group.publish_messages_per_s, group.publish_bytes_per_s)


def own_groups(conf: Conf, tenants: Iterable[str]) -> dict[str, str]:
    """A group for each tenant that has nobody else's traffic: its group of now where that is so, else a new one."""
    groups = conf.resource_groups
    within = [*groups.tenants.items(), *((tenant, group) for tenant, _, group in _apart(groups))]
    users = Counter(group for _, group in set(within))
    taken = set(groups.groups)
    own: dict[str, str] = {}
    for tenant in sorted(tenants):
        group = groups.tenants.get(tenant)
        if group is None or users[group] > 1:
            group = next(name for name in _names(tenant) if name not in taken)
        taken.add(group)
        own[tenant] = group
    return own


def attached_apart(conf: Conf, tenants: Container[str]) -> list[tuple[str, str]]:
    """Namespaces and topics of these tenants that are attached to a group themselves, and that group."""
    return [(name, group) for tenant, name, group in _apart(conf.resource_groups) if tenant in tenants]


def _apart(groups: ResourceGroups) -> Iterator[tuple[str, str, str]]:
    """Tenant, name and group of namespaces, then of topics."""
    for name, group in groups.namespaces.items():
        yield name.split("/")[0], name, group
    for topic, group in groups.topics.items():
        yield tenant_of(topic), topic, group


def _names(tenant: str) -> Iterable[str]:
    yield tenant
    number = 1
    while True:
        number += 1
        yield f"{tenant[:240]}-{number}"


def with_topics(conf: Conf, rates: Mapping[str, RatePair]) -> Conf:
    """The conf with these limits of topics."""
    topics = dict(conf.policies.topics)
    for topic, (messages, bytes_) in rates.items():
        publish = PublishRate(messages or 0, bytes_ or 0)
        topics[topic] = replace(topics.get(topic, RatePolicies()), publish=publish)
    return replace(conf, policies=replace(conf.policies, topics=topics))


def with_tenants(conf: Conf, rates: Mapping[str, RatePair], own: Mapping[str, str]) -> Conf:
    """The conf with these quotas of tenants, and without any other group. own: their groups."""
    return replace(conf, resource_groups=groups_of(rates, own))


def groups_of(rates: Mapping[str, RatePair], own: Mapping[str, str]) -> ResourceGroups:
    """A group for each tenant, with its quota."""
    groups = {
        own[tenant]: ResourceGroup(publish_messages_per_s=messages, publish_bytes_per_s=bytes_)
        for tenant, (messages, bytes_) in rates.items()
    }
    return ResourceGroups(groups, {tenant: own[tenant] for tenant in rates})


def without_shared_limits(conf: Conf) -> Conf:
    """The conf without limits of publishes that topics or tenants share: those of brokers and of groups."""
    broker = replace(conf.broker, broker_publish_rate_messages_per_s=0, broker_publish_rate_bytes_per_s=0)
    return replace(conf, broker=broker, resource_groups=ResourceGroups())


def without_limits(conf: Conf) -> Conf:
    """The conf without any limit of publishes."""
    broker = replace(conf.broker, topic_publish_rate_messages_per_s=0, topic_publish_rate_bytes_per_s=0)
    return without_shared_limits(
        replace(conf, broker=broker, policies=replace(conf.policies, namespaces={}, topics={}))
    )


def topic_rows(rates: Mapping[str, RatePair]) -> tuple[LimitRow, ...]:
    """Limits of topics as rows."""
    return tuple(LimitRow("topic", name, messages or 0, bytes_ or 0) for name, (messages, bytes_) in rates.items())


def group_rows(rates: Mapping[str, RatePair], own: Mapping[str, str]) -> tuple[LimitRow, ...]:
    """Quotas of tenants as rows, for brokers that share nothing."""
    return tuple(LimitRow("group", own[name], messages, bytes_) for name, (messages, bytes_) in rates.items())
