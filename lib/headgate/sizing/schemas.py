"""Arrow schemas of the tables that a sweep writes. docs/tables.md has every column."""

import pyarrow as pa

from headgate.sizing.measure import OF_ALL_ROWS, SCALED, WORK
from headgate.throttle.schemas import DEAD_LETTERS

MEASURED = (*SCALED, *OF_ALL_ROWS, *WORK)
CACHE_SWEEP = pa.schema(
    [
        ("combination", pa.int64()),
        ("broker", pa.string()),
        ("is_present", pa.bool_()),
        ("policy", pa.string()),
        ("max_bytes", pa.int64()),
        ("changed", pa.string()),
        ("conf", pa.string()),
        ("sample", pa.int64()),
        *((name, pa.int64()) for name in MEASURED),
        ("cpu_s", pa.float64()),
    ]
)
TABLES = {"cache_sweep": CACHE_SWEEP, "dead_letters": DEAD_LETTERS}
