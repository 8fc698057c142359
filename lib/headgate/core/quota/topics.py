"""Names of topics, and what a name says about its tenant and namespace (resource-groups 3.1)."""

from dataclasses import dataclass

from headgate.core.quota.groups import is_path_name

PERSISTENT = "persistent"
SCHEMES = (PERSISTENT, "non-persistent")
_SCHEME_END = "://"
_PARTITION = "-partition-"
_DIGITS = frozenset("0123456789")


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic that all its partitions are; `namespace` is tenant/namespace, `name` full, with its scheme."""

    name: str
    tenant: str
    namespace: str


def topic_of(name: object) -> Topic | None:
    """The topic that `name` means: full, without a scheme (then persistent), or a partition's; None for anything else.

    The local name may contain "/". Tenant and namespace are of A-Z a-z 0-9 _ - = : . Source: resource-groups 3.1.
    """
    if not isinstance(name, str):
        return None
    scheme, end, rest = name.partition(_SCHEME_END)
    if not end or scheme not in SCHEMES:
        scheme, rest = PERSISTENT, name
    parts = rest.split("/", 2)
    if len(parts) != 3 or not all(map(is_path_name, parts[:2])):
        return None
    tenant, namespace, local = parts[0], parts[1], _without_partition(parts[2])
    return Topic(f"{scheme}://{tenant}/{namespace}/{local}", tenant, f"{tenant}/{namespace}") if local else None


def _without_partition(local: str) -> str:
    stem, found, number = local.rpartition(_PARTITION)
    return stem if found and number and _DIGITS.issuperset(number) else local
