"""Rows and operations in the order in which they act (design 3). No engine: Arrow and numpy."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.core.kernels.domain_types import Ints
from headgate.throttle.columns import numbers

_OF_PLACE = ("event_time_us", "seq", "broker")


def by_broker(rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """The rows of each broker, in their order."""
    brokers = pc.unique(rows["broker"]).to_pylist()
    for broker in brokers:
        yield broker, rows if len(brokers) == 1 else rows.filter(pc.equal(rows["broker"], broker))


def due(held: pa.Table, rows: pa.Table, bound_us: int) -> tuple[pa.Table, pa.Table]:
    """The rows, held ones and new ones, of times up to `bound_us`, and those to be held from now on."""
    if len(held):
        rows = pa.concat_tables([held, rows])
    if not len(rows):
        return rows, held
    is_due = pc.less_equal(rows["event_time_us"], bound_us)
    if pc.all(is_due).as_py():
        return rows, rows.slice(0, 0)
    return rows.filter(is_due), rows.filter(pc.invert(is_due)).combine_chunks()


def late(rows: pa.Table, done_ns: int) -> int:
    """How many rows come behind the clock."""
    return int((numbers(rows["event_time_us"]) * 1000 < done_ns).sum())


def order(rows: pa.Table) -> Ints:
    """Rows by (event_time, seq); where the source left rows equal in both, by what they say, never by how they came."""
    time_us, seq = numbers(rows["event_time_us"]), numbers(rows["seq"])
    places: Ints = np.lexsort((seq, time_us))
    tied = (np.diff(time_us[places]) == 0) & (np.diff(seq[places]) == 0)
    if not tied.any():
        return places
    columns = ["event_time_us", "seq", *(name for name in rows.column_names if name not in _OF_PLACE)]
    by_all = pc.sort_indices(rows, sort_keys=[(name, "ascending") for name in columns])
    return by_all.to_numpy().astype(np.int64)  # type: ignore[no-any-return]


def merged(done_ns: int, *groups: Any) -> Any:
    """Operations of one kind of tuple by time in ns, none before the clock; of one instant in the order of `groups`.

    Their times come in microseconds, in order within each group.
    """
    some = [
        operations._replace(at_ns=np.maximum(operations.at_ns * 1000, done_ns))
        for operations in groups
        if len(operations.at_ns)
    ]
    if len(some) < 2:
        return some[0] if some else groups[-1]
    return interleaved(*some)


def interleaved(*groups: Any) -> Any:
    """Operations of one kind of tuple by time, of one instant in the order of `groups`, and in theirs within each."""
    kind = np.repeat(np.arange(len(groups)), [len(operations.at_ns) for operations in groups])
    places = np.lexsort((kind, np.concatenate([operations.at_ns for operations in groups])))
    return type(groups[0])(*(np.concatenate(columns)[places] for columns in zip(*groups, strict=True)))
