"""Cuts as rows of rg_usage, and rows as the usage map takes them (resource-groups 5.2)."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.schemas import table_of
from headgate.core.numbers import HOUR_MS
from headgate.core.quota.groups import HEARTBEAT_GROUP, TrafficClass, UsageKey
from headgate.core.quota.usage.usage import NOTHING, Usage
from headgate.core.quota.usage.usage_report import ReportKind, UsageReport
from headgate.core.quota.usage.usage_row import UsageRow
from headgate.quota.tables.schemas import USAGE

HEARTBEAT_SHARD = -1
"""Where the rows are that speak of a whole broker: all readers read it."""
_MICROSECONDS = 1000


@dataclass(frozen=True, slots=True)
class Sender:
    """A broker in one of its lives. incarnation: wall clock when it started, ms. weight: 1 to 1000."""

    broker_id: int
    incarnation: int
    weight: int = 1

    @property
    def application(self) -> str:
        """The id of its appends, whose version is the cut's seq. resource-groups 5.2"""
        return f"headgate-usage-{self.broker_id}-{self.incarnation}"


@dataclass(frozen=True, slots=True)
class SentReport:
    """A cut on its way to the table.

    publish_time_ms: clock of the sender at the append: the largest event time of its input.
    topics: how many topics of a group had traffic in the epoch, by group and class; 0 for what is not there.
    """

    sender: Sender
    cut: UsageReport
    publish_time_ms: int
    topics: Mapping[UsageKey, int] = field(default_factory=dict)


def hour_of(epoch: int, epoch_ms: int) -> int:
    """The partition of an epoch's rows. resource-groups 5.2"""
    return epoch * epoch_ms // HOUR_MS


def usage_table(sent: Iterable[SentReport], shards: Mapping[int, int], epoch_ms: int) -> pa.Table:
    """The rows of cuts, each with its heartbeat where it closes an epoch, cut by cut and sorted by group within.

    shards: of every group in the cuts, by id.
    """
    return table_of((row for one in sent for row in _rows(one, shards, epoch_ms)), USAGE)


def usage_rows(table: pa.Table) -> Iterator[UsageRow]:
    """The rows of rg_usage for `UsageMap.receive`, in their order."""
    times = pc.divide(table["publish_time"].cast(pa.int64()), _MICROSECONDS)

    def column(name: str) -> list[Any]:
        values: list[Any] = table[name].to_pylist()
        return values

    def pairs(stem: str) -> Iterator[tuple[Any, Any]]:
        return zip(column(f"{stem}_msgs"), column(f"{stem}_bytes"), strict=True)

    fields = zip(
        *(column(name) for name in ("broker_id", "incarnation", "seq", "epoch")),
        times.to_pylist(),
        *(column(name) for name in ("group_id", "class", "kind")),
        *(pairs(stem) for stem in ("admitted", "offered", "limit", "throttled")),
        column("weight"),
        strict=True,
    )
    return (UsageRow(*values) for values in fields)


def _rows(sent: SentReport, shards: Mapping[int, int], epoch_ms: int) -> Iterator[tuple[Any, ...]]:
    cut, sender = sent.cut, sent.sender
    hour, time_us = hour_of(cut.epoch, epoch_ms), sent.publish_time_ms * _MICROSECONDS

    def row(shard: int, key: UsageKey, kind: int, usage: Usage, topics: int) -> tuple[Any, ...]:
        head = (hour, shard, cut.epoch, sender.broker_id, sender.incarnation, cut.seq, *key, kind)
        pairs = (*usage.admitted, *usage.offered, *usage.limit, *usage.throttled)
        return *head, time_us, *pairs, sender.weight, topics, cut.config_version

    if cut.closes_epoch or not cut.rows:
        kind = cut.kind if cut.kind is ReportKind.LEAVE else ReportKind.PERIODIC
        yield row(HEARTBEAT_SHARD, (HEARTBEAT_GROUP, TrafficClass.PUBLISH), kind, NOTHING, 0)
    for one in cut.rows:
        key = (one.group_id, one.traffic_class)
        yield row(shards[one.group_id], key, cut.kind, one.usage, sent.topics.get(key, 0))
