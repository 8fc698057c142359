"""The protocol's job on the local engine."""

import random
import time
from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa

from headgate.conf import Conf
from headgate.engines.local import LocalEngine
from headgate.engines.protocol_batches import (
    KINDS,
    ProtocolResult,
    ProtocolWriter,
    fans_out,
    operator_of,
    ticks,
)
from headgate.engines.tables import BufferedTables
from headgate.protocol.routing import pack_inputs, pack_marks, pack_ticks
from headgate.protocol.state import NEVER
from headgate.rows.traffic import Parsed


class LocalProtocol:
    """The rows in the tables equal those of the Spark job over the same batches; the job's first start, without a stop.

    Each `take` is a batch. `end` lets the last millisecond end.

    Arguments:
        conf: as of the job. tables: of the run (protocol.schemas.OF_PROTOCOL), without rows. on_batch: hears of each.
        has_inputs: whether it is told what clients do; if not, they are taken for obedient.
        follows_marks: whether it is told what is throttled. disorder: see LocalEngine.

    """

    def __init__(
        self,
        conf: Conf,
        tables: BufferedTables,
        on_batch: Callable[[ProtocolResult], None],
        *,
        has_inputs: bool,
        follows_marks: bool,
        disorder: random.Random | None = None,
    ) -> None:
        self._tables = tables
        self._on_batch = on_batch
        self._application = f"headgate-local-{time.time_ns()}"
        self._batch_id = 0
        self._by_broker = fans_out(conf)
        self._ticks = [ticks(NEVER)]
        operator = operator_of(conf, has_inputs=has_inputs, follows_marks=follows_marks)
        self._engine = LocalEngine(operator, KINDS, disorder)
        self._writer = ProtocolWriter(tables)

    def take(self, inputs: Iterable[Parsed] = (), marks: Iterable[pa.RecordBatch] = ()) -> ProtocolResult:
        """A batch. inputs: of protocol.parse. marks: rows of the table `marks`."""
        packed_inputs = pack_inputs(inputs, by_broker=self._by_broker)
        packed_marks = pack_marks(iter(marks), by_broker=self._by_broker)
        rows = self._engine.step([*packed_inputs, *packed_marks, *self._said()])
        result = self._writer.write(rows, self._application, self._batch_id)
        self._batch_id += 1
        self._on_batch(result)
        return result

    def end(self) -> None:
        """Nothing more comes."""
        if self._writer.clock.high_ms != NEVER:
            self._ticks.append(ticks(self._writer.clock.high_ms, finish=True))
            self.take()
        self._tables.flush()

    def _said(self) -> Iterator[pa.RecordBatch]:
        said, self._ticks = self._ticks, []
        for rows in said:
            self._tables.extend("protocol_ticks", rows)
            yield from pack_ticks(iter(rows.to_batches()))
