"""What the quota loop needs to exchange rows among its brokers: tables/opened.py, or memory.py without any table."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import pyarrow as pa

from headgate.core.quota.config_tables import ConfigTables
from headgate.errors import TableError
from headgate.quota.tables.rg_limits import LimitRow
from headgate.quota.tables.rg_members import MemberTable
from headgate.quota.tables.usage_rows import SentReport


class ConfigSource(Protocol):
    """Groups and attachments; the same object as before if nobody wrote."""

    def read(self) -> ConfigTables: ...
    def is_of_attachments(self, error: TableError) -> bool: ...


class UsageSink(Protocol):
    """Takes cuts in, each once."""

    def append(self, sent: Sequence[SentReport], shards: Mapping[int, int]) -> bool: ...


class ReadUsage(Protocol):
    """Rows of rg_usage, in the order in which they were appended. whole: those of the last epochs, not what is new."""

    @property
    def rows(self) -> pa.Table: ...
    @property
    def whole(self) -> bool: ...


class UsageSource(Protocol):
    """Hands out what is new since the last read. now_ms: the reader's clock, in event time.

    earlier: what still holds of brokers (incarnation by id) from before a whole read.
    """

    def read(self, now_ms: int) -> ReadUsage: ...
    def earlier(self, lives: Mapping[int, int], now_ms: int) -> pa.Table: ...


class LimitSink(Protocol):
    """Takes limits in that changed, each once."""

    def append(self, rows: Sequence[LimitRow], transaction: tuple[str, int] | None = None) -> bool: ...


class Exchange(Protocol):
    """All of it together. keep_up: compacts and removes what is over by `now_ms`, in event time."""

    @property
    def config(self) -> ConfigSource: ...
    @property
    def members(self) -> MemberTable: ...
    @property
    def usage(self) -> UsageSink: ...
    @property
    def limits(self) -> LimitSink: ...
    def usage_reader(self) -> UsageSource: ...
    def keep_up(self, now_ms: int) -> None: ...
