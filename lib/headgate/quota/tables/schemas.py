"""Arrow schemas of the tables of resource groups, column by column as in resource-groups 5.

docs/resource-groups.md has every column with its unit and meaning.
"""

from dataclasses import dataclass, field

import pyarrow as pa

from headgate.arrow.schemas import TIMESTAMP
from headgate.tables.query import LOG_MINUTES, short_log

EPOCH_PROPERTY = "headgate.epochMillis"
"""The table property that holds T. resource-groups 5"""

GROUPS = pa.schema(
    [
        pa.field("group_id", pa.int32(), nullable=False),
        pa.field("name", pa.string(), nullable=False),
        ("publish_msgs", pa.int64()),
        ("publish_bytes", pa.int64()),
        ("dispatch_msgs", pa.int64()),
        ("dispatch_bytes", pa.int64()),
        ("replication_msgs", pa.int64()),
        ("replication_bytes", pa.int64()),
        pa.field("shard", pa.int32(), nullable=False),
        pa.field("deleted", pa.bool_(), nullable=False),
        pa.field("version", pa.int64(), nullable=False),
    ]
)

ATTACHMENTS = pa.schema(
    [
        pa.field("scope", pa.string(), nullable=False),
        pa.field("resource", pa.string(), nullable=False),
        ("group_name", pa.string()),
        pa.field("version", pa.int64(), nullable=False),
    ]
)

MEMBERS = pa.schema(
    [
        pa.field("broker_id", pa.int32(), nullable=False),
        pa.field("name", pa.string(), nullable=False),
        pa.field("incarnation", pa.int64(), nullable=False),
        pa.field("weight", pa.int16(), nullable=False),
        pa.field("state", pa.string(), nullable=False),
        pa.field("version", pa.int64(), nullable=False),
    ]
)

USAGE = pa.schema(
    [
        pa.field("hour", pa.int64(), nullable=False),
        pa.field("shard", pa.int32(), nullable=False),
        pa.field("epoch", pa.int64(), nullable=False),
        pa.field("broker_id", pa.int32(), nullable=False),
        pa.field("incarnation", pa.int64(), nullable=False),
        pa.field("seq", pa.int64(), nullable=False),
        pa.field("group_id", pa.int32(), nullable=False),
        pa.field("class", pa.int8(), nullable=False),
        pa.field("kind", pa.int8(), nullable=False),
        pa.field("publish_time", TIMESTAMP, nullable=False),
        pa.field("admitted_msgs", pa.int64(), nullable=False),
        pa.field("admitted_bytes", pa.int64(), nullable=False),
        ("offered_msgs", pa.int64()),
        ("offered_bytes", pa.int64()),
        ("limit_msgs", pa.int64()),
        ("limit_bytes", pa.int64()),
        pa.field("throttled_msgs", pa.bool_(), nullable=False),
        pa.field("throttled_bytes", pa.bool_(), nullable=False),
        pa.field("weight", pa.int16(), nullable=False),
        pa.field("topics", pa.int32(), nullable=False),
        pa.field("config_version", pa.int64(), nullable=False),
    ]
)

LIMITS = pa.schema(
    [
        pa.field("hour", pa.int64(), nullable=False),
        pa.field("epoch", pa.int64(), nullable=False),
        pa.field("broker_id", pa.int32(), nullable=False),
        pa.field("group_id", pa.int32(), nullable=False),
        pa.field("class", pa.int8(), nullable=False),
        pa.field("dimension", pa.int8(), nullable=False),
        ("limit", pa.int64()),
        ("target", pa.int64()),
        ("safe", pa.int64()),
        ("demand", pa.int64()),
        pa.field("missing", pa.int32(), nullable=False),
        pa.field("silent", pa.int32(), nullable=False),
        pa.field("report_age", pa.int32(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
    ]
)

STATE = pa.schema(
    [
        pa.field("query_id", pa.string(), nullable=False),
        pa.field("batch_id", pa.int64(), nullable=False),
        pa.field("state", pa.binary(), nullable=False),
    ]
)


@dataclass(frozen=True)
class TableSpec:
    """A table as it is created: its name under an output folder, its columns, those of them that are partitions."""

    name: str
    schema: pa.Schema
    partition_by: tuple[str, ...] = ()
    properties: dict[str, str] = field(default_factory=dict)

    @property
    def file_schema(self) -> pa.Schema:
        """The columns that are in files; a partition's value is in the log."""
        return pa.schema([column for column in self.schema if column.name not in self.partition_by])


RG_GROUPS = TableSpec("rg_groups", GROUPS)
RG_ATTACHMENTS = TableSpec("rg_attachments", ATTACHMENTS)
RG_MEMBERS = TableSpec("rg_members", MEMBERS)
RG_USAGE = TableSpec(
    "rg_usage",
    USAGE,
    ("hour", "shard"),
    short_log(LOG_MINUTES),
)
RG_LIMITS = TableSpec("rg_limits", LIMITS, ("hour",), short_log(LOG_MINUTES))
QUOTA_STATE = TableSpec(
    "quota_state",
    STATE,
    properties=short_log(LOG_MINUTES),
)
"""The state of a job's quota loop, one row: no table of the exchange, nobody else reads it."""
SPECS = (RG_GROUPS, RG_ATTACHMENTS, RG_MEMBERS, RG_USAGE, RG_LIMITS)
