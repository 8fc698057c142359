"""Cuts on their way to rg_usage: kept until they are there, in order, under the life they were made in."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from headgate.core.quota.groups import UsageKey
from headgate.core.quota.usage.reports import ReportReason
from headgate.core.quota.usage.usage import Usage
from headgate.core.quota.usage.usage_report import ReportKind, ReportRow, UsageReport
from headgate.quota.exchange import UsageSink
from headgate.quota.tables.usage_rows import Sender, SentReport


@dataclass(frozen=True, slots=True)
class Pending:
    """A cut of a broker's life, and the topics of its rows."""

    sender: Sender
    cut: UsageReport
    topics: Mapping[UsageKey, int] = field(default_factory=dict)

    def plain(self) -> list[Any]:
        """As plain data, which `of_plain` takes."""
        cut, sender = self.cut, self.sender
        return [
            [sender.broker_id, sender.incarnation, sender.weight],
            [cut.seq, cut.epoch, int(cut.kind), cut.closes_epoch, cut.at_ms, cut.config_version],
            [[row.group_id, row.traffic_class, row.usage.plain(), str(row.reason)] for row in cut.rows],
            [[*key, topics] for key, topics in self.topics.items()],
        ]

    @classmethod
    def of_plain(cls, values: list[Any]) -> Self:
        """What `plain` wrote."""
        sender, (seq, epoch, kind, closes_epoch, at_ms, version), rows, topics = values
        made = tuple(
            ReportRow(group_id, traffic_class, Usage.of_plain(usage), ReportReason(reason))
            for group_id, traffic_class, usage, reason in rows
        )
        cut = UsageReport(seq, epoch, ReportKind(kind), closes_epoch, at_ms, version, made)
        by_key = {(group_id, traffic_class): count for group_id, traffic_class, count in topics}
        return cls(Sender(*sender), cut, by_key)


class Outbox:
    """No cut is forgotten before the table has it, and none is there twice: the table knows seqs of every life."""

    def __init__(self, writer: UsageSink, waiting: Iterable[Pending] = ()) -> None:
        self._writer = writer
        self.waiting = list(waiting)

    def put(self, sender: Sender, cuts: Iterable[tuple[UsageReport, Mapping[UsageKey, int]]]) -> None:
        """Cuts that became due, with their topics, in the order of their seqs."""
        self.waiting += [Pending(sender, cut, topics) for cut, topics in cuts]

    def send(self, shards: Mapping[int, int], publish_time_ms: int) -> None:
        """Append everything that waits, in one commit. After a TableError all of it still waits.

        shards: of groups by id; a group that is gone has the first one.
        publish_time_ms: the sender's clock at this append. A cut that had to wait is as new as it can be: it is the
        newest that anybody can know of its sender.
        """
        if not self.waiting:
            return
        groups = {row.group_id for one in self.waiting for row in one.cut.rows}
        sent = [SentReport(one.sender, one.cut, publish_time_ms, one.topics) for one in self.waiting]
        self._writer.append(sent, {group_id: shards.get(group_id, 0) for group_id in groups})
        self.waiting = []

    def holds(self, broker_id: int) -> bool:
        """Whether anything of this broker waits."""
        return any(one.sender.broker_id == broker_id for one in self.waiting)
