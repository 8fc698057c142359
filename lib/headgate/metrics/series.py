"""What a series is, and how the rows of a table move it."""

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

COUNTER, GAUGE, SUMMARY = "counter", "gauge", "summary"


@dataclass(frozen=True)
class Series:
    """A metric of the endpoint, in base units.

    per: how many of what is counted make one of its unit (of ns in a second: 10**9). zeros: values of the labels that
    are told from the start: without them the first rows would be no increase for whoever asks for one.
    """

    name: str
    type: str
    meaning: str
    labels: tuple[str, ...] = ()
    per: int = 1
    zeros: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Count:
    """Rows move a counter by their number, or by the sum of `column`, in which a null counts for nothing.

    by: columns with the values of the labels, in their order. fixed: the values of the labels that follow those.
    """

    series: Series
    by: tuple[str, ...] = ()
    column: str | None = None
    fixed: tuple[str, ...] = ()


@dataclass(frozen=True)
class OfTable:
    """All that the rows of one table move. prepared: makes columns of labels that the table has in another form."""

    counts: tuple[Count, ...]
    prepared: Callable[[pa.Table], pa.Table] = lambda rows: rows


def counter(name: str, meaning: str, *by: str, column: str | None = None, per: int = 1) -> Count:
    """A count whose labels are the columns `by`, under their names."""
    zeros = () if by else ((),)
    return Count(Series(name, COUNTER, meaning, by, per, zeros), by, column)
