"""What becomes of a row: its values, or the reason why it is a dead letter. A table for text, one for typed columns."""

import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from headgate.conf import InputSettings
from headgate.errors import InputError
from headgate.spark.parse import parse
from headgate.spark.sources import _typed, read_raw
from headgate.throttle.faults import dead_letter, faults_of
from integration.lines import AT_9, GOOD, NO_AMOUNT, NO_KIND, NO_NAME, NO_TIME, OUT_OF_SPAN, TEXT, VALUES, line

TYPES = {"event_time": pa.timestamp("us", "UTC")} | dict.fromkeys(("seq", "messages", "bytes"), pa.int64())
TYPED = GOOD | {"event_time": datetime(2026, 1, 5, 9, tzinfo=UTC)}

# What the column is about, its name, its Arrow type, and by value what becomes of it.
COLUMN: dict[str, tuple[str, pa.DataType, list[tuple[Any, Any]]]] = {
    "32 bits": ("messages", pa.int32(), [(5, 5), (-1, NO_AMOUNT.format(-1)), (None, NO_AMOUNT.format("null"))]),
    "64 bits without sign": ("messages", pa.uint64(), [(5, 5), (2**64 - 1, NO_AMOUNT.format(2**64 - 1))]),
    "doubles": (
        "messages",
        pa.float64(),
        [
            (5.0, 5),
            (5.5, NO_AMOUNT.format("5.5")),
            (float("nan"), NO_AMOUNT.format("NaN")),
            (float("inf"), NO_AMOUNT.format("Infinity")),
            (1e300, NO_AMOUNT.format("1.0E300")),
            (-1.0, NO_AMOUNT.format("-1.0")),
        ],
    ),
    "floats": ("messages", pa.float32(), [(5.0, 5), (0.5, NO_AMOUNT.format("0.5"))]),
    "decimals": (
        "messages",
        pa.decimal128(38, 2),
        [
            (Decimal("5.00"), 5),
            (Decimal("5.50"), NO_AMOUNT.format("5.50")),
            (Decimal(10) ** 30, NO_AMOUNT.format(f"{10**30}.00")),
        ],
    ),
    "booleans": ("messages", pa.bool_(), [(True, NO_AMOUNT.format("true"))]),
    "numbers as text": ("messages", pa.string(), [("5", 5), ("many", NO_AMOUNT.format("many"))]),
    "nulls alone": ("messages", pa.null(), [(None, NO_AMOUNT.format("null"))]),
    "times": (
        "event_time",
        pa.timestamp("us", "UTC"),
        [
            (datetime(2026, 1, 5, 9, 0, 0, 1, UTC), AT_9 + 1),
            (datetime(9999, 12, 31, tzinfo=UTC), OUT_OF_SPAN.format("9999-12-31 00:00:00")),
            (None, NO_TIME.format("null")),
        ],
    ),
    "times without a zone are UTC": ("event_time", pa.timestamp("us"), [(datetime(2026, 1, 5, 9), AT_9)]),  # noqa: DTZ001
    "milliseconds": ("event_time", pa.timestamp("ms", "UTC"), [(datetime(2026, 1, 5, 9, tzinfo=UTC), AT_9)]),
    "longs are microseconds": ("event_time", pa.int64(), [(AT_9, AT_9), (5, OUT_OF_SPAN.format(5))]),
    "times as text": ("event_time", pa.string(), [("2026-01-05T09:00:00Z", AT_9), ("now", NO_TIME.format("now"))]),
    "days": ("event_time", pa.date32(), [(date(2026, 1, 5), NO_TIME.format("2026-01-05"))]),
    "names": ("broker", pa.string(), [("b", "b"), ("", NO_NAME.format("broker", "''"))]),
    "names as bytes": (
        "broker",
        pa.binary(),
        [(b"b", "b"), (b"a\xff", "broker: got a\ufffd, allowed is UTF-8")],
    ),
    "names as numbers": ("broker", pa.int64(), [(7, "7")]),
    "names in braces": ("broker", pa.string(), [("{x}", "{x}"), ('{"id": 7}', '{"id": 7}'), ("[x]", "[x]")]),
    "subscriptions of publishes are not looked at": (
        "subscription",
        pa.binary(),
        [(None, None), (b"s", None), (b"a\xff", None)],
    ),
    "structs for subscriptions of publishes": ("subscription", pa.struct({"id": pa.int64()}), [({"id": 7}, None)]),
    "structs for names": (
        "broker",
        pa.struct({"id": pa.int64()}),
        [({"id": 7}, NO_NAME.format("broker", "{7}")), (None, NO_NAME.format("broker", "null"))],
    ),
    "lists for names": ("producer", pa.list_(pa.string()), [(["a"], NO_NAME.format("producer", "[a]"))]),
    "maps for names": (
        "connection",
        pa.map_(pa.string(), pa.int64()),
        [([("id", 7)], NO_NAME.format("connection", "{id -> 7}"))],
    ),
}


@pytest.fixture(scope="module")
def from_text(spark_of_all_tests: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Row]:
    folder = tmp_path_factory.mktemp("text")
    lines = [text if isinstance(text, bytes) else text.encode() for text, _ in TEXT.values()]
    (folder / "rows.json").write_bytes(b"\n".join(lines))
    rows = parse(read_raw(spark_of_all_tests, InputSettings(), str(folder), "json"), InputSettings())
    query = rows.writeStream.format("memory").queryName("from_text").trigger(availableNow=True).start()
    query.awaitTermination()
    return dict(zip(TEXT, spark_of_all_tests.table("from_text").collect(), strict=True))


