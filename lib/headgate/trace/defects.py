"""Rows that are spoiled on purpose, each with exactly one defect, so that the bad rows of a trace can be counted."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headgate.trace.draws import Floats

Defects = npt.NDArray[np.int64]

TEXT_DEFECTS = (
    "malformed",
    "wrong_type",
    "negative",
    "huge",
    "null",
    "unknown_kind",
    "time_without_zone",
    "time_out_of_range",
)
TYPED_DEFECTS = ("null", "negative", "unknown_kind", "time_out_of_range")
GOOD = -1

NULLED = ("event_time", "broker", "topic", "kind", "producer", "connection", "messages", "bytes")
INSTEAD = {
    "dispatch": {"producer": "subscription", "connection": "subscription"},
    "subscribe": {"producer": "client", "connection": "consumer", "messages": "consumer_id", "bytes": "consumer_id"},
    "unload": {
        "topic": "bundle",
        "producer": "bundle",
        "connection": "bundle",
        "messages": "duration_ms",
        "bytes": "duration_ms",
    },
    "connection": dict.fromkeys(("topic", "producer"), "action") | dict.fromkeys(("messages", "bytes"), "event_time"),
}
"""The column of a kind that has a defect in place of a publish's column."""
AMOUNTS = ("messages", "bytes")
UNKNOWN_KIND = "teleport"
WRONG_TYPE = "many"
NEGATIVE = -1
HUGE = "99999999999999999999"  # over 64 bits
OUT_OF_RANGE = datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)  # its nanoseconds are over 64 bits
OUT_OF_RANGE_TEXT = "9999-12-31T23:59:59.999999Z"
MALFORMED_LENGTH = 40  # inside the second column of every format


def chosen_defects(spoil: Floats, bad_share: float, kinds: Sequence[str]) -> Defects:
    """The number in `kinds` of each row's defect, GOOD for the others; all kinds are equally likely."""
    if bad_share == 0:
        return np.full(len(spoil), GOOD, np.int64)
    within = np.minimum((spoil / bad_share * len(kinds)).astype(np.int64), len(kinds) - 1)
    return np.where(spoil < bad_share, within, GOOD)


def count_defects(defects: Defects, kinds: Sequence[str]) -> dict[str, int]:
    """How many rows have each defect; every kind has an entry."""
    counts = np.bincount(defects[defects != GOOD], minlength=len(kinds))
    return {kind: int(count) for kind, count in zip(kinds, counts, strict=True)}


def spoil_table(table: pa.Table, defects: Defects) -> pa.Table:
    """The table with TYPED_DEFECTS where `defects` says so. The schema stays."""
    if (defects == GOOD).all():
        return table

    def replace(kind: str, columns: Sequence[str], value: object) -> None:
        nonlocal table
        for column, chosen in _spread(table, defects == TYPED_DEFECTS.index(kind), columns):
            place = table.schema.get_field_index(column)
            field = table.schema.field(place)
            table = table.set_column(place, field, pc.if_else(chosen, pa.scalar(value, field.type), table[column]))

    replace("null", NULLED, None)
    replace("negative", AMOUNTS, NEGATIVE)
    replace("unknown_kind", ("kind",), UNKNOWN_KIND)
    replace("time_out_of_range", ("event_time",), OUT_OF_RANGE)
    return table


def spoil_text(
    table: pa.Table, columns: Mapping[str, pa.Array], defects: Defects, quote: Callable[[str], str], null: str
) -> dict[str, pa.Array]:
    """Encoded columns with TEXT_DEFECTS where `defects` says so, except "malformed", which is a property of the line.

    `quote` encodes a string and `null` is an absent value, both as the format writes them.
    """
    spoiled = dict(columns)
    if (defects == GOOD).all():
        return spoiled

    def replace(kind: str, names: Sequence[str], value: pa.Array | str) -> None:
        for name, chosen in _spread(table, defects == TEXT_DEFECTS.index(kind), names):
            spoiled[name] = pc.if_else(chosen, value, spoiled[name])

    replace("wrong_type", AMOUNTS, quote(WRONG_TYPE))
    replace("negative", AMOUNTS, str(NEGATIVE))
    replace("huge", AMOUNTS, HUGE)
    replace("null", NULLED, null)
    replace("unknown_kind", ("kind",), quote(UNKNOWN_KIND))
    replace("time_without_zone", ("event_time",), pc.replace_substring(columns["event_time"], "Z", ""))
    replace("time_out_of_range", ("event_time",), quote(OUT_OF_RANGE_TEXT))
    return spoiled


def cut_malformed(lines: pa.Array, defects: Defects) -> pa.Array:
    """Lines cut short where the defect is "malformed"."""
    chosen = defects == TEXT_DEFECTS.index("malformed")
    if not chosen.any():
        return lines
    return pc.if_else(pa.array(chosen), pc.utf8_slice_codeunits(lines, 0, MALFORMED_LENGTH), lines)


def _spread(table: pa.Table, chosen: npt.NDArray[np.bool_], columns: Sequence[str]) -> list[tuple[str, pa.Array]]:
    """Which of the chosen rows get the defect in which column: the columns take turns by seq.

    Where it would be in a column that the row's kind has not, the row has it in one of its own.
    """
    turn = table["seq"].to_numpy() % len(columns)
    spread = [(column, chosen & (turn == place)) for place, column in enumerate(columns)]
    for kind, instead in INSTEAD.items():
        of_kind = pc.fill_null(pc.equal(table["kind"], kind), fill_value=False).to_numpy()
        if of_kind.any():
            moved = [(instead[column], mask & of_kind) for column, mask in spread if column in instead]
            spread = [(column, mask & ~of_kind) if column in instead else (column, mask) for column, mask in spread]
            spread += moved
    return [(column, pa.array(mask)) for column, mask in spread]
