"""What becomes of a row of traffic: its values, or the reason why it is a dead letter.

One table for text, one for typed columns.
"""

import json
from functools import partial

import pyarrow as pa
import pytest

from headgate.conf import InputSettings
from headgate.rows.batches import parsed
from headgate.rows.kinds import INPUT
from headgate.rows.raw import typed
from headgate.rows.traffic import parse_traffic
from unit.rows.lines import (
    ARROW_COLUMN,
    AT_9,
    COLUMN,
    NO_AMOUNT,
    NO_FLAG,
    NO_NAME,
    TEXT,
    TYPED,
    TYPES,
    VALUES,
    line,
)

FIRST = ("event_time_us", "seq", "broker", "kind")
COLUMNS = [*COLUMN, *ARROW_COLUMN]
PARSE = partial(parse_traffic, settings=InputSettings())


def of_lines(*lines):
    """The good rows and the dead letters of lines of JSON, by line from 1."""
    values = pa.array([line if isinstance(line, bytes) else line.encode() for line in lines], pa.binary())
    batch = pa.record_batch([values, pa.repeat("file", len(lines))], ["value", "source"])
    letters, rows = {}, []
    for part in parsed(PARSE, "json", INPUT, [batch]):
        letters |= {letter["offset"]: letter for letter in part.dead_letters.to_pylist()}
        rows += part.rows.to_pylist()
    good = [number for number in range(1, len(lines) + 1) if number not in letters]
    return dict(zip(good, rows, strict=True)), letters


def of_columns(**columns):
    """What becomes of rows with the columns given instead of those of TYPED; None leaves a column out."""
    count = max(len(column) for column in columns.values() if column is not None)
    rows = {name: pa.array([value] * count, TYPES.get(name, pa.string())) for name, value in TYPED.items()} | columns
    kept = {name: column for name, column in rows.items() if column is not None}
    whole = pa.StructArray.from_arrays(list(kept.values()), list(kept))
    places = pa.repeat("file", count), pa.array(range(count), pa.int64())
    good, bad = parse_traffic(typed(whole, *places), InputSettings())
    letters = {letter["offset"]: letter for letter in bad.to_pylist()}
    left = iter(good.to_pylist())
    return [letters[place] if place in letters else next(left) for place in range(count)]


@pytest.fixture(scope="module")
def together():
    return of_lines(*(text for text, _ in TEXT.values()))


@pytest.mark.parametrize(("number", "about"), list(enumerate(TEXT, 1)))
def test_a_line_of_json_says_the_same_alone_and_among_others(number, about, together):
    text, expected = TEXT[about]
    for place, (rows, letters) in ((1, of_lines(text)), (number, together)):
        if isinstance(expected, str):
            assert expected == letters[place]["reason"]
        else:
            wanted = VALUES | expected
            assert wanted == {name: rows[place].get(name) for name in wanted}


def test_a_dead_letter_has_the_line_as_it_was():
    lines = line()[:40], line(messages=-1), line(producer="?").encode().replace(b"?", b"\xff")
    _, letters = of_lines(*lines)
    assert [lines[0], lines[1], line(producer="\ufffd")] == [letter["raw"] for letter in letters.values()]


@pytest.mark.parametrize(("name", "kind", "values"), [*COLUMN.values(), *ARROW_COLUMN.values()], ids=COLUMNS)
def test_a_typed_column(name, kind, values):
    rows = of_columns(**{name: pa.array([value for value, _ in values], kind)})
    parsed_as = "event_time_us" if name == "event_time" else name
    assert [expected for _, expected in values] == [row.get("reason", row.get(parsed_as)) for row in rows]


def test_a_dispatch_of_typed_columns_has_a_subscription_of_utf_8():
    rows = of_columns(
        kind=pa.array(["dispatch"] * 4),
        subscription=pa.array([b"s", b"", None, b"a\xff"]),
        producer=pa.array([None, b"\xff", b"p", b"p"]),
    )
    expected = ["s", *(NO_NAME.format("subscription", got) for got in ("''", "null"))]
    expected.append("subscription: got a\ufffd, allowed is UTF-8")
    assert expected == [row.get("reason", row.get("subscription")) for row in rows]
    assert "producer" not in rows[0]


def test_texts_of_a_typed_column_may_not_be_utf_8():
    """Arrow takes them as they come from a file."""
    rows = of_columns(broker=pa.array([b"b", b"a\xff"]).view(pa.string()))
    assert ["b", "broker: got a\ufffd, allowed is UTF-8"] == [row.get("reason", row.get("broker")) for row in rows]
    flags = pa.array([b" true ", b"\xff", b"false"]).view(pa.string())
    rows = of_columns(caught_up=flags, kind=pa.array(["dispatch"] * 3), subscription=pa.array(["s"] * 3))
    expected = [True, NO_FLAG.format("caught_up", "\ufffd"), False]
    assert expected == [row.get("reason", row.get("caught_up")) for row in rows]


@pytest.mark.parametrize("kind", [pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())])
def test_flags_as_text_of_any_type(kind):
    flags = pa.array(["true", "maybe", "false"]).cast(kind)
    rows = of_columns(caught_up=flags, kind=pa.array(["dispatch"] * 3), subscription=pa.array(["s"] * 3))
    expected = [True, NO_FLAG.format("caught_up", "maybe"), False]
    assert expected == [row.get("reason", row.get("caught_up")) for row in rows]


def test_other_columns_whatever_their_names_are_kept_in_dead_letters_alone():
    odd = {name: pa.array([[1], [2]]) for name in ("user.name", "a`b", "raw", "reason", "source", "tags")}
    good, bad = of_columns(messages=pa.array([1, -1]), **odd)
    assert not odd.keys() & good.keys()
    assert NO_AMOUNT.format(-1) == bad["reason"]
    expected = {"messages": -1, **{name: [2] for name in odd}, "event_time": "2026-01-05T09:00:00.000000Z"}
    assert expected.items() <= json.loads(bad["raw"]).items()


def test_a_dead_letter_has_the_microseconds_of_its_time():
    times = pa.array([AT_9 + 123_456], pa.int64()).cast(TYPES["event_time"])
    (row,) = of_columns(event_time=times, messages=pa.array([None], pa.int64()))
    assert "2026-01-05T09:00:00.123456Z" == json.loads(row["raw"])["event_time"]


def test_names_of_columns_in_capitals_are_the_same_columns():
    assert ["b"] == [row["broker"] for row in of_columns(BROKER=pa.array(["b"]), broker=None)]


def test_a_missing_column_is_named_in_every_row():
    (row,) = of_columns(bytes=None, kind=None, seq=pa.array([1]))
    assert row["reason"].startswith("columns missing: kind, bytes; found: event_time, seq, broker, topic, ")


def test_rows_have_the_columns_of_the_kinds_that_are_there():
    (row,) = of_columns(kind=pa.array(["unload"]), bundle=pa.array(["b"]), duration_ms=pa.array([1]))
    assert ["event_time_us", "seq", "broker", "kind", "bundle", "duration_ms"] == list(row)


def test_a_kind_has_all_its_columns_also_those_of_actions_that_are_not_there():
    (row,) = of_columns(kind=pa.array(["connection"]), action=pa.array(["writable"]))
    of_others = dict.fromkeys(("io_thread", "bytes", "command"))
    assert of_others | {"connection": "connection-1", "action": "writable"} == {
        name: value for name, value in row.items() if name not in FIRST
    }
