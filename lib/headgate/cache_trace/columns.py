"""Columns of a trace as numbers, exactly; the first value that is none is told with its row and column."""

import hashlib
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headgate.cache_trace.layout import TIME_UNITS_NS
from headgate.errors import InputError

_TIME_MAX_US = (1 << 63) // 1000
_INT64_MAX = (1 << 63) - 1
_BEYOND_INT64 = r"^0*[1-9][0-9]{18,}$"
_REALS = (pa.decimal128(38, 18), pa.decimal256(76, 50))
_US_DIGITS = {"s": 6, "ms": 3, "us": 0, "ns": -3}
_ID = f"0 to {(1 << 64) - 1}, or text with --ids text"
_SIZE = "0 bytes and more, a whole number"
_SHOWN_CHARACTERS = 80

Int64s = npt.NDArray[np.int64]
Uint64s = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Column:
    """The values of one column in one chunk of a file: numbers of a binary record, or the bytes of a text.

    begun: row of the first value. number: that of the column. Both count from 1.
    """

    path: Path
    begun: int
    number: int
    values: Any

    @property
    def is_text(self) -> bool:
        return isinstance(self.values, pa.Array)

    def check(self, name: str, wrong: npt.NDArray[np.bool_], allowed: str) -> None:
        """Raise InputError for the first value that is wrong."""
        if wrong.any():
            raise self.refusal(name, int(np.argmax(wrong)), allowed)

    def refusal(self, name: str, place: int, allowed: str) -> InputError:
        where = f"{self.path}, row {self.begun + place}, column {self.number}"
        if not self.is_text:
            return InputError(
                f"{where}: got {name} of {self.values[place]}, allowed {allowed}; is it the right column?"
            )
        if not (got := self.values[place].as_py()):
            return InputError(f"{where} is empty; allowed a value in every row")
        return InputError(f"{where}: got {name} of {shown(got)}, allowed {allowed}; is it the right column?")


def shown(text: bytes) -> str:
    """For a message: between quotes, and not too long."""
    whole = text.decode("utf-8", "replace")
    return repr(whole if len(whole) <= _SHOWN_CHARACTERS else f"{whole[:_SHOWN_CHARACTERS]}...")


def numbers_as_ids(column: Column) -> Uint64s:
    if not column.is_text:
        return np.asarray(column.values, np.uint64)
    texts = _trimmed(column)
    ids = _cast(texts, pa.uint64())
    if ids is None:
        raise column.refusal("an id", _first_bad(texts, pa.uint64()), _ID)
    return np.asarray(ids, np.uint64)


def texts_as_ids(column: Column) -> Uint64s:
    """The first 64 bits of the BLAKE2b digest of each."""
    texts = column.values.dictionary_encode()
    digests = [hashlib.blake2b(text, digest_size=8).digest() for text in texts.dictionary.to_pylist()]
    ids = np.array([int.from_bytes(digest, "little") for digest in digests], np.uint64)
    return np.asarray(ids[texts.indices.to_numpy()])


def as_sizes(column: Column) -> Int64s:
    """From 0 on; what is beyond 64 bits with a sign is the largest number that is not."""
    sizes = column.values
    if column.is_text:
        sizes = _sizes_of_texts(column)
    elif sizes.dtype.kind == "u":
        sizes = np.minimum(sizes, np.uint64(_INT64_MAX))
    sizes = np.asarray(sizes, np.int64)
    column.check("a size", sizes < 0, _SIZE)
    return sizes


def as_times_us(column: Column, unit: str) -> Int64s:
    """In microseconds, the nearest, of two the even one; whole numbers stay exact, and so do decimals of a text."""
    last = _TIME_MAX_US * 1000 // TIME_UNITS_NS[unit]
    allowed = f"0 to {last} {unit}, the year 2262"
    times: npt.NDArray[Any] = column.values
    if column.is_text:
        texts = _trimmed(column)
        whole = _cast(texts, pa.int64())
        if whole is None:
            return _of_reals(column, texts, unit, last, allowed)
        times = whole.to_numpy()
    column.check("a time", ~((times >= 0) & (times <= last)), allowed)
    if times.dtype.kind == "f":
        return np.rint(times.astype(np.float64) * (TIME_UNITS_NS[unit] / 1000)).astype(np.int64)
    return _whole_us(times.astype(np.int64), unit)


def _whole_us(times: Int64s, unit: str) -> Int64s:
    if unit != "ns":
        return times * (TIME_UNITS_NS[unit] // 1000)
    us, rest = np.divmod(times, 1000)
    return np.asarray(us + ((rest > 500) | ((rest == 500) & (us % 2 == 1))))


def _of_reals(column: Column, texts: pa.Array, unit: str, last: int, allowed: str) -> Int64s:
    """By decimals, as the nearest binary number to 1.001 s is below it."""
    digits = _US_DIGITS[unit]
    in_us = pa.decimal128(30, max(digits, 0))
    times = next((cast for type_ in (in_us, *_REALS) if (cast := _cast(texts, type_)) is not None), None)
    if times is None:
        raise column.refusal(
            "a time", _first_bad(texts, _REALS[-1]), f"{allowed}, with up to {_REALS[-1].scale} decimals"
        )
    least, most = (pa.scalar(Decimal(edge), times.type) for edge in (0, last))
    inside = pc.and_(pc.greater_equal(times, least), pc.less_equal(times, most))
    column.check("a time", ~inside.to_numpy(zero_copy_only=False), allowed)
    if digits < 0 or times.type != in_us:
        times = pc.round(times, digits, "half_to_even").cast(in_us)
    if digits < 0:
        return np.asarray(np.asarray(times.cast(pa.int64())) // 10**-digits)
    return np.asarray(pc.multiply(times, pa.scalar(10**digits, pa.decimal128(7, 0))).cast(pa.int64()))


def _sizes_of_texts(column: Column) -> Int64s:
    texts = _trimmed(column)
    sizes = _cast(texts, pa.int64())
    if sizes is None:
        texts = pc.if_else(pc.match_substring_regex(texts, _BEYOND_INT64), str(_INT64_MAX), texts)
        sizes = _cast(texts, pa.int64())
    if sizes is None:
        raise column.refusal("a size", _first_bad(texts, pa.int64()), _SIZE)
    return np.asarray(sizes)


def _trimmed(column: Column) -> pa.Array:
    return pc.ascii_trim(column.values.view(pa.string()), " \t")


def _cast(texts: pa.Array, type_: pa.DataType) -> pa.Array | None:
    """None if any of them is no number of the type."""
    try:
        return texts.cast(type_)
    except pa.ArrowInvalid:
        return None


def _first_bad(texts: pa.Array, type_: pa.DataType) -> int:
    """Where the first text stands that is no number of the type; there is one."""
    begin, end = 0, len(texts)
    while end - begin > 1:
        middle = (begin + end) // 2
        if _cast(texts[begin:middle], type_) is None:
            end = middle
        else:
            begin = middle
    return begin
