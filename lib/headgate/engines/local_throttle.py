"""The throttle job on the local engine."""

import random
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta

import pyarrow as pa

from headgate.conf import Conf, LimitRow, ResourceGroups, conf_limits
from headgate.core.kernels.columns import NO_VALUE
from headgate.engines.batches import BatchResult, BatchWriter
from headgate.engines.exchange import LocalExchange
from headgate.engines.local import LocalEngine
from headgate.engines.sharing import Sharing
from headgate.engines.tables import ControlRows, LocalTables
from headgate.quota.usage.share_courses import QuotaCourse
from headgate.rows.traffic import Parsed
from headgate.throttle.form import Form
from headgate.throttle.key_operator import ThrottleOperator
from headgate.throttle.kinds import OUTPUT_BLOCKS
from headgate.throttle.layout import layout_of, layout_row, routing_of, rules_of, without_layouts
from headgate.throttle.limits.control import FROM_THE_START, changes_in, conf_row, conf_rows, pack_control, tick_row
from headgate.throttle.routing import pack
from headgate.throttle.schemas import CONTROL


class LocalThrottle:
    """The rows in the tables equal those of the Spark job over the same batches; the job's first start, without a stop.

    Each `take` is a batch; what quotas share out after it holds from the next batch on. `end` closes what is open.

    Arguments:
        conf: as of the job. tables: of the run, without rows. on_batch: hears of each batch.
        output: where rows of resource groups are kept as well, None: nowhere.
        disorder: see LocalEngine. around: see ThrottleOperator.

    """

    def __init__(
        self,
        conf: Conf,
        tables: LocalTables,
        on_batch: Callable[[BatchResult], None],
        output: str | None = None,
        disorder: random.Random | None = None,
        *,
        around: Callable[[Form], Form] | None = None,
    ) -> None:
        self._application = f"headgate-local-{time.time_ns()}"
        self._batch_id = 0
        self._reached_us = NO_VALUE
        self._tables = tables
        self._control = ControlRows(tables)
        operator = conf.settings.operator
        shares = operator.group_limits == "shared" and operator.state_key != "topic"
        none = CONTROL.empty_table()
        self._exchange = LocalExchange(conf, output) if shares else None
        self.sharing = None if self._exchange is None else Sharing(self._control, none, conf, self._exchange)
        whole_brokers = self.sharing is not None and self.sharing.may_be_in_use
        layout = replace(layout_of(conf, whole_brokers=whole_brokers), slots=1)  # one process has one key
        self._routing = routing_of(layout)
        said = conf_rows(conf_limits(conf), none, FROM_THE_START, groups=self.sharing is None)
        self._control.append_control([layout_row(layout), *said, tick_row(FROM_THE_START)])
        given = tuple(changes_in(pa.Table.from_pylist(said, CONTROL))) if self._routing.by_topic else ()
        meter = None if self.sharing is None else self.sharing.meter
        rules = rules_of(layout, meter, connection_topics=operator.connection_topics)
        self._engine = LocalEngine(ThrottleOperator(rules, operator.kernel, given, around), OUTPUT_BLOCKS, disorder)
        if self.sharing is not None:
            self.sharing.enforces = layout.whole_brokers
            self.sharing.begin(FROM_THE_START)
        self._writer = BatchWriter(tables, on_batch, self.sharing)

    def take(self, parsed: Iterable[Parsed]) -> BatchResult:
        """A batch of traffic."""
        return self._step(pack(self._routing, parsed))

    def change(self, limits: Iterable[LimitRow], at_us: int) -> None:
        """These limits of publishes hold from event time `at_us` on. Where quotas are shared: none of groups."""
        at = FROM_THE_START + timedelta(microseconds=at_us)
        self._control.append_control([conf_row(at, seq, row) for seq, row in enumerate(limits)])

    def set_groups(self, groups: ResourceGroups) -> None:
        """These are the groups and their quotas from the next exchange on, where brokers share them."""
        if self._exchange is not None:
            self._exchange.set_groups(groups)

    def end(self, after_ms: int = 0) -> None:
        """Nothing more comes: time goes to the largest event time everywhere, and what is open is closed.

        after_ms: time goes on for so long before that, and lets in what waits.
        """
        at = (
            FROM_THE_START
            if self._reached_us == NO_VALUE
            else FROM_THE_START + timedelta(microseconds=self._reached_us)
        )
        at += timedelta(milliseconds=after_ms)
        keys = self._engine.keys if self._routing.by_topic else [None]
        self._control.append_control([tick_row(at, finish=True, key=key) for key in keys])
        self._step(())
        if self.sharing is not None:
            self.sharing.end()
        self._tables.flush()

    def quota_courses(self) -> list[QuotaCourse]:
        """How the shares of quotas went; none where they are not shared."""
        return [] if self.sharing is None else self.sharing.courses()

    def _step(self, traffic: Iterable[pa.RecordBatch]) -> BatchResult:
        said = (without_layouts(pa.Table.from_batches([rows])).to_batches() for rows in self._control.take())
        control = pack_control(self._routing, (rows for batches in said for rows in batches))
        rows = self._engine.step([*traffic, *control])
        result = self._writer.write(rows, self._application, self._batch_id)
        self._batch_id += 1
        self._reached_us = max(self._reached_us, result.event_time_us or NO_VALUE)
        return result
