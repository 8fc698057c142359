"""Rows and operations in the order in which they act. No engine: Arrow and numpy."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.columns import numbers
from headgate.arrow.runs import together
from headgate.core.kernels.columns import Ints
from headgate.throttle.limits.changes import Change

_OF_PLACE = ("event_time_us", "seq", "broker")


class Due(NamedTuple):
    """What of a kind of rows acts in a step.

    rows: in any order. changes: of its limits, in their order; at one instant they come before rows. Nothing acts
    before the domain's clock, and time comes to until_ns.
    """

    rows: pa.Table
    changes: Sequence[Change]
    until_ns: int


class Gathered:
    """Rows for tables, by table, in the order in which they were added."""

    def __init__(self) -> None:
        self._parts: dict[str, list[pa.Table]] = defaultdict(list)

    def add(self, rows: Mapping[str, pa.Table]) -> None:
        for name, of_table in rows.items():
            if len(of_table):
                self._parts[name].append(of_table)

    def tables(self) -> dict[str, pa.Table]:
        """One table each; those without rows are left out."""
        return {name: parts[0] if len(parts) == 1 else together(parts) for name, parts in self._parts.items()}


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


def in_time(rows: pa.Table, others: pa.Table) -> pa.Table:
    """Rows of both in the order of time, those of one instant as they come."""
    if not (len(rows) and len(others)):
        return rows if len(rows) else others
    both = together([rows, others])
    places = np.argsort(numbers(both["at_ns"]), kind="stable")
    return both.take(pa.array(places))
