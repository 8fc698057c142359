"""Names of topics: full and short ones, and what a name says about its tenant, namespace and partition.

Source: resource-groups 3.1. `arrow/topic_names.py` has what jobs ask of many names at once.
"""

import re
from dataclasses import dataclass

SCHEMES = ("persistent", "non-persistent")
_PART = r"[-=:.\w]+"
_SHORT_OR_FULL = re.compile(
    rf"(?:(?P<scheme>{'|'.join(SCHEMES)})://)?(?P<namespace>{_PART}/{_PART})/(?P<local>.+)", re.ASCII | re.DOTALL
)
_IN_NAMESPACE = re.compile(rf"(?:{'|'.join(SCHEMES)})://([^/]+/[^/]+)/.", re.DOTALL)
_PATH_NAME = re.compile(_PART, re.ASCII)
_NAMESPACE = re.compile(f"{_PART}/{_PART}", re.ASCII)
_PARTITION = re.compile(r"-partition-[0-9]+\Z")


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic that all its partitions are; `namespace` is tenant/namespace, `name` full, with its scheme."""

    name: str
    tenant: str
    namespace: str


def topic_of(name: object) -> Topic | None:
    """The topic that `name` means: full, without a scheme (then persistent), or a partition's; None for anything else.

    The local name may contain "/". Tenant and namespace are of A-Z a-z 0-9 _ - = : .
    """
    full = full_name(name) if isinstance(name, str) else None
    whole = full and without_partition(full)
    return Topic(whole, tenant_of(whole), namespace_of(whole)) if whole and namespace_of(whole) else None


def full_name(name: str) -> str | None:
    """`name` with its scheme, persistent where it has none; partitions stay. None if it is not a topic's name."""
    match = _SHORT_OR_FULL.fullmatch(name)
    return match and f"{match['scheme'] or SCHEMES[0]}://{match['namespace']}/{match['local']}"


def without_partition(topic: str) -> str:
    """The topic that a partition belongs to, whose policies hold for it; other names come back as they are."""
    return _PARTITION.sub("", topic)


def namespace_of(topic: str) -> str:
    """`tenant/namespace` of a full name; empty for anything else."""
    match = _IN_NAMESPACE.match(topic)
    return match[1] if match else ""


def tenant_of(topic: str) -> str:
    """The tenant of a full name; empty for anything else."""
    return namespace_of(topic).partition("/")[0]


def is_namespace(name: str) -> bool:
    """Whether `name` is tenant/namespace."""
    return _NAMESPACE.fullmatch(name) is not None


def is_path_name(name: str) -> bool:
    """Whether `name` can be a tenant's, or a namespace's own: of A-Z a-z 0-9 _ - = : ."""
    return _PATH_NAME.fullmatch(name) is not None
