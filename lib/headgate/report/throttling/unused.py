"""Limits of conf files that no row of a trace came under: a name may be misspelt, or the trace too short."""

from collections.abc import Iterable, Iterator

from headgate.conf import Conf
from headgate.conf.limits import publish_limits
from headgate.core.topic_names import namespace_of, tenant_of, without_partition


def has_publish_limits(conf: Conf) -> bool:
    """Whether any publish could be held at all. A group that nothing is attached to holds none."""
    attached = conf.resource_groups.attached
    return any(
        (row.messages_per_s or 0) > 0 or (row.bytes_per_s or 0) > 0
        for row in publish_limits(conf)
        if row.scope != "group" or row.name in attached
    )


def unused(conf: Conf, topics: Iterable[str]) -> list[str]:
    """Groups that nothing is attached to, and policies and attachments that none of these topics, full names, has."""
    names = {without_partition(topic) for topic in topics}
    seen = {"tenant": set(map(tenant_of, names)), "namespace": set(map(namespace_of, names)), "topic": names}
    groups = conf.resource_groups
    return [
        *(f"{kind} {name} ({file})" for kind, name, file in _named(conf) if name not in seen[kind]),
        *(
            f"group {name} (resource-groups.json: attached to nothing)"
            for name in sorted(groups.groups.keys() - groups.attached)
        ),
    ]


def _named(conf: Conf) -> Iterator[tuple[str, str, str]]:
    policies, groups = conf.policies, conf.resource_groups
    of_policies = {"namespace": [*policies.namespaces], "topic": [*policies.topics]}
    attached = {"tenant": [*groups.tenants], "namespace": [*groups.namespaces], "topic": [*groups.topics]}
    for file, by_kind in {"policies.json": of_policies, "resource-groups.json": attached}.items():
        yield from ((kind, name, file) for kind, of_kind in by_kind.items() for name in sorted(of_kind))
