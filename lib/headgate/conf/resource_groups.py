"""resource-groups.json: resource groups as Pulsar's admin API takes and returns them, and what they are attached to."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from headgate.conf.findings import INT32_MAX, INT64_MAX, Findings, nearest, shown
from headgate.conf.json_file import JsonFile, Path, read_json
from headgate.conf.policies import topic_key
from headgate.core.quota.attachments import Attachments
from headgate.core.quota.groups import is_group_name
from headgate.core.topic_names import is_namespace, is_path_name, topic_of

_NOT_LIMITED: Final = -1
# Rate, its field, the largest value of its type in Pulsar.
_RATES: Final = {
    "publishRateInMsgs": ("publish_messages_per_s", INT32_MAX),
    "publishRateInBytes": ("publish_bytes_per_s", INT64_MAX),
    "dispatchRateInMsgs": ("dispatch_messages_per_s", INT32_MAX),
    "dispatchRateInBytes": ("dispatch_bytes_per_s", INT64_MAX),
}
# Extensions in Pulsar's development line: two rates, and rates by pair of clusters.
_REPLICATION_KEYS: Final = ("replicationDispatchRateInMsgs", "replicationDispatchRateInBytes", "replicatorDispatchRate")


@dataclass(frozen=True, slots=True)
class ResourceGroup:
    """Quotas of one group for the whole cluster; 0 blocks, None is not limited (resource-groups.md 1, 2)."""

    publish_messages_per_s: int | None = None
    publish_bytes_per_s: int | None = None
    dispatch_messages_per_s: int | None = None
    dispatch_bytes_per_s: int | None = None


@dataclass(frozen=True, slots=True)
class ResourceGroups:
    """Groups by name, and the name of the group that each tenant, namespace and topic is attached to; read-only.

    Every attached group exists. Topics are full names without partitions.
    """

    groups: Mapping[str, ResourceGroup] = field(default_factory=dict)
    tenants: Mapping[str, str] = field(default_factory=dict)
    namespaces: Mapping[str, str] = field(default_factory=dict)
    topics: Mapping[str, str] = field(default_factory=dict)

    @property
    def attached(self) -> set[str]:
        """Groups that anything is attached to."""
        return {*self.tenants.values(), *self.namespaces.values(), *self.topics.values()}

    def group_of(self, topic: str) -> str | None:
        """Return the one group that a topic is charged to: its own, else its namespace's, else its tenant's.

        A partition counts as its topic. A name that is not a topic's has no group (resource-groups.md 3).
        """
        found = topic_of(topic)
        attached = Attachments(self.tenants, self.namespaces, self.topics)
        return None if found is None else next((group for _, group in attached.of(found)), None)

    def publish_quota(self, group: str, unit: str) -> int | None:
        """The quota per second for publishes of a group, in `messages` or `bytes`; None without one."""
        found = self.groups.get(group, ResourceGroup())
        quota: int | None = getattr(found, f"publish_{unit}_per_s")
        return quota


def read_resource_groups(text: str, file: str, findings: Findings) -> ResourceGroups:
    """Return the groups and attachments in a resource-groups.json; what is wrong goes to `findings`."""
    source, table = read_json(text, file, ("resourcegroups", "tenants", "namespaces", "topics"), findings)
    groups: dict[str, ResourceGroup] = {}
    declared: set[str] = set()  # also groups with mistakes, so that their attachments are not reported as well

    def read_group(name: str, value: Any) -> None:
        path = ("resourcegroups", name)
        declared.add(name)
        if is_group_name(name):
            groups[name] = _group(source, path, value)
        else:
            source.mistake(path, "this name", "1 to 250 of A-Z a-z 0-9 _ - = : .", "correct the name")

    source.section(table, "resourcegroups", read_group)

    def attached(scope: str, is_name: Callable[[str], bool], allowed: str) -> dict[str, str]:
        attachments: dict[str, str] = {}

        def read(name: str, group: Any) -> None:
            if not is_name(name):
                source.mistake((scope, name), "this name", allowed, "correct the name")
            elif _is_attachable(source, (scope, name), group, declared):
                attachments[name] = group

        source.section(table, scope, read)
        return attachments

    topics: dict[str, str] = {}

    def read_topic(name: str, group: Any) -> None:
        path = ("topics", name)
        topic = topic_key(source, path, topics)
        if topic is not None and _is_attachable(source, path, group, declared):
            topics[topic] = group

    source.section(table, "topics", read_topic)
    return ResourceGroups(
        groups,
        attached("tenants", is_path_name, "a tenant's name: A-Z a-z 0-9 _ - = : ."),
        attached("namespaces", is_namespace, "tenant/namespace"),
        topics,
    )


def _group(source: JsonFile, path: Path, value: object) -> ResourceGroup:
    table = source.table(path, value) or {}
    source.closed(path, table, (*_RATES, *_REPLICATION_KEYS))
    for key in _REPLICATION_KEYS:
        if table.get(key) not in (None, _NOT_LIMITED, {}):  # a tuple: an object cannot be in a set
            source.findings.warnings.append(f"{source.place((*path, key))}: replication is never limited by a group")
    return ResourceGroup(
        **{column: _quota(source, (*path, key), table.get(key), high) for key, (column, high) in _RATES.items()}
    )


def _quota(source: JsonFile, path: Path, value: object, high: int) -> int | None:
    """Return a quota, None where it is not limited."""
    if value is None or (value == _NOT_LIMITED and not isinstance(value, float)):
        return None
    return source.integer(path, value, 0, high, "write -1 or null for not limited, 0 to block")


def _is_attachable(source: JsonFile, path: Path, group: object, declared: set[str]) -> bool:
    if isinstance(group, str) and group in declared:
        return True
    if not isinstance(group, str):
        source.mistake(path, shown(group), "the name of a resource group", "write a name, or delete the entry")
        return False
    known = ", ".join(sorted(declared)) or "none is defined"
    near = nearest(group, declared)
    remedy = f"did you mean {near}?" if near else "define it under resourcegroups, or delete the attachment"
    source.mistake(path, f"the unknown group {shown(group)}", known, remedy)
    return False
