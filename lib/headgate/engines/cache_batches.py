"""What a batch of the entry cache's job brought, and its way into the tables: the same under every engine."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.schemas import DEAD_LETTERS
from headgate.cache.clock import Clock
from headgate.cache.forms import kernel_for
from headgate.cache.key_operator import CacheOperator
from headgate.cache.schemas import CACHE_BATCHES, CACHE_METRICS, EVICTIONS, METRICS, PROGRESS
from headgate.cache.step import CacheRules
from headgate.conf import Conf
from headgate.core.numbers import HOUR_US
from headgate.engines.batches import Appends

KINDS = {"metrics": METRICS, "evictions": EVICTIONS, "dead_letters": DEAD_LETTERS, "progress": PROGRESS}
"""What the operator brings."""
_MICROSECONDS_OF_MS = 1000


@dataclass(frozen=True)
class CacheResult:
    """What one batch brought. event_time: the highest of its rows' or None."""

    batch_id: int
    rows: int
    late: int
    dead_letters: int
    event_time: datetime | None


def kernel_of(conf: Conf) -> str:
    """The form of the rules that a run uses."""
    return kernel_for(conf.cache, conf.settings.operator.kernel)


def operator_of(conf: Conf, *, evictions: bool) -> CacheOperator:
    """The operator of a job. evictions: whether each entry that left is told."""
    hold_back_us = conf.settings.input.hold_back_ms * _MICROSECONDS_OF_MS
    silent_us = conf.settings.state.silent_hours * HOUR_US
    return CacheOperator(CacheRules(hold_back_us, evictions=evictions, kernel=kernel_of(conf), silent_us=silent_us))


class CacheWriter:
    """Exactly once in the tables: each takes a batch in one transaction (application, batch id).

    `cache_batches` comes first: a change of conf files holds behind all that any table tells of.

    clock: how far time has come.
    """

    def __init__(self, tables: Appends) -> None:
        self._tables = tables
        self.clock = Clock()

    def write(self, rows: Mapping[str, pa.Table], application: str, batch_id: int) -> CacheResult:
        """Write the rows of a batch by kind (KINDS)."""
        progress = rows["progress"]
        batches = _numbered(progress.filter(pc.greater(progress["rows"], 0)), CACHE_BATCHES, batch_id)
        of_tables = {
            "cache_batches": batches,
            "cache_metrics": _numbered(rows["metrics"], CACHE_METRICS, batch_id),
            "cache_evictions": rows["evictions"],
            "dead_letters": rows["dead_letters"],
        }
        for name, of_table in of_tables.items():
            self._tables.append(name, of_table, application, batch_id)
        self.clock.take(progress)
        taken, late = (pc.sum(batches[name]).as_py() or 0 for name in ("rows", "late"))
        return CacheResult(batch_id, taken, late, len(rows["dead_letters"]), pc.max(batches["event_time"]).as_py())


def _numbered(rows: pa.Table, schema: pa.Schema, batch_id: int) -> pa.Table:
    numbered = rows.add_column(0, schema.field("batch_id"), pa.repeat(batch_id, len(rows)))
    return numbered.select(schema.names)
