"""docs/sizing.md has every column of cache_sweep, in order, with its type."""

import re
from pathlib import Path

import pyarrow as pa

from headgate.sizing.sweep import CACHE_SWEEP

PAGE = Path(__file__).parents[3] / "docs" / "sizing.md"
TYPES = {"long": pa.int64(), "string": pa.string(), "boolean": pa.bool_(), "double": pa.float64()}
COLUMN = re.compile(rf"^\| ([a-z_]+) \| ({'|'.join(TYPES)})(?: null)? \|[^|]*\|[^|]*\|$", re.MULTILINE)


def test_the_page_has_every_column_of_the_table() -> None:
    told = PAGE.read_text().split("### cache_sweep\n")[1]
    assert [(name, TYPES[kind]) for name, kind in COLUMN.findall(told)] == [(one.name, one.type) for one in CACHE_SWEEP]
