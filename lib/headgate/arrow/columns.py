"""Columns of numbers and names: empty ones, out of Arrow, and places of names among others."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.core.kernels.columns import Ints
from headgate.core.numbers import MAX

BUCKET_FIELDS = ("rate", "balance", "last_ns", "remainder_ns")
"""Columns of a bucket, of two dimensions: messages and bytes. Floors follow from rates."""
_EXACT = 2.0**52
"""Sums of whole numbers below this are exact as floating-point numbers."""


def ints(*values: int) -> Ints:
    return np.array(values, np.int64)


def no_ints() -> Ints:
    return np.empty(0, np.int64)


def no_strings() -> pa.StringArray:
    return pa.array([], pa.string())


def empty_columns(fields: Mapping[str, int]) -> dict[str, Ints]:
    """Columns without rows. fields: how many dimensions each has, 1 or 2."""
    return {name: np.empty((0, 2) if dimensions == 2 else 0, np.int64) for name, dimensions in fields.items()}


def numbers(column: pa.ChunkedArray) -> Ints:
    """The column as an array of its own: kernels write to it, and are compiled for that alone."""
    return np.array(column.to_numpy(), np.int64)


def whole(column: pa.ChunkedArray) -> pa.Array:
    """The column in one piece."""
    combined = column.combine_chunks()
    return combined if isinstance(combined, pa.Array) else pa.concat_arrays(combined.chunks)


def encoded(column: pa.Array | pa.ChunkedArray) -> tuple[pa.StringArray, Ints]:
    """Distinct values in the order of their first rows, and each row's index among them (-1 for null)."""
    codes = (whole(column) if isinstance(column, pa.ChunkedArray) else column).dictionary_encode()
    return codes.dictionary, codes.indices.fill_null(-1).to_numpy().astype(np.int64)


def places(keys: pa.StringArray, wanted: pa.StringArray) -> Ints:
    """The place of each of `wanted` among `keys`, -1: not there."""
    found: Ints = pc.index_in(wanted, value_set=keys).fill_null(-1).to_numpy().astype(np.int64)
    return found


def distinct(codes: Ints, *columns: Ints) -> tuple[Ints, Ints]:
    """Of rows of these columns: the first row of each distinct one, in their order, and each row's index among them.

    Values are from -1 on; columns but the first are codes, so that no product of two overflows.
    """
    first = no_ints()
    for column in columns:
        width = int(column.max(initial=-1)) + 2
        _, first, codes = np.unique(codes * width + column + 1, return_index=True, return_inverse=True)
    by_first = np.argsort(first)
    index = np.empty(len(first), np.int64)
    index[by_first] = np.arange(len(first))
    return first[by_first], index[codes]


def sums_by(amounts: Ints, of_cell: Ints, cells: int) -> Ints:
    """Sums of amounts from 0 by cell, which stop at the largest 64-bit number."""
    about = np.bincount(of_cell, weights=amounts, minlength=cells)
    if about.max(initial=0) < _EXACT:
        return about.astype(np.int64)
    exact = [0] * cells
    for cell, amount in zip(of_cell.tolist(), amounts.tolist(), strict=True):
        exact[cell] += amount
    return np.array([min(amount, MAX) for amount in exact], np.int64)
