"""The entry cache's job on the local engine."""

import random
import time
from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa

from headgate.cache.control import check_streaming, conf_row, tick_row
from headgate.cache.routing import pack_control, pack_rows
from headgate.cache.schemas import CONTROL
from headgate.conf import Conf
from headgate.engines.cache_batches import KINDS, CacheResult, CacheWriter, operator_of
from headgate.engines.local import LocalEngine
from headgate.engines.tables import BufferedTables
from headgate.rows.traffic import Parsed


class LocalCache:
    """The rows in the tables equal those of the Spark job over the same batches; the job's first start, without a stop.

    Each `take` is a batch. `end` feeds what waits, and tells of open seconds.

    Arguments:
        conf: as of the job. Raises ConfError for a policy that knows the future.
        tables: of the run (cache.schemas.OF_CACHE), without rows. on_batch: hears of each batch.
        evictions: whether each entry that left is told. disorder: see LocalEngine.

    """

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
        self._tables = tables
        self._on_batch = on_batch
        self._application = f"headgate-local-{time.time_ns()}"
        self._batch_id = 0
        self._control: list[dict[str, Any]] = [conf_row((), conf.cache, None), tick_row(None)]
        self._engine = LocalEngine(operator_of(conf, evictions=evictions), KINDS, disorder)
        self._writer = CacheWriter(tables)

    def take(self, parsed: Iterable[Parsed]) -> CacheResult:
        """A batch of cache events (cache.events.parse)."""
        rows = self._engine.step([*pack_rows(parsed), *self._said()])
        result = self._writer.write(rows, self._application, self._batch_id)
        self._batch_id += 1
        self._on_batch(result)
        return result

    def end(self) -> None:
        """Nothing more comes."""
        if self._writer.clock.high is not None:
            self._control.append(tick_row(self._writer.clock.high, finish=True))
            self.take(())
        self._tables.flush()

    def _said(self) -> Iterable[pa.RecordBatch]:
        said, self._control = pa.Table.from_pylist(self._control, CONTROL), []
        if len(said):
            self._tables.extend("cache_control", said)
        return pack_control(iter(said.to_batches()))
