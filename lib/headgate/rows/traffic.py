"""Raw rows to rows of traffic that the operator can take, or to dead letters that say what is wrong with them."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.schemas import DEAD_LETTERS
from headgate.conf import InputSettings
from headgate.rows.faults import Faults, is_true, letters_of, no_names, nulls, read_place
from headgate.rows.kinds import COLUMNS, CONNECTION, FROM_US, IN, INPUT, INPUT_KINDS, OUT, Column, Sort, one_of
from headgate.rows.raw import Flags, Raw
from headgate.rows.values import Names, flags, names, whole_numbers

TOPIC = r"(?s)^(?:non-)?persistent://[^/]+/[^/]+/."
"""The local name may contain `/`."""
DAY_US = 86_400_000_000
KIND_NAMES = tuple(kind.name for kind in INPUT_KINDS)
_KINDS = pa.array(KIND_NAMES)
_ACTIONS = pa.array(list(CONNECTION.by_action))
_DIRECTIONS = pa.array([IN, OUT])


class Parsed(NamedTuple):
    """What became of raw rows. dead_letters: DEAD_LETTERS.

    rows: the good ones, in their order: event_time_us, seq, broker, kind, and the columns of the kinds that are there.
    `batches.parsed` makes publishes and dispatches of those of kind usage.
    Columns of other kinds than the row's are null; what may be missing has its default.
    """

    rows: pa.Table
    dead_letters: pa.Table


def parse_traffic(raw: Raw, settings: InputSettings) -> Parsed:
    """Good rows and dead letters. Columns that do not belong to a row's kind are ignored."""
    faults, of_kind = Faults(raw, INPUT.names), _Kinds(raw)
    time_us, seq, broker = read_place(raw, settings, faults)
    values: dict[str, pa.Array] = {}
    odd: list[tuple[str, Flags]] = [] if broker.is_odd is None else [("broker", broker.is_odd)]
    for column in COLUMNS:
        counts = of_kind.rows_with(column)
        if of_kind.have(column):
            read = _READ[column.sort](raw, column)
            faults.add(column.name, column.allowed, read.wrong & counts & ~of_kind.may_lack(column, raw))
            values[column.name] = read.values if counts.all() else pc.if_else(pa.array(counts), read.values, None)
            if read.is_odd is not None:
                odd.append((column.name, read.is_odd & counts))
        if column.sort is Sort.TOPIC:
            faults.add("kind", one_of(KIND_NAMES), of_kind.unknown)
    if FROM_US.name in values:
        faults.add(FROM_US.name, FROM_US.allowed, _wrong_intervals(time_us, values))
    for name, rows in odd:
        faults.add(name, "UTF-8", rows)
    if "entries" in values:
        values |= _with_defaults(values, of_kind)
    parsed = pa.table({"event_time_us": time_us, "seq": seq, "broker": broker.texts, "kind": of_kind.names, **values})
    bad = faults.bad()
    if not bad.any():
        return Parsed(parsed, DEAD_LETTERS.empty_table())
    reasons = ((place, faults.reason(place, _shown)) for place in np.flatnonzero(bad).tolist())
    return Parsed(parsed.filter(pa.array(~bad)), letters_of(raw, reasons))


class _Read(NamedTuple):
    """A column: its values, rows where they are wrong, rows that are not UTF-8."""

    values: pa.Array
    wrong: Flags
    is_odd: Flags | None = None


