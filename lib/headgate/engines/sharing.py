"""Quota sharing in a throttle job: what foreachBatch does with what the operator counted of groups."""

import logging
import time
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from headgate.conf import Conf
from headgate.core.quota.groups import RatePair, TrafficClass
from headgate.engines.batches import GroupCounts
from headgate.engines.exchange import JobExchange
from headgate.errors import TableError
from headgate.metrics import QuotaFigures
from headgate.quota.control_rows import ControlRows, LimitKey
from headgate.quota.loop import QuotaLoop
from headgate.quota.member_log import MemberLog
from headgate.quota.usage.share_courses import QuotaCourse
from headgate.throttle.limits.control import KINDS_OF_CLASSES, QUOTA, attachment_row, group_limit_row

LOG = logging.getLogger(__name__)


class ControlSink(Protocol):
    """Takes control rows for the operator; each transaction once."""

    def append_control(self, rows: list[dict[str, Any]], transaction: tuple[str, int] | None = None) -> None: ...


class Sharing:
    """Counts of a batch become usage that all brokers read, and what they all used becomes limits of the next batch.

    A batch is measured once, however often it is run (`JobExchange.has`); limits come back as rows of `control`, which
    hold from the job's clock on. Raises ConfError for settings that lack something, TableError where the job's own
    tables cannot be written; troubles of shared tables stop nothing (resource-groups 10).

    told: the rows of the table `control` so far. enforces: whether the operator's state can hold limits of groups; if
    not, the log says so once it would have to.
    """

    def __init__(self, control: ControlSink, told: pa.Table, conf: Conf, exchange: JobExchange) -> None:
        self._settings = settings = exchange.settings
        self._broker = exchange.broker
        self._control = control
        self._exchange_of_job = exchange
        is_offered = conf.settings.operator.traffic == "offered"
        self.meter = settings.meter_parameters(demand_visible=is_offered)
        self.tables = exchange.tables
        self.enforces = True
        self._ahead: frozenset[str] = frozenset()
        self._told_at = (-1, 0)
        self._member_log = None if exchange.broker is None else MemberLog(exchange.broker)
        self._in_input: set[str] = set()
        self.warnings = exchange.warnings
        self.groups_changed = exchange.groups_changed
        self._ceilings = ceilings_in(told)
        self._loop = QuotaLoop(
            self.tables, settings, demand_visible=is_offered, broker=exchange.broker, state=exchange.load()
        )

    @property
    def is_in_use(self) -> bool:
        """Whether anything is attached to a group."""
        attachments = self.tables.config.read().attachments
        return bool(attachments.tenants or attachments.namespaces or attachments.topics)

    @property
    def may_be_in_use(self) -> bool:
        """Whether something may come to be attached while the job runs: there are groups, or the job is one of many."""
        return self._broker is not None or bool(self.tables.config.read().groups)

    @property
    def shares(self) -> bool:
        """`is_in_use` as of the last batch, without a look at the tables: for another thread."""
        return self._loop.is_in_use

    def begin(self, reached: datetime) -> None:
        """Before the first batch of a start: attachments, and limits for who is known; as often as others may come."""
        self._exchange(int(reached.timestamp() * 1000))

    def __call__(self, counts: GroupCounts, query_id: str, batch_id: int) -> None:
        progress = self._of_own(counts.progress)
        clock_ms = max([0, *progress.values()])
        with_rows = self._of_own(counts.progress.filter(pc.greater(counts.progress["rows"], 0)))
        self._tell_of_clocks_ahead(with_rows)
        if self._member_log is not None:  # of others no rows are taken in, but how far they are
            self._in_input.update({*counts.progress["broker"].to_pylist()} - progress.keys() | with_rows.keys())
        if not self._exchange_of_job.has(query_id, batch_id):
            self._loop.measure(counts.usage, counts.waits, progress, clock_ms, _wall_ms(), counts.leaves)
            self._exchange_of_job.save(self._loop.state, query_id, batch_id)
        self._exchange(clock_ms)

    def _of_own(self, progress: pa.Table) -> dict[str, int]:
        """How far time has come on the brokers that the job is for, in ms; the loop's own never goes back."""
        newest = progress.group_by("broker", use_threads=False).aggregate([("event_time_us", "max")])
        times = zip(newest["broker"].to_pylist(), newest["event_time_us_max"].to_pylist(), strict=True)
        return {broker: time_us // 1000 for broker, time_us in times if self._broker in {None, broker}}

    def _tell_of_clocks_ahead(self, progress: Mapping[str, int]) -> None:
        """Say once of a broker that its rows take the time of sharing along into the future, until some do not.

        progress: of brokers with rows alone.
        """
        now_ms, silent_ms = _wall_ms(), self._settings.silent_rounds * self._settings.epoch_ms
        ahead = {broker: time_ms - now_ms for broker, time_ms in progress.items() if time_ms - now_ms > silent_ms}
        for broker in sorted(ahead.keys() - self._ahead):
            LOG.warning(
                "a row of broker %s is dated %d s ahead of this machine's clock: quotas are shared by the newest row, "
                "so shares stay as they are until that time. Mend its clock; input.event_time_until bounds such rows",
                broker,
                ahead[broker] // 1000,
            )
        self._ahead = (self._ahead - progress.keys()) | ahead.keys()

    def end(self) -> None:
        """Others are told that this job's brokers use nothing any more."""
        self._loop.close()
        self._exchange_of_job.end()

    def figures(self) -> QuotaFigures:
        """How the sharing stands after a batch, for its metrics."""
        return QuotaFigures(self._loop.metrics(), dict(self._loop.told))

    def courses(self) -> list[QuotaCourse]:
        """How the shares of quotas went of late; none where the tables do not say."""
        try:
            return self._exchange_of_job.courses() if self.is_in_use else []
        except TableError:
            return []

    def _exchange(self, clock_ms: int) -> None:
        self._exchange_of_job.follow()
        rows = self._loop.exchange(clock_ms, wall_ms := _wall_ms())
        if self._member_log is not None and self._loop.listed is not None:
            self._member_log.take(self._loop.listed, self._loop.heard, self._in_input, wall_ms)
        if self.shares and not self.enforces:
            self.enforces = True
            LOG.warning(
                "resource groups are attached, and this job cannot enforce them: its first start found no group, so "
                "its state is split finer than brokers. Start with a new --output and --checkpoint"
            )
        ceilings = self._new_ceilings({(row.broker, row.group, row.traffic_class) for row in rows.limits})
        self._control.append_control(self._in_order([*ceilings, *control_rows(rows, len(ceilings))]), rows.transaction)

    def _in_order(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Of equal times the largest seq holds: what is told while time stands still comes behind what was told."""
        clock_ms, count = self._told_at
        before = count if clock_ms == self._loop.clock_ms else 0
        self._told_at = self._loop.clock_ms, before + len(rows) + 1
        return [row | {"seq": before + row["seq"]} for row in rows]

    def _new_ceilings(self, telling: AbstractSet[LimitKey]) -> list[dict[str, Any]]:
        """Quotas that are new or have changed: until it is told better, a broker has no more of a group than that.

        Such a row goes for every broker, so those that were told are told again behind it, but for the limits that are
        told now.
        """
        quotas = {
            (group.name, int(traffic_class)): group.quotas(traffic_class)
            for group in self._loop.groups.values()
            for traffic_class in TrafficClass
        }
        changed = {place: rates for place, rates in quotas.items() if self._ceilings.get(place) != rates}
        at = {place: self._loop.clock_ms if place in self._ceilings else 0 for place in changed}
        self._ceilings |= changed
        rows = [
            group_limit_row(_moment(at[place]), 0, None, place[0], rates, place[1]) for place, rates in changed.items()
        ]
        again = [
            group_limit_row(_moment(at[group, traffic_class]), 0, broker, group, rates, traffic_class)
            for (broker, group, traffic_class), rates in self._loop.told.items()
            if at.get((group, traffic_class)) and (broker, group, traffic_class) not in telling
        ]
        return [row | {"seq": seq} for seq, row in enumerate(rows + again)]


def ceilings_in(control: pa.Table) -> dict[tuple[str, int], RatePair]:
    """The newest limit of any broker by group and class, by rows of the table `control`."""
    rows = control.filter(pc.and_(pc.equal(control["source"], QUOTA), pc.equal(control["scope"], "group")))
    told = rows.filter(pc.is_null(rows["broker"])).sort_by([("effective_time", "ascending"), ("seq", "ascending")])
    return {
        (row["name"], KINDS_OF_CLASSES.index(row["kind"])): (row["messages_per_s"], row["bytes_per_s"])
        for row in told.to_pylist()
    }


def control_rows(rows: ControlRows, before: int = 0) -> list[dict[str, Any]]:
    """What the loop says, for the operator. before: rows of the same instant that go first."""
    limits = [
        group_limit_row(
            *(_moment(row.effective_ms), seq, row.broker, row.group),
            rates=(row.messages_per_s, row.bytes_per_s),
            traffic_class=row.traffic_class,
        )
        for seq, row in enumerate(rows.limits, before + 1)
    ]
    attachments = [
        attachment_row(_moment(row.effective_ms), seq, str(row.scope), row.resource, row.group)
        for seq, row in enumerate(rows.attachments, before + 1)
    ]
    return limits + attachments


def _moment(time_ms: int) -> datetime:
    return datetime.fromtimestamp(time_ms / 1000, UTC)


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000
