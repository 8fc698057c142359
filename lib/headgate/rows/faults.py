"""What is wrong with raw rows, and the dead letters that say so."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.schemas import DEAD_LETTERS
from headgate.conf import InputSettings
from headgate.core.numbers import MAX
from headgate.rows.raw import SHOWN_CHARACTERS, Flags, Raw
from headgate.rows.values import Names, instants_us, names, whole_numbers

NO_TIME = "ISO 8601 with a zone, or whole microseconds since 1970"
_OTHER_UNITS = {"seconds": Fraction(1, 10**6), "milliseconds": Fraction(1, 1000), "nanoseconds": Fraction(1000)}
"""How many of them a microsecond has."""
NO_SEQ = "a whole number of 64 bits"
NO_NAME = "a name"


class Fault(NamedTuple):
    """Rows in which a column holds something else than what is allowed."""

    column: str
    allowed: str
    rows: Flags


class Faults:
    """The faults of some rows, in the order in which a dead letter names them. known: columns that rows may have."""

    def __init__(self, raw: Raw, known: Sequence[str]) -> None:
        self._raw, self._known = raw, known
        self._faults: list[Fault] = []

    def add(self, column: str, allowed: str, rows: Flags) -> None:
        """Rows that have the fault; nothing if none has."""
        if rows.any():
            self._faults.append(Fault(column, allowed, rows))

    def bad(self) -> Flags:
        """Rows that have any fault, or no columns at all."""
        bad = np.zeros(len(self._raw), np.bool_)
        bad[list(self._raw.defects)] = True
        for fault in self._faults:
            bad |= fault.rows
        return bad

    def reason(self, place: int, shown: Callable[[str | None], str]) -> str:
        """What is wrong with a row: why it has no columns, or which it lacks and each other fault.

        shown: how a column's text is written.
        """
        if place in self._raw.defects:
            return self._raw.defects[place]
        faults = [fault for fault in self._faults if fault.rows[place]]
        got = {fault.column: self._raw.got(fault.column, place) for fault in faults}
        missing: Sequence[str] = ()
        names: Sequence[str] = ()
        if None in got.values():
            names = self._raw.names(place)
            missing = [column for column in got if column not in names]
        reasons = [
            f"{fault.column}: got {shown(got[fault.column])}, allowed is {fault.allowed}"
            for fault in faults
            if fault.column not in missing
        ]
        return "; ".join([self._lacking(missing, names), *reasons] if missing else reasons)

    def _lacking(self, missing: Sequence[str], names: Sequence[str]) -> str:
        """Which columns a row lacks, and which it has that nobody knows: one of them may be meant."""
        noun = "column" if len(missing) == 1 else "columns"
        others = [name for name in names if name not in self._known] or names
        return f"{noun} missing: {', '.join(missing)}; found: {', '.join(others)[:SHOWN_CHARACTERS] or 'none'}"


def read_place(raw: Raw, settings: InputSettings, faults: Faults) -> tuple[pa.Array, pa.Array, Names]:
    """What puts a row in its order: time in microseconds, seq and broker. What is wrong with them goes to `faults`."""
    time_us, seq, broker = instants_us(raw.column("event_time")), whole_numbers(raw.column("seq")), names(raw, "broker")
    faults.add("event_time", NO_TIME, nulls(time_us))
    for allowed, rows in _outside(time_us, settings):
        faults.add("event_time", allowed, rows)
    faults.add("seq", NO_SEQ, nulls(seq))
    faults.add("broker", NO_NAME, no_names(broker))
    return time_us, seq, broker


def letters_of(raw: Raw, reasons: Iterable[tuple[int, str]]) -> pa.Table:
    """DEAD_LETTERS of the rows at these places."""
    return pa.Table.from_pylist([raw.letter(place, reason) for place, reason in reasons], DEAD_LETTERS)


def nulls(values: pa.Array) -> Flags:
    """Rows without a value."""
    if not values.null_count:
        return np.zeros(len(values), np.bool_)
    return values.is_null().to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def _span_of(settings: InputSettings) -> str:
    """The times that an input may have, as a message says it."""
    first, until = settings.event_time_from, settings.event_time_until
    return f"{first.isoformat()} up to {until.isoformat()} ([input] in headgate.toml)"


def _outside(time_us: pa.Array, settings: InputSettings) -> Iterator[tuple[str, Flags]]:
    """Rows whose time is outside that span, by what is said of them; those without a time are not."""
    first, until = _micros(settings.event_time_from), _micros(settings.event_time_until)
    outside = ~_within(time_us, first, until) & ~nulls(time_us)
    allowed = _span_of(settings)
    for unit, of_us in _OTHER_UNITS.items() if outside.any() else ():
        looks_so = outside & _within(time_us, int(first * of_us), int(until * of_us))
        yield f"{allowed}; it looks like {unit}, and numbers are microseconds", looks_so
        outside &= ~looks_so
    yield allowed, outside


def _within(time_us: pa.Array, first: int, until: int) -> Flags:
    return is_true(pc.and_(pc.greater_equal(time_us, min(first, MAX)), pc.less(time_us, min(until, MAX))))


def no_names(read: Names) -> Flags:
    """Rows without a name: null, blank, an object or a list."""
    texts = read.texts.dictionary_encode()
    is_blank = pc.equal(pc.utf8_trim(texts.dictionary, " "), "")
    wrong = nulls(texts)
    if pc.any(is_blank).as_py():
        wrong = wrong | is_true(is_blank.take(texts.indices))
    return wrong if read.is_nested is None else wrong | read.is_nested


def is_true(condition: pa.Array) -> Flags:
    """Rows in which the condition holds; null counts as no."""
    return condition.fill_null(False).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def _micros(moment: datetime) -> int:
    return int(moment.timestamp()) * 1_000_000 + moment.microsecond
