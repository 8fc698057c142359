"""Groups and attachments as of one read: brokers resolve by them, the admin API writes them (resource-groups 5.1)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from headgate.core.quota.attachments import FIELDS, AttachedTo, Attachments, Resolution, resolve
from headgate.core.quota.groups import ResourceGroup
from headgate.core.topic_names import Topic


@dataclass(frozen=True, slots=True)
class Attachment:
    """A row of rg_attachments: from this version on `group_name` is attached to `resource`, None: nothing is.

    resource: a tenant, tenant/namespace, or a full topic name without partition.
    """

    scope: AttachedTo
    resource: str
    group_name: str | None
    version: int = 0


ConfigRow = ResourceGroup | Attachment


@dataclass(frozen=True, slots=True)
class Move:
    """A topic whose group changed: it leaves `before` and joins `after` in the same evaluation, None for no group."""

    topic: Topic
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class ConfigTables:
    """Both tables, each group and each attached resource once: its newest row. Never changed, only replaced.

    groups: by name, those that exist. last_group_id: the highest id ever given, 0 without any.
    version: the highest in either table. Since they are read one after the other, content may still differ.
    """

    groups: Mapping[str, ResourceGroup] = field(default_factory=dict)
    attachments: Attachments = field(default_factory=Attachments)
    last_group_id: int = 0
    version: int = 0

    @classmethod
    def of(cls, groups: Iterable[ResourceGroup], attachments: Iterable[Attachment]) -> "ConfigTables":
        """The tables from their rows, in any order and with superseded ones. Groups are to be read first."""
        group_rows, attachment_rows = list(groups), list(attachments)
        rows: list[ConfigRow] = [*group_rows, *attachment_rows]
        newest = {row.group_id: row for row in sorted(group_rows, key=_version)}
        attached: dict[str, dict[str, str]] = {name: {} for name in FIELDS.values()}
        for row in sorted(attachment_rows, key=_version):
            _attach(attached[FIELDS[row.scope]], row)
        return cls(
            {row.name: row for row in newest.values() if not row.deleted},
            Attachments(**attached),
            max((row.group_id for row in group_rows), default=0),
            max((row.version for row in rows), default=0),
        )

    def written(self, row: ConfigRow) -> "ConfigTables":
        """The tables after one more row."""
        version = max(self.version, row.version)
        if isinstance(row, ResourceGroup):
            groups = {name: group for name, group in self.groups.items() if group.group_id != row.group_id}
            if not row.deleted:
                groups[row.name] = row
            return ConfigTables(groups, self.attachments, max(self.last_group_id, row.group_id), version)
        attached = dict(self.attachments.by_scope(row.scope))
        _attach(attached, row)
        attachments = replace(self.attachments, **{FIELDS[row.scope]: attached})
        return ConfigTables(self.groups, attachments, self.last_group_id, version)

    def resolve(self, topic: Topic, *, replication: bool = False) -> Resolution:
        """The group of a topic's traffic. Source: resource-groups 3."""
        return resolve(topic, self.attachments, self.groups, replication=replication)

    def attached_groups(self) -> dict[int, ResourceGroup]:
        """The groups in use, by id: those that exist and are attached. None of them: the stage does not run.

        resource-groups 3.5
        """
        attached = self.attachments.names()
        return {group.group_id: group for name, group in self.groups.items() if name in attached}

    def dangling(self) -> set[str]:
        """Names of attached groups that do not exist. resource-groups 3.2"""
        return self.attachments.names() - set(self.groups)


def moves(before: ConfigTables, after: ConfigTables, topics: Iterable[Topic]) -> list[Move]:
    """Of `topics`, those whose group is another one under `after`. Source: resource-groups 3.3, 10.

    A group that was deleted and created anew under its name is another group.
    """
    if before == after:
        return []
    pairs = [(topic, before.resolve(topic).group, after.resolve(topic).group) for topic in topics]
    return [Move(topic, was, now) for topic, was, now in pairs if was != now or _id(before, was) != _id(after, now)]


def _id(tables: ConfigTables, name: str | None) -> int | None:
    return None if name is None else tables.groups[name].group_id


def _version(row: ConfigRow) -> int:
    return row.version


def _attach(attached: dict[str, str], row: Attachment) -> None:
    if row.group_name is None:
        attached.pop(row.resource, None)
    else:
        attached[row.resource] = row.group_name
