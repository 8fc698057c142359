"""rg_groups and rg_attachments: read when they changed, written only if nobody wrote since (resource-groups 4, 5.1).

Two tables, one order of writes. Every write is a commit to rg_groups, made only on the version that was read, so writes
follow one another. One that changes attachments begins with that commit, which counts a transaction of ADMIN up, and
ends with the commit to rg_attachments that has the same number. Where the numbers differ, a write is under way or was
broken off: before anybody else writes, an empty commit with the number to rg_attachments makes sure that it can no
longer end. So no group is deleted while it is being attached, and no lock has to time out.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
from deltalake import Transaction

from headgate.core.quota.attachments import AttachedTo
from headgate.core.quota.config_tables import Attachment, ConfigRow, ConfigTables
from headgate.core.quota.groups import ResourceGroup, is_group_name
from headgate.errors import TableError
from headgate.quota.tables.delta import BY, Table, wrong_row

ADMIN = "headgate-admin"
"""The application id of writes; its version is the number of the write, the same in both tables."""
_NAMED_RATES = ("publish_msgs", "publish_bytes", "dispatch_msgs", "dispatch_bytes")


class ConfigStore:
    """Both tables as of the last `read`. One thread and one writer at a time; any number of stores on the same tables.

    by: who writes, which the log of both tables then says. Raises TableError where a table cannot be read or written.
    """

    def __init__(self, groups: Table, attachments: Table, *, by: str = "") -> None:
        self.groups = groups
        self.attachments = attachments
        if by:
            groups.metadata[BY] = attachments.metadata[BY] = by
        self._read_groups: tuple[int, list[ResourceGroup]] = (-1, [])
        self._read_attachments: tuple[int, list[Attachment]] = (-1, [])
        self._tables = ConfigTables()
        self._is_fresh = False

    def read(self) -> ConfigTables:
        """The tables as they are now; the same object as before if nobody wrote. Groups are read first."""
        groups_version = self.groups.refresh()
        attachments_version = self.attachments.refresh()
        if (groups_version, attachments_version) != (self._read_groups[0], self._read_attachments[0]):
            if groups_version != self._read_groups[0]:
                rows = list(map(_group, self.groups.select().to_pylist()))
                self._read_groups = groups_version, rows
            if attachments_version != self._read_attachments[0]:
                attached = list(map(_attachment, self.attachments.select().to_pylist()))
                self._read_attachments = attachments_version, attached
            self._tables = ConfigTables.of(self._read_groups[1], self._read_attachments[1])
        self._is_fresh = True
        return self._tables

    def is_of_attachments(self, error: TableError) -> bool:
        """Whether `read` raised it for rg_attachments, else for rg_groups."""
        return self.attachments.location in str(error) or "rg_attachments has" in str(error)

    def write(self, rows: Sequence[ConfigRow], read_version: int) -> bool:
        """Write rows of the next versions, once after each `read`; False if somebody wrote since, or is writing.

        After False some rows of groups may be there, when `rows` has both kinds; attachments never are.
        read_version: of the tables that the rows were decided on. Source: resource-groups 4.
        """
        if read_version != self._tables.version or not self._is_fresh:
            return False
        self._is_fresh = False
        groups = [row for row in rows if isinstance(row, ResourceGroup)]
        attachments = [row for row in rows if isinstance(row, Attachment)]
        number = self.groups.transaction_version(ADMIN) or 0
        if number != (self.attachments.transaction_version(ADMIN) or 0):
            if not self.attachments.commit_pinned([], [Transaction(ADMIN, number)]):
                return False
            self.attachments.refresh()
        if not attachments:
            return not groups or _appended(self.groups, map(_group_row, groups), [])
        next_write = [Transaction(ADMIN, number + 1)]
        began = (
            _appended(self.groups, map(_group_row, groups), next_write)
            if groups
            else self.groups.commit_pinned([], next_write)
        )
        return began and _appended(self.attachments, map(_attachment_row, attachments), next_write)


def _appended(table: Table, rows: Iterable[dict[str, Any]], transactions: Sequence[Transaction]) -> bool:
    return table.append_pinned(pa.Table.from_pylist(list(rows), table.spec.schema), transactions)


def _group(row: dict[str, Any]) -> ResourceGroup:
    """Raises TableError for values that no writer of headgate's makes: people may edit the table."""
    rates = (*_NAMED_RATES, "replication_msgs", "replication_bytes")
    wrong = [
        f"{name} {row[name]!r}, allowed: 0 and above, or null for not limited"
        for name in rates
        if row[name] is not None and row[name] < 0
    ]
    if (row["group_id"] or 0) < 1:
        wrong.append(f"group_id {row['group_id']!r}, allowed: 1 and above")
    if not is_group_name(row["name"]):
        wrong.append(f"name {row['name']!r}, allowed: 1 to 250 of A-Z a-z 0-9 _ - = : .")
    if wrong:
        raise TableError(wrong_row("rg_groups", f"the group {row['name']!r}", row["version"], wrong))
    publish_messages, publish_bytes, dispatch_messages, dispatch_bytes = (row[name] for name in _NAMED_RATES)
    return ResourceGroup(
        row["group_id"],
        row["name"],
        (publish_messages, publish_bytes, dispatch_messages, dispatch_bytes),
        (row["replication_msgs"], row["replication_bytes"]),
        row["shard"],
        row["deleted"],
        row["version"],
    )


def _group_row(group: ResourceGroup) -> dict[str, Any]:
    messages, of_bytes = group.replication
    return dict(zip(_NAMED_RATES, group.rates, strict=True)) | {
        "group_id": group.group_id,
        "name": group.name,
        "replication_msgs": messages,
        "replication_bytes": of_bytes,
        "shard": group.shard,
        "deleted": group.deleted,
        "version": group.version,
    }


def _attachment(row: dict[str, Any]) -> Attachment:
    try:
        scope = AttachedTo(row["scope"])
    except ValueError:
        allowed = ", ".join(scope for scope in AttachedTo if scope is not AttachedTo.EXEMPT)
        raise TableError(
            f"rg_attachments has the scope {row['scope']!r} for {row['resource']!r}; allowed: {allowed}; delete the row"
        ) from None
    return Attachment(scope, row["resource"], row["group_name"], row["version"])


def _attachment_row(attachment: Attachment) -> dict[str, Any]:
    return {
        "scope": str(attachment.scope),
        "resource": attachment.resource,
        "group_name": attachment.group_name,
        "version": attachment.version,
    }
