"""Groups and attachments as a loop goes by them: as read last, whatever becomes of the tables (resource-groups 3)."""

from collections.abc import Mapping

from headgate.core.quota.attachments import FIELDS
from headgate.core.quota.config_tables import ConfigTables
from headgate.core.quota.groups import ResourceGroup
from headgate.errors import TableError
from headgate.quota.degraded import Cause, Degraded
from headgate.quota.exchange import ConfigSource


class Configuration:
    """Before the first successful read nothing is attached. A read that fails changes nothing.

    known: it was read. groups: those in use, which exist and are attached, by id; ids: the same by name.
    """

    groups: Mapping[int, ResourceGroup]
    ids: Mapping[str, int]

    def __init__(self, store: ConfigSource, degraded: Degraded) -> None:
        self._store = store
        self._degraded = degraded
        self.known = False
        self.tables = ConfigTables()
        self.groups = {}
        self.ids = {}
        self._names: dict[int, str] = {}
        self._shards: dict[int, int] = {}

    def read(self) -> bool:
        """Take in what is new; whether anything is."""
        try:
            tables = self._store.read()
        except TableError as error:
            cause = Cause.ATTACHMENTS if self._store.is_of_attachments(error) else Cause.GROUPS
            self._degraded.begin(cause, str(error))
            return False
        self._degraded.end(Cause.GROUPS)
        self._degraded.end(Cause.ATTACHMENTS)
        if self.known and tables is self.tables:
            return False
        self.known, self.tables = True, tables
        self.groups = tables.attached_groups()
        self.ids = {group.name: group_id for group_id, group in self.groups.items()}
        self._names |= {group.group_id: name for name, group in tables.groups.items()}
        self._shards |= {group.group_id: group.shard for group in tables.groups.values()}
        return True

    @property
    def in_use(self) -> bool:
        """Whether anything that exists is attached; otherwise the stage does not run. Source: resource-groups 3.5."""
        return bool(self.groups)

    @property
    def existing(self) -> set[int]:
        """The groups that exist, by id."""
        return {group.group_id for group in self.tables.groups.values()}

    @property
    def shards(self) -> Mapping[int, int]:
        """The shard of every group that was ever read, by id."""
        return self._shards

    def name(self, group_id: int) -> str | None:
        """The name of a group, also of one that is gone; None where it was never read."""
        return self._names.get(group_id)

    def dangling(self) -> int:
        """How many attachments name a group that does not exist."""
        names = (name for scope in FIELDS for name in self.tables.attachments.by_scope(scope).values())
        return sum(name not in self.tables.groups for name in names)