def letter(row: Row) -> dict[str, Any]:
    """What the dead letter of a bad row has; empty for a good row."""
    return {} if row.bad is None else dead_letter(faults_of(InputSettings()), json.loads(row.bad))


def became(row: Row, *columns: str) -> Any:
    return letter(row).get("reason") or {name: row[name] for name in columns}


@pytest.mark.parametrize("about", TEXT)
def test_a_line_of_json(about: str, from_text: dict[str, Row]) -> None:
    _, expected = TEXT[about]
    row = from_text[about]
    if isinstance(expected, dict):
        expected = VALUES | expected
    assert expected == became(row, *VALUES)


def test_a_dead_letter_has_the_line_as_it_was(from_text: dict[str, Row]) -> None:
    expected = [line()[:40], line(messages=-1), line(producer="\ufffd")]
    assert expected == [
        letter(from_text[about])["raw"] for about in ("a cut line", "a negative amount", "bytes that are not UTF-8")
    ]


def parquet_file(folder: Path, columns: dict[str, pa.Array | None]) -> str:
    """A file with the columns given instead of those of TYPED; None leaves a column out."""
    count = max(len(column) for column in columns.values() if column is not None)
    rows = {name: pa.array([value] * count, TYPES.get(name, pa.string())) for name, value in TYPED.items()} | columns
    pq.write_table(
        pa.table({name: column for name, column in rows.items() if column is not None}), folder / "a.parquet"
    )
    return str(folder)


@pytest.fixture
def from_columns(spark: SparkSession, tmp_path: Path) -> Callable[..., list[Row]]:
    """What becomes of the rows of a Parquet file. As a batch: a stream's start takes longer than its rows."""

    def parsed(**columns: pa.Array | None) -> list[Row]:
        frame = spark.read.parquet(parquet_file(tmp_path, columns))
        raw = _typed(frame, F.col("_metadata.file_path"), F.col("_metadata.row_index"))
        return parse(raw, InputSettings()).collect()

    return parsed


@pytest.mark.parametrize("about", COLUMN)
def test_a_typed_column(about: str, from_columns: Callable[..., list[Row]]) -> None:
    name, kind, values = COLUMN[about]
    rows = from_columns(**{name: pa.array([value for value, _ in values], kind)})
    parsed = "event_time_us" if name == "event_time" else name
    assert [expected for _, expected in values] == [letter(row).get("reason", row[parsed]) for row in rows]


def test_a_dispatch_of_typed_columns_has_a_subscription_of_utf_8(from_columns: Callable[..., list[Row]]) -> None:
    rows = from_columns(
        kind=pa.array(["dispatch"] * 4),
        subscription=pa.array([b"s", b"", None, b"a\xff"]),
        producer=pa.array([None, b"\xff", b"p", b"p"]),
    )
    expected = ["s", *(NO_NAME.format("subscription", got) for got in ("''", "null"))]
    expected.append("subscription: got a\ufffd, allowed is UTF-8")
    assert expected == [letter(row).get("reason", row.subscription) for row in rows]
    assert [None] * 4 == [row.producer for row in rows]


def test_other_columns_whatever_their_names_are_kept_in_dead_letters_alone(
    from_columns: Callable[..., list[Row]],
) -> None:
    odd = {name: pa.array([[1], [2]]) for name in ("user.name", "a`b", "raw", "reason", "source", "tags")}
    rows = from_columns(messages=pa.array([1, -1]), **odd)
    assert [None, NO_AMOUNT.format(-1)] == [letter(row).get("reason") for row in rows]
    expected = {"messages": -1, **{name: [2] for name in odd}, "event_time": "2026-01-05T09:00:00.000000Z"}
    assert expected.items() <= json.loads(letter(rows[1])["raw"]).items()


def test_a_dead_letter_has_the_microseconds_of_its_time(from_columns: Callable[..., list[Row]]) -> None:
    times = pa.array([AT_9 + 123_456], pa.int64()).cast(TYPES["event_time"])
    (row,) = from_columns(event_time=times, messages=pa.array([None], pa.int64()))
    assert "2026-01-05T09:00:00.123456Z" == json.loads(letter(row)["raw"])["event_time"]


def test_names_of_columns_in_capitals_are_the_same_columns(from_columns: Callable[..., list[Row]]) -> None:
    rows = from_columns(BROKER=pa.array(["b"]), broker=None)
    assert [(None, "b")] == [(row.bad, row.broker) for row in rows]


def test_a_missing_column_is_null_in_every_row(from_columns: Callable[..., list[Row]]) -> None:
    (row,) = from_columns(bytes=None, kind=None, seq=pa.array([1]))
    assert f"{NO_KIND.format('null')}; {NO_AMOUNT.format('null').replace('messages', 'bytes')}" == letter(row)["reason"]


@pytest.mark.parametrize(
    ("about", "columns", "told"),
    [
        ("nanoseconds", {"event_time": pa.array([1], pa.timestamp("ns", "UTC"))}, "NANOS.*write its times in microsec"),
        ("a column twice", {"Messages": pa.array([1])}, "`messages` already exists"),
    ],
)
def test_columns_that_spark_cannot_read_are_refused_at_the_start(about, columns, told, spark, tmp_path) -> None:
    with pytest.raises(InputError, match=rf"^--input: .* cannot be read as parquet: .*{told}"):
        read_raw(spark, InputSettings(), parquet_file(tmp_path, columns), "parquet")
