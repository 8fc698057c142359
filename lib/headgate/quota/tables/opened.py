"""The five tables of resource groups at their places, opened together or created on the first start."""

import socket
from dataclasses import dataclass
from pathlib import PurePath
from typing import Self

from headgate.core.quota.settings import QuotaSettings
from headgate.core.quota.usage.usage_map import HISTORY_MARGIN_EPOCHS
from headgate.quota.tables.config_store import ConfigStore
from headgate.quota.tables.delta import Table, opened
from headgate.quota.tables.rg_limits import LimitWriter
from headgate.quota.tables.rg_members import MemberTable
from headgate.quota.tables.rg_usage import UsageReader, UsageWriter
from headgate.quota.tables.schemas import RG_ATTACHMENTS, RG_GROUPS, RG_LIMITS, RG_MEMBERS, RG_USAGE, TableSpec
from headgate.quota.tables.upkeep import HourlyUpkeep, join_files
from headgate.stores import Patience

KEPT_HOURS = 1
"""How long files stay that a compaction replaced: longer than anybody takes who has begun to read them."""


@dataclass(frozen=True)
class Locations:
    """Where each table is."""

    groups: str
    attachments: str
    members: str
    usage: str
    limits: str

    @classmethod
    def of(cls, output: str | PurePath, settings: QuotaSettings) -> Self:
        """As the settings say, else `rg_*` under the output folder."""

        def place(location: str | None, spec: TableSpec) -> str:
            return f"{output}/{spec.name}" if location is None else location

        return cls(
            place(settings.group_table, RG_GROUPS),
            place(settings.attachment_table, RG_ATTACHMENTS),
            place(settings.member_table, RG_MEMBERS),
            place(settings.usage_table, RG_USAGE),
            place(settings.limit_table, RG_LIMITS),
        )


class QuotaTables:
    """All five tables. Those that are not there are created; one with another epoch length is refused.

    Readers and writers each look at a table on their own. Raises TableError, which says what is where.
    Source: resource-groups 5.
    """

    def __init__(self, locations: Locations, settings: QuotaSettings) -> None:
        self._locations = locations
        self._settings = settings
        own = f"a job on {socket.gethostname()}"
        self.config = ConfigStore(*(self._opened(spec) for spec in (RG_GROUPS, RG_ATTACHMENTS)), by=own)
        self.members = MemberTable(self._opened(RG_MEMBERS))
        self.usage = UsageWriter(self._opened(RG_USAGE), settings.epoch_ms)
        self.limits = LimitWriter(self._opened(RG_LIMITS), settings.epoch_ms)

    def usage_reader(self, version: int | None = None) -> UsageReader:
        """A reader of rg_usage that goes on after `version`; None: with the last epochs."""
        settings = self._settings
        kept_epochs = max(settings.max_staleness_rounds, settings.suppress_rounds) + HISTORY_MARGIN_EPOCHS
        return UsageReader(self._opened(RG_USAGE), self._settings.epoch_ms, kept_epochs, version)

    def upkeep_of_usage(self) -> HourlyUpkeep:
        """What compacts rg_usage and removes old hours."""
        return HourlyUpkeep(
            self._there(RG_USAGE),
            sorted_by=("group_id", "broker_id", "epoch", "seq", "class"),
            retention_hours=self._settings.usage_retention_hours,
            kept_hours=KEPT_HOURS,
        )

    def upkeep_of_limits(self) -> HourlyUpkeep:
        """What compacts rg_limits, whose rows stay."""
        by = ("group_id", "class", "dimension", "broker_id", "epoch")
        return HourlyUpkeep(self._there(RG_LIMITS), sorted_by=by, kept_hours=KEPT_HOURS)

    def keep_up(self, now_ms: int) -> None:
        """Compact what is over, and remove what is too old, by `now_ms` of event time. Raises TableError."""
        self.upkeep_of_usage().run(now_ms)
        self.upkeep_of_limits().run(now_ms)
        for spec in (RG_GROUPS, RG_ATTACHMENTS, RG_MEMBERS):
            join_files(self._there(spec))

    def _there(self, spec: TableSpec) -> Table:
        """A table that is away is not made anew: it may come back."""
        return self._opened(spec, is_there=True)

    def _opened(self, spec: TableSpec, *, is_there: bool = False) -> Table:
        location = getattr(self._locations, spec.name.removeprefix("rg_"))
        return opened(location, spec, None if is_there else self._settings.epoch_ms)


def opened_config(
    output: str | PurePath, settings: QuotaSettings, by: str = "", patience: Patience | None = None
) -> ConfigStore:
    """Groups and attachments of a job's output as they are; nothing is created. Raises TableError without them.

    by: who writes. patience: for an output on a store.
    """
    locations = Locations.of(output, settings)
    groups = opened(locations.groups, RG_GROUPS, None, patience)
    attachments = opened(locations.attachments, RG_ATTACHMENTS, None, patience)
    return ConfigStore(groups, attachments, by=by)
