"""Names of topics, namespaces, tenants and resource groups (resource-groups.md 3, 4)."""

import re
from typing import Final

_PART: Final = r"[-=:.\w]+"
_TOPIC: Final = re.compile(
    rf"(?:(?P<scheme>persistent|non-persistent)://)?(?P<namespace>{_PART}/{_PART})/(?P<local>.+)", re.ASCII | re.DOTALL
)
_NAMESPACE: Final = re.compile(rf"{_PART}/{_PART}", re.ASCII)
_TENANT: Final = re.compile(_PART, re.ASCII)
_GROUP: Final = re.compile(r"[-=:.\w]{1,250}", re.ASCII)
_PARTITION: Final = re.compile(r"-partition-[0-9]+\Z")


def topic_name(name: str) -> str | None:
    """Return the full name, `persistent://tenant/namespace/local`, of a full or short name; None if it is neither.

    Without a scheme `persistent` is meant. The local name may contain `/`.
    """
    match = _TOPIC.fullmatch(name)
    return match and f"{match['scheme'] or 'persistent'}://{match['namespace']}/{match['local']}"


def without_partition(topic: str) -> str:
    """Return the topic that a partition belongs to; other names come back as they are."""
    return _PARTITION.sub("", topic)


def namespace_of(topic: str) -> str:
    """Return `tenant/namespace` of a full topic name."""
    tenant, namespace, _ = topic.split("://", 1)[1].split("/", 2)
    return f"{tenant}/{namespace}"


def tenant_of(topic: str) -> str:
    """Return the tenant of a full topic name."""
    return topic.split("://", 1)[1].split("/", 1)[0]


def is_namespace(name: str) -> bool:
    """Return whether `name` is `tenant/namespace`."""
    return _NAMESPACE.fullmatch(name) is not None


def is_tenant(name: str) -> bool:
    """Return whether `name` can be a tenant's."""
    return _TENANT.fullmatch(name) is not None


def is_group(name: str) -> bool:
    """Return whether `name` can be a resource group's: 1 to 250 of A-Z a-z 0-9 _ - = : ."""
    return _GROUP.fullmatch(name) is not None
