"""Arrow tables that several packages know: plain values, rows that wait, what the operator tells the quota loop."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

TIMESTAMP = pa.timestamp("us", tz="UTC")

DEAD_LETTERS = pa.schema(
    [
        ("reason", pa.string()),
        ("raw", pa.string()),
        ("source", pa.string()),
        ("offset", pa.int64()),
    ]
)
"""Bad rows: why, what they were, and where they stood."""


def table_of(rows: Iterable[Sequence[Any]], schema: pa.Schema) -> pa.Table:
    """The rows, each with a value a column; timestamps may be whole numbers of their unit."""
    columns = list(zip(*rows, strict=True)) or [() for _ in schema]
    arrays = [pa.array(values, column.type) for values, column in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


GROUP_USAGE = pa.schema(
    [("broker", pa.string()), ("group", pa.string()), ("class", pa.int8())]
    + [
        (name, pa.int64())
        for name in ("at_ms", "admitted_msgs", "admitted_bytes", "offered_msgs", "offered_bytes", "topics")
    ]
)
"""What a group's traffic was in the slot of time (Rules.slot_ms) that begins at `at_ms`; rows of one slot add up.

class: 0 publish. topics: of the group, whose first traffic in their epoch (Rules.epoch_ms) lies in the slot.
"""

GROUP_WAITS = pa.schema(
    [
        ("broker", pa.string()),
        ("group", pa.string()),
        ("class", pa.int8()),
        ("from_ms", pa.int64()),
        ("until_ms", pa.int64()),
        ("throttled_msgs", pa.bool_()),
        ("throttled_bytes", pa.bool_()),
    ]
)
"""A time in which producers waited at a group's limiter, and for want of what: rounded outwards, and it may go on."""

GROUP_LEAVES = pa.schema([("broker", pa.string()), ("group", pa.string()), ("class", pa.int8())])
"""A group that a broker's topics were charged to, and none is any more: they were attached to others, or to nothing."""


class Waiting:
    """Rows of tables that wait until somebody takes them all."""

    def __init__(self) -> None:
        self._parts: dict[str, list[pa.Table]] = defaultdict(list)
        self._rows: Counter[str] = Counter()

    def add(self, name: str, rows: pa.Table) -> int:
        """How many rows of the table wait now."""
        self._parts[name].append(rows)
        self._rows[name] += len(rows)
        return self._rows[name]

    def take(self, name: str) -> pa.Table | None:
        """The rows of the table, which wait no more; None where none was added."""
        self._rows.pop(name, None)
        parts = self._parts.pop(name, None)
        return None if parts is None else pa.concat_tables(parts)

    @property
    def names(self) -> list[str]:
        """Of tables with rows."""
        return list(self._parts)
