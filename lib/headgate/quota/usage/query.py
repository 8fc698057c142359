"""What `headgate usage` reads: the newest rows up to an epoch, with the configuration that was known then.

Time is event time. rg_usage, rg_limits and topic_usage are read up to an epoch or second of it; groups and attachments
up to the highest version that the rows say their senders had read. Only whether a broker was up stands nowhere in event
time: that is asked of rg_members as it was at that wall clock.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from headgate.core.quota.config_tables import ConfigTables
from headgate.core.quota.evaluation.step_parameters import CellLimit, Reason
from headgate.core.quota.groups import HEARTBEAT_GROUP
from headgate.core.quota.settings import QuotaSettings
from headgate.core.quota.usage.usage import Usage
from headgate.errors import TableError
from headgate.quota.tables.config_store import ConfigStore
from headgate.quota.tables.delta import Table, opened, told
from headgate.quota.tables.opened import Locations
from headgate.quota.tables.rg_limits import LimitRow
from headgate.quota.tables.rg_members import MemberRow, newest_rows
from headgate.quota.tables.schemas import (
    EPOCH_PROPERTY,
    RG_ATTACHMENTS,
    RG_GROUPS,
    RG_LIMITS,
    RG_MEMBERS,
    RG_USAGE,
)
from headgate.quota.tables.table_query import rows_of
from headgate.quota.tables.usage_rows import HEARTBEAT_SHARD, hour_of
from headgate.quota.usage.view import Broker, Report, brokers_of, in_force
from headgate.stores import Patience
from headgate.tables.query import newest

LOOK_BACK = 2
"""How many times the epochs that are shown are read: a row before the first of them says what held there."""
LEAST_EPOCHS = 30
"""Fewer are not read: brokers leave out reports that would say the same for some epochs."""
NAMED_GROUPS = 20
_REPORT = (
    "epoch, broker_id, incarnation, seq, group_id, class, kind, admitted_msgs, admitted_bytes, offered_msgs, "
    "offered_bytes, limit_msgs, limit_bytes, throttled_msgs, throttled_bytes, topics, config_version"
)
_LIMIT = (
    'epoch, broker_id, group_id, class, dimension, "limit", target, safe, demand, missing, silent, report_age, reason'
)


@dataclass(frozen=True, slots=True)
class Found:
    """What holds as of `epoch`.

    at_ms: None for now. config: as it was known. group_names: of all groups that ever were, by id.
    reports, limits: the newest of each broker and cell. states_known: whether `brokers` have the state of that time.
    """

    epoch: int
    epoch_ms: int
    at_ms: int | None
    config: ConfigTables
    group_names: Mapping[int, str]
    brokers: Mapping[int, Broker]
    reports: list[Report]
    limits: list[LimitRow]
    states_known: bool


LIMIT_KEY = ("broker_id", "group_id", "class", "dimension")
LimitChanges = Mapping[tuple[int, ...], Sequence[tuple[int, int | None]]]
"""Rows of rg_limits by LIMIT_KEY: from which epoch on which limit, in order."""


class UsageTables:
    """The tables of resource groups of one output, opened; nothing is created. group: read this one alone, by name.
    patience: for an output on a store.

    Every method raises TableError where a table is missing, cannot be read, or has nothing to say.
    """

    def __init__(
        self, output: str, settings: QuotaSettings, group: str | None = None, patience: Patience | None = None
    ) -> None:
        places = Locations.of(output, settings)
        self.usage = opened(places.usage, RG_USAGE, None, patience)
        self._limits = opened(places.limits, RG_LIMITS, None, patience)
        self._members = opened(places.members, RG_MEMBERS, None, patience)
        self._groups = opened(places.groups, RG_GROUPS, None, patience)
        self._attachments = opened(places.attachments, RG_ATTACHMENTS, None, patience)
        self.epoch_ms = _epoch_ms(self.usage)
        self._silent_rounds = settings.silent_rounds
        group_rows = sorted(self._groups.select().to_pylist(), key=lambda row: row["version"])
        self.group_names: dict[int, str] = {row["group_id"]: row["name"] for row in group_rows}
        self._group_rows = [row for row in group_rows if group in {None, row["name"]}]
        self._is_filtered = group is not None
        if not self._group_rows and group is not None:
            known = ", ".join(sorted(set(self.group_names.values()))[:NAMED_GROUPS]) or "none"
            raise TableError(f"the table {places.groups} has no group {group!r}; there are: {known}")

    @property
    def is_empty(self) -> bool:
        """Whether no broker has reported yet."""
        with told(self.usage, "read"):
            return not self.usage.delta.partitions()

    def config(self, version: int | None = None) -> ConfigTables:
        """Groups and attachments as a reader of `version` knew them, None: as they are now."""
        tables = [_Until(one, version) for one in (self._groups, self._attachments)]
        return ConfigStore(*tables).read()

    def config_at(self, at_ms: int) -> tuple[ConfigTables, bool]:
        """Groups and attachments as brokers knew them at a time, and whether a report says so; else as they are now."""
        version = None if self.is_empty else self.config_version_at(LEAST_EPOCHS, at_ms)
        return self.config(version), version is not None

    def newest_epoch(self) -> int:
        """The newest epoch of any row of rg_usage."""
        newest = self._hours()[-1]
        (row,) = rows_of(self.usage, f"SELECT max(epoch) AS epoch FROM t WHERE hour = {newest}")  # noqa: S608  a number
        epoch: int = row["epoch"]
        return epoch

    def found(self, epochs: int, at_ms: int | None = None) -> Found:
        """Everything but the course of the epochs. epochs: of which reports hold, as far back as LOOK_BACK times."""
        epoch = self.newest_epoch() if at_ms is None else at_ms // self.epoch_ms
        reports = self._newest_reports(epoch, epochs)
        version = None if at_ms is None else max(report.config_version for report in reports)
        members = self._members_at(at_ms)
        states_known = members is not None
        brokers = brokers_of(
            reports,
            self._members_at(None) or {} if members is None else members,
            epoch,
            silent_rounds=self._silent_rounds,
            states_known=states_known,
        )
        # What is decided in an epoch holds from its end on.
        limits = self._newest_limits(None if at_ms is None else epoch - 1)
        config = self.config(version)
        held = in_force(reports, brokers, epoch)
        return Found(epoch, self.epoch_ms, at_ms, config, self.group_names, brokers, held, limits, states_known)

    def config_version_at(self, epochs: int, at_ms: int) -> int | None:
        """The highest version of the configuration that was read up to then, None where no report says so."""
        where = self._window(at_ms // self.epoch_ms, epochs)
        (row,) = rows_of(self.usage, f"SELECT max(config_version) AS version FROM t WHERE {where}")  # noqa: S608
        version: int | None = row["version"]
        return version

    def broker_names(self) -> dict[int, str]:
        """The names of all brokers that ever were members, by id."""
        return {broker_id: row.name for broker_id, row in newest_rows(self._members).items()}

    def courses(self, epoch: int, epochs: int, groups: Collection[int]) -> dict[tuple[int, int, int], list[Report]]:
        """All rows of the epochs up to `epoch`, by broker, group and class; each with the broker's heartbeats."""
        if not groups:
            return {}
        where = f"{self._window(epoch, epochs)} AND group_id IN ({_listed([HEARTBEAT_GROUP, *groups])})"
        return courses_of(map(report_of, rows_of(self.usage, f"SELECT {_REPORT} FROM t WHERE {where}")))  # noqa: S608

    def limit_changes(self, epoch: int, epochs: int) -> LimitChanges:
        """The limits of the epochs up to `epoch`, and the newest before them."""
        first = epoch - epochs + 1
        changes: dict[tuple[int, ...], list[tuple[int, int | None]]] = defaultdict(list)
        for before in self._newest_limits(first):
            key = before.broker_id, before.group_id, before.traffic_class, before.dimension
            changes[key].append((before.epoch, before.outcome.limit))
        where = f"hour BETWEEN {hour_of(first, self.epoch_ms)} AND {hour_of(epoch, self.epoch_ms)}"
        where += f" AND epoch > {first} AND epoch <= {epoch}"
        columns = ", ".join(("epoch", *LIMIT_KEY, '"limit"'))
        for row in rows_of(self._limits, f"SELECT {columns} FROM t WHERE {where} ORDER BY epoch"):  # noqa: S608  numbers
            changes[tuple(row[name] for name in LIMIT_KEY)].append((row["epoch"], row["limit"]))
        return changes

    def _hours(self) -> list[int]:
        with told(self.usage, "read"):
            hours = sorted({int(partition["hour"]) for partition in self.usage.delta.partitions()})
        if not hours:
            raise TableError(
                f"the table {self.usage.location} has no rows: no broker has reported yet; wait until an epoch is over "
                "in which a topic with a resource group has traffic, or attach a group (headgate groups)"
            )
        return hours

    def _span(self) -> tuple[int, int]:
        """The first and the last epoch that any row is of."""
        hours = self._hours()
        sql = f"SELECT min(epoch) AS first, max(epoch) AS last FROM t WHERE hour IN ({_listed((hours[0], hours[-1]))})"  # noqa: S608
        (row,) = rows_of(self.usage, sql)
        return row["first"], row["last"]

    def _window(self, epoch: int, epochs: int) -> str:
        first = epoch - _reach(epochs) + 1
        where = f"hour BETWEEN {hour_of(first, self.epoch_ms)} AND {hour_of(epoch, self.epoch_ms)}"
        where += f" AND epoch BETWEEN {first} AND {epoch}"
        if self._is_filtered:
            where += f" AND shard IN ({_listed([HEARTBEAT_SHARD, *(row['shard'] for row in self._group_rows)])})"
            where += f" AND group_id IN ({_listed([HEARTBEAT_GROUP, *self._group_ids])})"
        return where

    @property
    def _group_ids(self) -> set[int]:
        return {row["group_id"] for row in self._group_rows}

    def _newest_reports(self, epoch: int, epochs: int) -> list[Report]:
        # A leave of everything shares its key with heartbeats, and must not be hidden by a later one.
        key = ("broker_id", "group_id", "class", "(group_id = 0 AND kind = 2)")
        sql = newest(_REPORT, key, "incarnation DESC, epoch DESC, seq DESC", self._window(epoch, epochs))
        reports = [report_of(row) for row in rows_of(self.usage, sql)]
        if not reports:
            first, last = (_instant(one * self.epoch_ms) for one in self._span())
            raise TableError(
                f"the table {self.usage.location} has no rows of the {_reach(epochs)} epochs up to "
                f"{_instant(epoch * self.epoch_ms)}; it has rows of {first} to {last}; give an --at between these, or "
                "more --epochs"
            )
        return reports

    def _newest_limits(self, epoch: int | None) -> list[LimitRow]:
        conditions = ["true"] if epoch is None else [f"hour <= {hour_of(epoch, self.epoch_ms)}", f"epoch <= {epoch}"]
        if self._is_filtered:
            conditions.append(f"group_id IN ({_listed(self._group_ids)})")
        # Rows of one epoch have no order: of them the smallest limit is shown, every time.
        order = 'epoch DESC, "limit" ASC NULLS LAST'
        sql = newest(_LIMIT, LIMIT_KEY, order, " AND ".join(conditions))
        return [_limit(row, self._limits.location) for row in rows_of(self._limits, sql)]

    def _members_at(self, at_ms: int | None) -> dict[int, MemberRow] | None:
        """The newest row of each broker, None where the table has no commit as old as that."""
        table = self._members
        if at_ms is not None:
            with told(table, "read"):
                versions = [
                    commit["version"]
                    for commit in table.delta.history()
                    if commit.get("timestamp") is not None and commit["timestamp"] <= at_ms
                ]
                if not versions:
                    return None
                table = table.as_of(max(versions))
        return newest_rows(table)


