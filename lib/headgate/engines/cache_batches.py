"""What a batch of the entry cache's job brought, and its way into the tables: the same under every engine."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from headgate.cache.clock import Clock
from headgate.cache.forms import kernel_for
from headgate.cache.horizon.key_operator import HorizonOperator
from headgate.cache.horizon.meeting import horizons_of, metrics_of
from headgate.cache.horizon.schemas import ITEMS, PARTS, REPORTS
from headgate.cache.key_operator import CacheOperator
from headgate.cache.schemas import CACHE_BATCHES, CACHE_METRICS, EVICTIONS, METRICS, PROGRESS
from headgate.cache.step import CacheRules
from headgate.conf import Conf
from headgate.core.cache.settings import CacheSettings, Mode
from headgate.engines.batches import Appends
from headgate.throttle.schemas import DEAD_LETTERS

OF_BROKERS = {"metrics": METRICS, "evictions": EVICTIONS, "dead_letters": DEAD_LETTERS, "progress": PROGRESS}
OF_SHARDS = {"items": ITEMS, "reports": REPORTS, "parts": PARTS}
_MICROSECONDS_OF_MS = 1000


@dataclass(frozen=True)
class CacheResult:
    """What one batch brought. rounds: of mode horizon, those that met. event_time: the highest of its rows' or None."""

    batch_id: int
    rows: int
    late: int
    dead_letters: int
    rounds: int
    event_time: datetime | None


def is_horizon(conf: Conf) -> bool:
    """Whether rows go through shards that meet in rounds, and what comes of a round goes in again."""
    return CacheSettings.of(conf.cache).mode is Mode.HORIZON


def kinds_of(conf: Conf) -> dict[str, pa.Schema]:
    """What the operator brings."""
    return OF_BROKERS | (OF_SHARDS if is_horizon(conf) else {})


def kernel_of(conf: Conf) -> str:
    """The form of the rules that a run uses."""
    return kernel_for(conf.cache, conf.settings.operator.kernel)


def operator_of(conf: Conf, *, evictions: bool) -> CacheOperator | HorizonOperator:
    """The operator of a job. evictions: whether each entry that left is told."""
    hold_back_us = conf.settings.input.hold_back_ms * _MICROSECONDS_OF_MS
    rules = CacheRules(hold_back_us, evictions=evictions, kernel=kernel_of(conf))
    return HorizonOperator(rules) if is_horizon(conf) else CacheOperator(rules)


class CacheWriter:
    """Exactly once in the tables: each takes a batch in one transaction (application, batch id).

    `cache_batches` comes first: a change of conf files holds behind all that any table tells of.

    clock: how far time has come. fed_back: rows of mode horizon that go in again with the next batch, by table.
    """

    def __init__(self, tables: Appends, conf: Conf) -> None:
        self._tables = tables
        self._settings = CacheSettings.of(conf.cache)
        self.clock = Clock()
        self.fed_back: dict[str, pa.Table] = {}

    @property
    def goes_on(self) -> bool:
        """Whether anything goes in again."""
        return any(len(rows) for rows in self.fed_back.values())

    def write(self, rows: Mapping[str, pa.Table], application: str, batch_id: int) -> CacheResult:
        """Write the rows of a batch by kind (kinds_of)."""
        progress, metrics = rows["progress"], rows.get("metrics")
        fed_back: dict[str, pa.Table] = {}
        if self._settings.mode is Mode.HORIZON:
            metrics = metrics_of(rows["parts"])
            horizons = horizons_of(rows["reports"], self._settings.shards)
            fed_back = {"cache_rounds": rows["items"], "cache_horizons": horizons}
        batches = _numbered(progress.filter(pc.greater(progress["rows"], 0)), CACHE_BATCHES, batch_id)
        of_tables = {
            "cache_batches": batches,
            "cache_metrics": _numbered(metrics, CACHE_METRICS, batch_id),
            "cache_evictions": rows["evictions"],
            "dead_letters": rows["dead_letters"],
            **fed_back,
        }
        for name, of_table in of_tables.items():
            self._tables.append(name, of_table, application, batch_id)
        self.clock.take(progress)
        self.fed_back = fed_back
        taken, late = (pc.sum(batches[name]).as_py() or 0 for name in ("rows", "late"))
        counts = taken, late, len(rows["dead_letters"]), len(self.fed_back.get("cache_horizons", ()))
        return CacheResult(batch_id, *counts, pc.max(batches["event_time"]).as_py())


def _numbered(rows: pa.Table, schema: pa.Schema, batch_id: int) -> pa.Table:
    numbered = rows.add_column(0, schema.field("batch_id"), pa.repeat(batch_id, len(rows)))
    return numbered.select(schema.names)