class _Kinds:
    """The kind of each row; one of no known kind is looked at as a publish."""

    def __init__(self, raw: Raw) -> None:
        self.names = names(raw, "kind").texts
        codes = pc.index_in(self.names, value_set=_KINDS)
        self.unknown = nulls(codes)
        self._of = codes.fill_null(0).to_numpy()
        self._present = np.unique(self._of).tolist()
        has_actions = INPUT_KINDS.index(CONNECTION) in self._present
        self._actions = names(raw, "action").texts if has_actions else None

    def have(self, column: Column) -> bool:
        """Whether a kind that is there has the column, with some action or with all."""
        return any(column in INPUT_KINDS[code].columns for code in self._present)

    def rows_with(self, column: Column) -> Flags:
        """Rows of the kinds, and actions, that have the column."""
        found = np.zeros(len(self._of), np.bool_)
        for code in self._present:
            kind = INPUT_KINDS[code]
            if column not in kind.columns:
                continue
            of_kind = self._of == code
            actions = [action for action, columns in kind.by_action.items() if column.name in columns]
            found |= of_kind & is_true(pc.is_in(self._actions, pa.array(actions))) if actions else of_kind
        return found

    def may_lack(self, column: Column, raw: Raw) -> Flags:
        """Rows without a value there, of kinds that do not need one."""
        codes = [code for code in self._present if column.name in INPUT_KINDS[code].may_lack]
        if not codes:
            return np.zeros(len(self._of), np.bool_)
        return np.isin(self._of, codes) & nulls(raw.column(column.name))


def _topic(raw: Raw, column: Column) -> _Read:
    read = names(raw, column.name)
    topics = read.texts.dictionary_encode()
    is_topic = pc.match_substring_regex(topics.dictionary, TOPIC)
    wrong = nulls(topics)
    if not pc.all(is_topic).as_py():
        wrong = wrong | ~is_true(is_topic.take(topics.indices))
    return _Read(read.texts, wrong, read.is_odd)


def _word(words: pa.Array, raw: Raw, column: Column) -> _Read:
    read = names(raw, column.name)
    return _Read(read.texts, ~is_true(pc.is_in(read.texts, words)), read.is_odd)


def _name(raw: Raw, column: Column) -> _Read:
    read: Names = names(raw, column.name)
    return _Read(read.texts, no_names(read), read.is_odd)


def _number(raw: Raw, column: Column) -> _Read:
    values = whole_numbers(raw.column(column.name))
    return _Read(values, _missing(raw, column, values) | is_true(pc.less(values, 0)))


def _flag(raw: Raw, column: Column) -> _Read:
    values = flags(raw.column(column.name))
    return _Read(values, _missing(raw, column, values))


def _missing(raw: Raw, column: Column, values: pa.Array) -> Flags:
    """Rows without a value where one has to be: in an optional column, where something else was got."""
    missing = nulls(values)
    return missing & ~nulls(raw.column(column.name)) if column.is_optional else missing


_READ: dict[Sort, Callable[[Raw, Column], _Read]] = {
    Sort.TOPIC: _topic,
    Sort.ACTION: partial(_word, _ACTIONS),
    Sort.DIRECTION: partial(_word, _DIRECTIONS),
    Sort.NAME: _name,
    Sort.NUMBER: _number,
    Sort.FLAG: _flag,
}


def _wrong_intervals(time_us: pa.Array, values: dict[str, pa.Array]) -> Flags:
    """Rows whose interval has a start, but a wrong one: after its end, over a day before it, or at it with traffic."""
    from_us = values[FROM_US.name]
    length_us = pc.subtract(time_us, from_us)
    came = pc.greater(pc.max_element_wise(values["messages"], values["bytes"]), 0)
    is_wrong = pc.or_(pc.less(length_us, 0), pc.greater(length_us, DAY_US))
    is_wrong = pc.or_kleene(is_wrong, pc.and_kleene(pc.equal(length_us, 0), came))
    return is_true(pc.and_(pc.greater_equal(from_us, 0), is_wrong))


def _with_defaults(values: dict[str, pa.Array], of_kind: _Kinds) -> dict[str, pa.Array]:
    """The optional columns with what null means: as many entries as messages, not caught up, not filtered."""
    filled = {}
    for column in (column for column in COLUMNS if column.is_optional):
        default = values["messages"] if column.sort is Sort.NUMBER else pa.scalar(False)
        counts = pa.array(of_kind.rows_with(column))
        filled[column.name] = pc.if_else(counts, pc.coalesce(values[column.name], default), None)
    return filled


def _shown(text: str | None) -> str:
    if text is None:
        return "null"
    return text if text.strip(" ") else f"'{text}'"
