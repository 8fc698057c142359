"""The entry cache's and the protocol's job on the local engine, batch by batch: their first start, without a stop."""

import random
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa

from headgate.cache.control import check_streaming, conf_row, tick_row
from headgate.cache.routing import pack_control, pack_rows
from headgate.cache.schemas import CONTROL
from headgate.conf import Conf
from headgate.engines import cache_batches, protocol_batches
from headgate.engines.cache_batches import CacheResult, CacheWriter
from headgate.engines.local import LocalEngine
from headgate.engines.protocol_batches import ProtocolResult, ProtocolWriter, ticks
from headgate.engines.tables import BufferedTables
from headgate.protocol.routing import pack_inputs, pack_marks, pack_ticks
from headgate.protocol.state import NOT_YET
from headgate.rows.traffic import Parsed


class _LocalJob:
    """The rows in the tables equal those of the Spark job over the same batches. on_batch: hears of each."""

    def __init__(
        self, engine: LocalEngine, writer: Any, tables: BufferedTables, on_batch: Callable[[Any], None]
    ) -> None:
        self._engine, self._writer, self._tables, self._on_batch = engine, writer, tables, on_batch
        self._application = f"headgate-local-{time.time_ns()}"
        self._batch_id = 0

    def _take(self, blocks: Iterable[pa.RecordBatch]) -> Any:
        result = self._writer.write(self._engine.step(blocks), self._application, self._batch_id)
        self._batch_id += 1
        self._on_batch(result)
        return result


class LocalCache(_LocalJob):
    """Raises ConfError for a policy that knows the future."""

    def __init__(
        self,
        conf: Conf,
        tables: BufferedTables,
        on_batch: Callable[[CacheResult], None],
        *,
        evictions: bool = False,
        disorder: random.Random | None = None,
    ) -> None:
        check_streaming(conf.cache)
        self._control: list[dict[str, Any]] = [conf_row((), conf.cache, None), tick_row(None)]
        operator = cache_batches.operator_of(conf, evictions=evictions)
        super().__init__(LocalEngine(operator, cache_batches.KINDS, disorder), CacheWriter(tables), tables, on_batch)

    def take(self, parsed: Iterable[Parsed]) -> CacheResult:
        """A batch of cache events (cache.events.parse)."""
        return self._take([*pack_rows(parsed), *self._said()])

    def end(self) -> None:
        """Nothing more comes: what waits is fed, and open seconds are told of."""
        if self._writer.clock.high is not None:
            self._control.append(tick_row(self._writer.clock.high, finish=True))
            self.take(())
        self._tables.flush()

    def _said(self) -> Iterable[pa.RecordBatch]:
        said, self._control = pa.Table.from_pylist(self._control, CONTROL), []
        if len(said):
            self._tables.extend("cache_control", said)
        return pack_control(iter(said.to_batches()))


class LocalProtocol(_LocalJob):
    """has_inputs: whether it is told what clients do; if not, they are obedient. follows_marks: what is throttled."""

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
        self._by_broker = protocol_batches.fans_out(conf)
        self._ticks = [ticks(NOT_YET)]
        operator = protocol_batches.operator_of(conf, has_inputs=has_inputs, follows_marks=follows_marks)
        engine = LocalEngine(operator, protocol_batches.KINDS, disorder)
        super().__init__(engine, ProtocolWriter(tables), tables, on_batch)

    def take(self, inputs: Iterable[Parsed] = (), marks: Iterable[pa.RecordBatch] = ()) -> ProtocolResult:
        """A batch. inputs: of protocol.parse. marks: rows of the table `marks`."""
        packed_inputs = pack_inputs(inputs, by_broker=self._by_broker)
        packed_marks = pack_marks(iter(marks), by_broker=self._by_broker)
        return self._take([*packed_inputs, *packed_marks, *self._said()])

    def end(self) -> None:
        """Nothing more comes: the last millisecond ends."""
        if self._writer.clock.high_ms != NOT_YET:
            self._ticks.append(ticks(self._writer.clock.high_ms, finish=True))
            self.take()
        self._tables.flush()

    def _said(self) -> Iterator[pa.RecordBatch]:
        said, self._ticks = self._ticks, []
        for rows in said:
            self._tables.extend("protocol_ticks", rows)
            yield from pack_ticks(iter(rows.to_batches()))
