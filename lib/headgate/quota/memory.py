"""The exchange among brokers without tables: one process holds all of them, and time is the loop's own."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from headgate.core.numbers import at_least
from headgate.core.quota.config_tables import ConfigTables
from headgate.core.quota.settings import QuotaSettings
from headgate.errors import TableError
from headgate.quota.tables.delta import nullable
from headgate.quota.tables.rg_limits import LimitRow, limit_table
from headgate.quota.tables.rg_members import MemberTable
from headgate.quota.tables.schemas import MEMBERS, RG_LIMITS, RG_MEMBERS, RG_USAGE, USAGE
from headgate.quota.tables.usage_rows import SentReport, usage_table

Record = Callable[[str, pa.Table], None]
"""Hears of the rows of every append: the name of the table that they would be in, and the rows."""


def no_record(name: str, rows: pa.Table) -> None:
    """Nobody keeps rows."""


class MemoryRows:
    """Rows with a version, as members.RowTable wants them; its one writer has always seen all."""

    def __init__(self, schema: pa.Schema, location: str, record: Record = no_record) -> None:
        self.location = location
        self._record = record
        self._rows: pa.Table = nullable(schema).empty_table()
        self._version = 0

    def refresh(self) -> int:
        """The version of now."""
        return self._version

    def select(self) -> pa.Table:
        """All rows."""
        return self._rows

    def append_pinned(self, rows: pa.Table) -> bool:
        """Append; nobody ever came before."""
        self._rows = pa.concat_tables([self._rows, rows.cast(self._rows.schema)])
        self._version += 1
        self._record(self.location, rows)
        return True


@dataclass
class HeldConfig:
    """Groups and attachments that nobody changes but who holds this: other `tables` count from the next read on."""

    tables: ConfigTables

    def read(self) -> ConfigTables:
        """The tables of now."""
        return self.tables

    def is_of_attachments(self, error: TableError) -> bool:  # noqa: ARG002  `read` never raises one
        """No error is."""
        return False


@dataclass(frozen=True)
class MemoryRead:
    """What a read brought. It is never whole: the one reader was there from the start."""

    rows: pa.Table
    whole: bool = False


class MemoryUsage:
    """Every cut is handed out once, in the order of its append, `delay_ms` after it or later."""

    def __init__(self, epoch_ms: int, delay_ms: int, record: Record = no_record) -> None:
        self._record = record
        self._epoch_ms = epoch_ms
        self._delay_ms = at_least(0, delay_ms, "delay_ms")
        self._waiting: list[tuple[int, pa.Table]] = []

    def append(self, sent: Sequence[SentReport], shards: Mapping[int, int]) -> bool:
        """Take the cuts of one instant in, from which on they count."""
        if sent:
            rows = usage_table(sent, shards, self._epoch_ms)
            self._waiting.append((sent[0].publish_time_ms, rows))
            self._record(RG_USAGE.name, rows)
        return True

    def read(self, now_ms: int) -> MemoryRead:
        """The rows that can be seen now and were not handed out before."""
        seen = [rows for at_ms, rows in self._waiting if at_ms + self._delay_ms <= now_ms]
        self._waiting = [one for one in self._waiting if one[0] + self._delay_ms > now_ms]
        return MemoryRead(pa.concat_tables(seen) if seen else USAGE.empty_table())

    def earlier(self, lives: Mapping[int, int], now_ms: int) -> pa.Table:  # noqa: ARG002  there is nothing to choose from
        """Nothing: all there was has been handed out."""
        return USAGE.empty_table()


class MemoryLimits:
    """Limits that changed are known to the loop that decided them."""

    def __init__(self, epoch_ms: int, record: Record = no_record) -> None:
        self._epoch_ms = epoch_ms
        self._record = record

    def append(self, rows: Sequence[LimitRow], transaction: tuple[str, int] | None = None) -> bool:  # noqa: ARG002
        """Keep nothing."""
        if rows and self._record is not no_record:
            self._record(RG_LIMITS.name, limit_table(rows, self._epoch_ms))
        return bool(rows)


class MemoryExchange:
    """All that a `QuotaLoop` exchanges rows by, for one loop that has all brokers (quota.exchange.Exchange).

    tables: groups and attachments. delay_ms: how long after its append a usage row can be read, >= 0.
    record: hears of the rows that tables would have.
    """

    def __init__(
        self, tables: ConfigTables, settings: QuotaSettings, delay_ms: int, record: Record = no_record
    ) -> None:
        self.config = HeldConfig(tables)
        self.members = MemberTable(MemoryRows(MEMBERS, RG_MEMBERS.name, record))
        self.usage = MemoryUsage(settings.epoch_ms, delay_ms, record)
        self.limits = MemoryLimits(settings.epoch_ms, record)

    def usage_reader(self) -> MemoryUsage:
        """The one reader."""
        return self.usage

    def keep_up(self, now_ms: int) -> None:
        """Nothing is stored that would have to be compacted."""
