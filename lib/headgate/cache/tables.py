"""The Delta tables of the entry cache's job."""

import pyarrow as pa

from headgate.cache.schemas import CACHE_BATCHES, CACHE_METRICS, CONTROL, EVICTIONS
from headgate.throttle.schemas import DEAD_LETTERS

WRITTEN: dict[str, pa.Schema] = {
    "cache_metrics": CACHE_METRICS,
    "cache_evictions": EVICTIONS,
    "dead_letters": DEAD_LETTERS,
    "cache_batches": CACHE_BATCHES,
}
"""What a batch brings."""
OF_CACHE: dict[str, pa.Schema] = {**WRITTEN, "cache_control": CONTROL}
