"""Where a job's brokers exchange usage and limits: Delta tables that outlive it, or the memory of one process."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol

import pyarrow as pa

from headgate.arrow.schemas import Waiting
from headgate.conf import Conf, ResourceGroups
from headgate.core.quota.settings import QuotaSettings
from headgate.core.state import PlainData
from headgate.errors import TableError
from headgate.quota.exchange import Exchange
from headgate.quota.groups.file import GroupsFile
from headgate.quota.groups.import_conf import Imported, import_groups, tables_of
from headgate.quota.memory import MemoryExchange
from headgate.quota.tables.delta import COMMIT_RETRIES, Table, opened
from headgate.quota.tables.loop_state import LoopStateStore
from headgate.quota.tables.opened import Locations, QuotaTables
from headgate.quota.tables.schemas import QUOTA_STATE, RG_LIMITS, RG_MEMBERS, RG_USAGE
from headgate.quota.usage.query import UsageTables
from headgate.quota.usage.share_courses import QuotaCourse, RecentUsage, quota_courses

LOG = logging.getLogger(__name__)
SHOWN_EPOCHS = 600
MOST_ROWS = 200_000
"""Rows of a table that wait for their append, at most about."""


class JobExchange(Protocol):
    """What `Sharing` needs. broker: the one that the job is for, None: all of them.

    groups_changed: whether conf files brought anything new to the tables at the start.
    load, save: the state of the quota loop between starts; has: whether it was saved with that batch or a later one.
    follow: brings in what the file of groups says since an edit. end: the last rows are in.
    """

    @property
    def settings(self) -> QuotaSettings: ...
    @property
    def broker(self) -> str | None: ...
    @property
    def tables(self) -> Exchange: ...
    @property
    def warnings(self) -> tuple[str, ...]: ...
    @property
    def groups_changed(self) -> bool: ...
    def load(self) -> Mapping[str, Any] | None: ...
    def has(self, query_id: str, batch_id: int) -> bool: ...
    def save(self, state: Callable[[], PlainData], query_id: str, batch_id: int) -> None: ...
    def follow(self) -> None: ...
    def courses(self) -> list[QuotaCourse]: ...
    def end(self) -> None: ...


class TableExchange:
    """The tables that all jobs know, and the job's own with the loop's state.

    shared: the output under which the former are. own: the job's. Raises TableError where they cannot be opened.
    """

    def __init__(self, conf: Conf, shared: str, own: str, broker: str | None) -> None:
        self.broker = broker
        self.settings = settings_of(conf, shared, broker)
        self._shared = shared
        self.tables = QuotaTables(Locations.of(shared, self.settings), self.settings)
        self._state = opened(f"{own}/quota_state", QUOTA_STATE, self.settings.epoch_ms)
        self._store = LoopStateStore(self._state)
        imported = self._import(conf.resource_groups)
        self.warnings, self.groups_changed = imported.warnings, imported.rows > 0
        self._file = GroupsFile(conf.groups_file, conf.resource_groups)

    def load(self) -> PlainData | None:
        """See JobExchange."""
        return self._store.load()

    def has(self, query_id: str, batch_id: int) -> bool:
        """See JobExchange."""
        return self._store.has(query_id, batch_id)

    def save(self, state: Callable[[], PlainData], query_id: str, batch_id: int) -> None:
        """See JobExchange."""
        self._store.save(state(), query_id, batch_id)

    def follow(self) -> None:
        """Bring an edit of resource-groups.json into the tables, as at a start."""
        groups = self._file.edited()
        if groups is None:
            return
        try:
            imported = self._import(groups)
        except TableError as error:
            LOG.warning("resource-groups.json was edited and is not taken in yet: %s", error)
            self._file.forget()
            return
        for warning in (
            f"resource-groups.json was edited, rows of groups and attachments changed: {imported.rows}",
            *imported.warnings,
        ):
            LOG.warning(warning)

    def courses(self) -> list[QuotaCourse]:
        """How the shares of quotas went of late. Raises TableError where the tables do not say."""
        return quota_courses(UsageTables(self._shared, self.settings), SHOWN_EPOCHS)

    def end(self) -> None:
        """Every row is in its table already."""

    def _import(self, groups: ResourceGroups) -> Imported:
        return import_groups(self.tables.config, groups, self.settings, self._state)


class LocalExchange:
    """All brokers in one process, for one run. Tables that conf files name are left alone: they are those of live jobs.

    output: where the rows are kept as well, in the tables of `TableExchange`, None: nowhere.
    """

    broker = None
    warnings: tuple[str, ...] = ()
    groups_changed = False

    def __init__(self, conf: Conf, output: str | None) -> None:
        self.settings = settings = _without_tables(conf.quota)
        self._kept = None if output is None else _Kept(output, conf.resource_groups, settings)
        config = tables_of(conf.resource_groups, settings) if self._kept is None else self._kept.config
        self.tables = MemoryExchange(config, settings, 0, self._record)
        self._recent = RecentUsage(config, self.tables.members, settings.epoch_ms, SHOWN_EPOCHS)

    def load(self) -> None:
        """Nothing: every run is the first."""

    def has(self, query_id: str, batch_id: int) -> bool:  # noqa: ARG002  no batch is run again
        """No."""
        return False

    def save(self, state: Callable[[], PlainData], query_id: str, batch_id: int) -> None:
        """Nobody goes on from it."""

    def follow(self) -> None:
        """There is no file to look at: `set_groups` tells."""

    def set_groups(self, groups: ResourceGroups) -> None:
        """These are the groups from the next read on; tables that are kept have those of the start."""
        self.tables.config.tables = tables_of(groups, self.settings)

    def courses(self) -> list[QuotaCourse]:
        """How the shares of quotas went of late. Raises TableError where nothing was used."""
        return quota_courses(self._recent, SHOWN_EPOCHS)

    def end(self) -> None:
        """Append what waits."""
        if self._kept is not None:
            self._kept.flush()

    def _record(self, name: str, rows: pa.Table) -> None:
        if name == RG_USAGE.name and len(rows):
            self._recent.take(rows)
        if name == RG_LIMITS.name:
            self._recent.take_limits(rows)
        if self._kept is not None:
            self._kept.take(name, rows)


class _Kept:
    """Tables of resource groups that get their rows in few, large appends."""

    def __init__(self, output: str, groups: ResourceGroups, settings: QuotaSettings) -> None:
        tables = QuotaTables(Locations.of(output, settings), settings)
        import_groups(tables.config, groups, settings)
        self.config = tables.config.read()
        specs = (RG_USAGE, RG_LIMITS, RG_MEMBERS)
        self._tables = {spec.name: opened(f"{output}/{spec.name}", spec, settings.epoch_ms) for spec in specs}
        self._waiting = Waiting()

    def take(self, name: str, rows: pa.Table) -> None:
        if self._waiting.add(name, rows.cast(self._tables[name].spec.schema)) > MOST_ROWS:
            self._flush(name)

    def flush(self) -> None:
        for name in self._tables:
            self._flush(name)

    def _flush(self, name: str) -> None:
        waiting = self._waiting.take(name)
        if waiting is not None:
            _append(self._tables[name], waiting)


def _append(table: Table, rows: pa.Table) -> None:
    table.refresh()
    if not table.append_pinned(rows, retries=COMMIT_RETRIES):
        raise TableError(
            f"the table {table.location} cannot be written: another process wrote to it {COMMIT_RETRIES} times in the "
            "meantime; allowed is one run an output; give a new --output"
        )


def _without_tables(settings: QuotaSettings) -> QuotaSettings:
    return replace(
        settings, group_table=None, attachment_table=None, member_table=None, usage_table=None, limit_table=None
    )


def settings_of(conf: Conf, shared: str, broker: str | None) -> QuotaSettings:
    """The settings of conf; a job of one broker finds the others under `shared` where they name no tables.

    With resourceGroupBrokerCount and no usage table it goes without (resource-groups 10).
    """
    settings = conf.quota
    if broker is None or (settings.broker_count is not None and settings.usage_table is None):
        return settings
    places = Locations.of(shared, settings)
    return replace(
        settings,
        group_table=places.groups,
        attachment_table=places.attachments,
        member_table=places.members,
        usage_table=places.usage,
        limit_table=places.limits,
    )
