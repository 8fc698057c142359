"""Spark hands the parser the rows that the same files give without it: the rules of the parser are tests/unit/rows'."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pyspark.sql import DataFrame, SparkSession

from headgate.arrow.blocks import decode
from headgate.conf import InputSettings
from headgate.errors import InputError
from headgate.rows.files import input_files, parsed_files
from headgate.rows.kinds import INPUT
from headgate.rows.traffic import parse_traffic
from headgate.spark.input.sources import read_raw
from headgate.spark.operator import PACKED
from headgate.throttle.routing import Routing, pack, pack_input
from unit.rows.lines import COLUMN, TEXT, TYPED, TYPES

SETTINGS = InputSettings()
ROUTING = Routing(slots=1)


def rows_in(batches: list[pa.RecordBatch]) -> list[str]:
    """The rows of all kinds and the dead letters of packed batches, whatever their order."""
    blocks = [row for batch in batches for row in batch.to_pylist() if row["kind"] != "ticks"]
    return sorted(repr((row["kind"], one)) for row in blocks for one in decode(row["block"]).to_pylist())


def through_spark(spark: SparkSession, path: Path, format_: str) -> list[str]:
    raw: DataFrame = read_raw(spark, SETTINGS, str(path), format_, once=True)
    packed = raw.mapInArrow(partial(pack_input, format_, SETTINGS, ROUTING), PACKED)
    return rows_in(packed.toArrow().to_batches())


def without(path: Path, format_: str) -> list[str]:
    files = input_files(str(path), format_)
    return rows_in(list(pack(ROUTING, parsed_files(files, format_, INPUT, partial(parse_traffic, settings=SETTINGS)))))


def lines(folder: Path) -> Path:
    texts = [text if isinstance(text, bytes) else text.encode() for text, _ in TEXT.values()]
    (folder / "a b.json").write_bytes(b"\xef\xbb\xbf" + b"\r\n".join([*texts, b" \t", b"", *texts[:3]]))
    (folder / "b.json").write_bytes(b"\r".join(texts[:5]))
    return folder


def records(folder: Path) -> Path:
    header, rows = (
        list(INPUT.names),
        [json.loads(text) for text in (one for one, _ in TEXT.values()) if is_object(text)],
    )
    fields = [[str(row.get(name, "")) for name in header] for row in rows]
    quoted = [",".join('"{}"'.format(field.replace('"', '""')) for field in row) for row in fields]
    plain = [",".join(row) for row in fields]
    text = "\n".join([",".join(header), "", *quoted, *plain, "x", '"', f"{plain[0]},"])
    (folder / "a.csv").write_text("\ufeff" + text, newline="")
    (folder / "b.csv").write_bytes(b"seq,broker\n1,b\xff\n2,c")
    (folder / "c.csv").write_text("no,header\n1,2")
    return folder


def is_object(text: str | bytes) -> bool:
    try:
        return isinstance(text, str) and isinstance(json.loads(text), dict) and "\\ud" not in text.lower()
    except ValueError:
        return False


def odd_tables() -> Iterator[pa.Table]:
    """Tables with every odd column, several in each."""
    by_name: dict[str, list[pa.Array]] = defaultdict(list)
    for name, kind, values in COLUMN.values():
        odd = [value for value, _ in values]
        by_name[name].append(pa.array([odd[at % len(odd)] for at in range(8)], kind))
    good = {key: pa.array([value] * 8, TYPES.get(key, pa.string())) for key, value in TYPED.items()}
    for odd in zip_longest(*by_name.values()):
        yield pa.table(good | {name: column for name, column in zip(by_name, odd, strict=True) if column is not None})


@pytest.mark.parametrize(("format_", "write"), [("json", lines), ("csv", records)])
def test_lines(format_: str, write: Callable[[Path], Path], spark: SparkSession, tmp_path: Path) -> None:
    expected = without(write(tmp_path), format_)
    assert 10 < sum("dead_letters" in row for row in expected) < len(expected) - 10
    assert expected == through_spark(spark, tmp_path, format_)


@pytest.mark.parametrize("format_", ["parquet", pytest.param("delta", marks=pytest.mark.long)])
def test_typed_columns(format_: str, spark: SparkSession, tmp_path: Path) -> None:
    for number, table in enumerate(odd_tables()):
        place = tmp_path / str(number)
        if format_ == "parquet":
            place.mkdir()
            pq.write_table(table, place / "part.parquet")
        elif {pa.uint64(), pa.null()} & set(table.schema.types):
            continue  # Delta has no such types
        else:
            write_deltalake(str(place), table)
        assert without(place, format_) == through_spark(spark, place, format_)


@pytest.mark.parametrize(
    ("about", "odd", "told"),
    [
        ("nanoseconds", {"event_time": pa.array([1], pa.timestamp("ns", "UTC"))}, "NANOS.*write its times in microsec"),
        ("a column twice", {"Messages": pa.array([1])}, "`messages` already exists"),
    ],
)
def test_columns_that_spark_cannot_read_are_refused_at_the_start(
    about: str, odd: dict[str, Any], told: str, spark: SparkSession, tmp_path: Path
) -> None:
    rows = {key: pa.array([value], TYPES.get(key, pa.string())) for key, value in TYPED.items()}
    pq.write_table(pa.table(rows | odd), tmp_path / "a.parquet")
    with pytest.raises(InputError, match=rf"^--input: .* cannot be read as parquet: .*{told}"):
        read_raw(spark, SETTINGS, str(tmp_path), "parquet")