class _Until(Table):
    """A table of which the rows up to a version of the configuration are seen, None: all."""

    def __init__(self, table: Table, version: int | None) -> None:
        super().__init__(table.location, table.spec, table.delta, table.patience)
        self._until = version

    def select(self, where: str = "") -> Any:
        until = "" if self._until is None else f"version <= {self._until}"
        return super().select(" AND ".join(filter(None, (until, where))))


def _reach(epochs: int) -> int:
    """How many epochs are read to show so many."""
    return LOOK_BACK * max(epochs, LEAST_EPOCHS)


def _epoch_ms(table: Table) -> int:
    stored = table.delta.metadata().configuration.get(EPOCH_PROPERTY)
    if stored is None or not stored.isdigit() or not int(stored):
        raise TableError(
            f"the table {table.location} has {stored!r} as table property {EPOCH_PROPERTY}; allowed: an integer "
            "from 1; set it to the resourceGroupEpochMillis of the job"
        )
    return int(stored)


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(set(numbers))))


def courses_of(rows: Iterable[Report]) -> dict[tuple[int, int, int], list[Report]]:
    """Rows by broker, group and class; each with the broker's heartbeats."""
    courses: dict[tuple[int, int, int], list[Report]] = defaultdict(list)
    heartbeats: dict[int, list[Report]] = defaultdict(list)
    for row in rows:
        if row.group_id == HEARTBEAT_GROUP:
            heartbeats[row.broker_id].append(row)
        else:
            courses[row.broker_id, row.group_id, row.traffic_class].append(row)
    return {key: [*course, *heartbeats[key[0]]] for key, course in courses.items()}


def report_of(row: Mapping[str, Any]) -> Report:
    """A row of rg_usage."""

    def pair(stem: str) -> tuple[Any, Any]:
        return row[f"{stem}_msgs"], row[f"{stem}_bytes"]

    usage = Usage(pair("admitted"), pair("offered"), pair("limit"), pair("throttled"))
    return Report(
        row["epoch"],
        row["broker_id"],
        row["incarnation"],
        row["seq"],
        row["group_id"],
        row["class"],
        row["kind"],
        usage,
        row["topics"],
        row["config_version"],
    )


def _limit(row: Mapping[str, Any], location: str) -> LimitRow:
    reason = row["reason"]
    try:
        named = Reason(reason)
    except ValueError:
        raise TableError(
            f"the table {location} has the reason {reason!r}; allowed: {', '.join(Reason)}; use the "
            "headgate that wrote it"
        ) from None
    outcome = CellLimit(
        row["limit"],
        row["target"],
        row["safe"],
        row["demand"],
        row["missing"],
        row["silent"],
        row["report_age"],
        named,
    )
    return LimitRow(row["epoch"], row["broker_id"], row["group_id"], row["class"], row["dimension"], outcome)


def _instant(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
