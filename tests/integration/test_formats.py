"""Every input format: each row of it is either accounted for or a dead letter that says where it stands."""

import gzip
import json
import os
import re
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlparse

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from headgate.conf import InputSettings
from headgate.errors import InputError
from headgate.spark.input.batch_files import planned_files, unreadable_files
from headgate.spark.input.sources import read_raw
from headgate.trace import SCHEMA, TraceSummary, generate_file, write_trace
from headgate.trace.defects import TEXT_DEFECTS, TYPED_DEFECTS
from integration.engines import Engine
from integration.runs import SMALL, Run, conf_in, results_of, rows_of, run_once, settings, total

SPOILED = replace(SMALL, bad_share=0.2)
SPLITTING = {"spark__sql__files__maxPartitionBytes": 3000, "spark__sql__files__openCostInBytes": 1}
"""Settings with which Spark cuts files up where it may."""
FORMATS = ("json", "csv", "parquet", "delta")
TEXT = ("json", "csv")

# What the reason says for each defect, whichever format it is in.
REASONS = {
    "malformed": r"the line is not a JSON object|the line has \d fields, the header of its file has 9",
    "wrong_type": ": got many, allowed is a whole number",
    "negative": ": got -1, allowed is a whole number",
    "huge": ": got 99999999999999999999, allowed is a whole number",
    "null": ": got null, allowed is ",
    "unknown_kind": "kind: got teleport, allowed is publish, dispatch, subscribe, unload, connection or usage",
    "time_without_zone": r"event_time: got 2026-01-05T[0-9:.]+, allowed is ISO 8601 with a zone",
    "time_out_of_range": r"event_time: got 9999-12-31.*, allowed is 2000-01-01T00:00:00\+00:00 up to 2100-01-01",
}


class Spoiled(NamedTuple):
    trace: Path
    summary: TraceSummary
    output: Path


@pytest.fixture(scope="module")
def spoiled(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Spoiled]:
    """The spoiled trace in a format, run once."""
    done: dict[str, Spoiled] = {}

    def run(format_: str) -> Spoiled:
        if format_ not in done:
            folder = tmp_path_factory.mktemp(format_)
            trace = folder / "trace"
            summary = write_trace(SPOILED, trace, format_)
            done[format_] = Spoiled(
                trace, summary, engine.throttle(conf_in(folder / "conf"), trace, folder / "out", format_).output
            )
        return done[format_]

    return run


def there(letter: dict[str, Any]) -> Any:
    """What stands where a dead letter says that its row is."""
    url = urlparse(letter["source"])
    if url.path.endswith(".parquet"):
        return as_json(pq.read_table(url.path).slice(letter["offset"], 1).to_pylist()[0])
    content = Path(url.path).read_bytes()
    lines = content.split(b"\n")
    if url.fragment:  # a part of a file begins with the first line after its first byte
        lines = content[int(url.fragment.removeprefix("byte=")) :].split(b"\n")[1:]
    return lines[letter["offset"] - 1].decode()


def as_json(row: dict[str, Any]) -> dict[str, Any]:
    return {name: f"{v:%Y-%m-%dT%H:%M:%S.%fZ}" if isinstance(v, datetime) else v for name, v in row.items()}


@pytest.mark.parametrize("format_", FORMATS)
def test_every_row_is_accounted_for_or_a_dead_letter(format_: str, spoiled: Callable[[str], Spoiled]) -> None:
    _, summary, output = spoiled(format_)
    expected = (summary.rows, summary.bad.total())
    letters = len(rows_of(output, "dead_letters"))
    assert expected == (total(output, "publishes") + letters, letters)


@pytest.mark.parametrize("format_", FORMATS)
def test_every_defect_is_named_in_its_reason(format_: str, spoiled: Callable[[str], Spoiled]) -> None:
    _, summary, output = spoiled(format_)
    reasons = [row["reason"] for row in rows_of(output, "dead_letters")]
    found = [[name for name, sign in REASONS.items() if re.search(sign, reason)] for reason in reasons]
    assert {1} == {len(names) for names in found}
    expected = dict.fromkeys(TEXT_DEFECTS if format_ in TEXT else TYPED_DEFECTS, True)
    assert expected == {name: count > 0 for name, count in summary.bad.items()}
    assert summary.bad == Counter(name for names in found for name in names)


@pytest.mark.parametrize("format_", ["json", "csv", "parquet"])
def test_every_dead_letter_leads_back_to_its_row(format_: str, spoiled: Callable[[str], Spoiled]) -> None:
    lead_back(rows_of(spoiled(format_).output, "dead_letters"), format_)


def lead_back(letters: list[dict[str, Any]], format_: str) -> None:
    raw = [letter["raw"] if format_ in TEXT else json.loads(letter["raw"]) for letter in letters]
    assert [there(letter) for letter in letters] == raw


def test_json_files_that_spark_reads_in_parts_give_the_rows_of_whole_ones(
    spark: SparkSession, spoiled: Callable[[str], Spoiled], tmp_path: Path
) -> None:
    trace, _, whole = spoiled("json")
    with settings(spark, **SPLITTING):
        run_once(spark, conf_in(tmp_path / "conf"), trace, tmp_path / "out")
    letters = rows_of(tmp_path / "out", "dead_letters")
    lead_back(letters, "json")
    assert any("#byte=" in letter["source"] for letter in letters)
    assert results_of(whole) == results_of(tmp_path / "out")
    assert sorted(letter["raw"] for letter in letters) == sorted(row["raw"] for row in rows_of(whole, "dead_letters"))


def test_dead_letters_of_a_delta_table_hold_the_whole_row(spoiled: Callable[[str], Spoiled]) -> None:
    trace, _, output = spoiled("delta")
    rows = {row["seq"]: as_json(row) for row in DeltaTable(trace).to_pyarrow_table().to_pylist()}
    letters = rows_of(output, "dead_letters")
    raw = [json.loads(letter["raw"]) for letter in letters]
    assert [rows[row["seq"]] for row in raw] == raw
    assert {(str(trace), None)} == {(letter["source"], letter["offset"]) for letter in letters}


@pytest.mark.parametrize("format_", ["csv", "parquet", "delta"])
def test_the_good_rows_give_the_same_in_every_format(format_: str, spoiled: Callable[[str], Spoiled]) -> None:
    expected = results_of(spoiled("json").output)
    assert len(expected["marks"]) > 100
    assert expected == results_of(spoiled(format_).output)


def lines_of(index: int, format_: str, folder: Path) -> list[str]:
    """File `index` of the good trace as text."""
    if not folder.exists():
        write_trace(SMALL, folder, format_)
    return (folder / f"part-{index:05d}.{format_}").read_text().splitlines()


def test_json_files_of_odd_shapes_lose_no_line(each_engine: Engine, tmp_path: Path) -> None:
    lines = [lines_of(index, "json", tmp_path / "trace") for index in range(4)]
    odd = tmp_path / "odd"
    odd.mkdir()
    (odd / "empty.json").write_text("")
    (odd / "blank.json").write_text("\n  \n\t\n" + "\n\n".join(lines[0]) + "\n\noops\n\n")
    (odd / "windows.json").write_bytes(("\ufeff" + "\r\n".join(lines[1])).encode())
    (odd / "packed.json.gz").write_bytes(gzip.compress("\n".join(lines[2]).encode()))
    (odd / "other.txt").write_text("\n".join(lines[3]))
    (odd / "_hidden.json").write_text("oops")
    conf = conf_in(tmp_path / "conf", "[input]\nhold_back_ms = 60000\n")
    output = each_engine.throttle(conf, odd, tmp_path / "out").output
    expected = [("oops", 2 + 2 * len(lines[0]) + 2)]
    assert expected == [(row["raw"], row["offset"]) for row in rows_of(output, "dead_letters")]
    assert sum(map(len, lines)) == total(output, "publishes")


def test_csv_files_of_odd_shapes_lose_no_line(each_engine: Engine, tmp_path: Path) -> None:
    rows = [[line.split(",") for line in lines_of(index, "csv", tmp_path / "trace")[1:]] for index in range(5)]
    names = list(SCHEMA.names)
    odd = tmp_path / "odd"
    odd.mkdir()

    def write(name: str, *lines: str, end: str = "\n") -> None:
        (odd / name).write_bytes(end.join(lines).encode())

    write("empty.csv")
    write("header.csv", ",".join(names) + "\n")
    write("reordered.csv", ",".join(names[::-1]), *(",".join(row[::-1]) for row in rows[0]))
    quoted = [",".join(f'"{field}"' for field in row) for row in (names, *rows[1])]
    write("quoted.csv", "\ufeff" + quoted[0], *quoted[1:], end="\r\n")
    write("blank.csv", "", " ", ",".join(names), "", *(",".join(row) + "\n" for row in rows[2]), ",".join(["x"] * 10))
    write(
        "more.csv", ",".join([" region", *(f" {name}" for name in names)]), *(",".join(['"e,u"', *r]) for r in rows[3])
    )
    write("headless.csv", *(",".join(row) for row in rows[4]))
    write("open.csv", ",".join(names), ",".join([*rows[0][0][:-1], '"3']))
    conf = conf_in(tmp_path / "conf", "[input]\nhold_back_ms = 60000\n")
    output = each_engine.throttle(conf, odd, tmp_path / "out", "csv").output
    letters = [(Path(row["source"]).name, row["offset"], row["reason"][:50]) for row in rows_of(output, "dead_letters")]
    expected = [
        ("blank.csv", 4 + 2 * len(rows[2]) + 1, "the line has 10 fields, the header of its file has"),
        *(
            ("headless.csv", 1 + line, "the file does not begin with a header that names c")
            for line in range(len(rows[4]))
        ),
        ("open.csv", 2, "the line is not CSV: unexpected end of data"),
    ]
    assert expected == sorted(letters)
    assert sum(map(len, rows[:4])) == total(output, "publishes")


def test_a_batch_of_bad_rows_alone_has_no_line_numbers_in_a_delta_table(each_engine: Engine, tmp_path: Path) -> None:
    (bad,) = generate_file(replace(SMALL, files=SMALL.events), 0).to_pylist()
    write_deltalake(tmp_path / "table", pa.Table.from_pylist([bad | {"kind": "subscribe"}], SCHEMA))
    output = each_engine.throttle(conf_in(tmp_path / "conf"), tmp_path / "table", tmp_path / "out", "delta").output
    assert [(str(tmp_path / "table"), None)] == [
        (row["source"], row["offset"]) for row in rows_of(output, "dead_letters")
    ]


class TestUnreadableFiles:
    """Damaged files are told of in dead letters; the others, and what stands before the damage, count."""

    def test_damaged_parquet_files_do_not_stop_the_stream(self, each_engine: Engine, tmp_path: Path) -> None:
        trace = tmp_path / "trace"
        write_trace(SMALL, trace, "parquet")
        files = sorted(trace.iterdir())
        rows = {file.name: len(pq.read_table(file)) for file in files}
        damage(files[1], lambda file: file.write_bytes(b"no Parquet, and longer than its magic number"))
        damage(files[2], lambda file: file.write_bytes(file.read_bytes()[:-100]))
        conf = conf_in(tmp_path / "conf", "[input]\nmax_files_per_trigger = 3\n")
        output = each_engine.throttle(conf, trace, tmp_path / "out", "parquet").output
        letters = {Path(row["source"]).name: row["reason"] for row in rows_of(output, "dead_letters")}
        assert [file.name for file in files[1:3]] == sorted(letters)
        assert {"the file cannot be read to its end; rows that are not read are lost"} == {
            reason.partition(": ")[0] for reason in letters.values()
        }
        assert sum(rows[files[index].name] for index in (0, 3, 4, 5, 6)) == total(output, "publishes")

    def test_a_damaged_first_file_does_not_keep_the_job_from_starting(
        self, spark: SparkSession, tmp_path: Path
    ) -> None:
        write_trace(SMALL, tmp_path / "trace", "parquet")
        first = tmp_path / "trace" / "part-00000.parquet"
        rows = len(pq.read_table(first))
        damage(first, lambda file: file.write_bytes(b"no Parquet, and longer than its magic number"))
        output = run_once(spark, conf_in(tmp_path / "conf"), tmp_path / "trace", tmp_path / "out", "parquet")
        (letter,) = rows_of(output, "dead_letters")
        assert (first.name, SMALL.events - rows) == (Path(letter["source"]).name, total(output, "publishes"))

    def test_spark_leaves_out_a_file_of_another_type_and_takes_the_row_groups_before_a_bad_page(
        self, spark: SparkSession, tmp_path: Path
    ) -> None:
        write_trace(SMALL, tmp_path / "trace", "parquet")
        damaged = typed, paged = [tmp_path / "trace" / f"part-0000{number}.parquet" for number in (3, 4)]
        readable = SMALL.events - sum(len(pq.read_table(file)) for file in damaged) + 30
        damage(typed, with_messages_as_text)
        damage(paged, with_a_bad_page)
        output = run_once(spark, conf_in(tmp_path / "conf"), tmp_path / "trace", tmp_path / "out", "parquet")
        letters = sorted(Path(letter["source"]).name for letter in rows_of(output, "dead_letters"))
        assert ([file.name for file in damaged], readable) == (letters, total(output, "publishes"))

    def test_a_cut_gzip_file_gives_its_first_lines(self, each_engine: Engine, tmp_path: Path) -> None:
        (tmp_path / "odd").mkdir()
        packed = gzip.compress("\n".join(lines_of(0, "json", tmp_path / "trace")).encode())
        (tmp_path / "odd" / "cut.json.gz").write_bytes(packed[:-200])
        output = each_engine.throttle(conf_in(tmp_path / "conf"), tmp_path / "odd", tmp_path / "out").output
        assert ["cut.json.gz"] == [
            Path(row["source"]).name for row in rows_of(output, "dead_letters") if not row["raw"]
        ]

    def test_a_file_that_becomes_whole_while_its_batch_runs_has_a_dead_letter(
        self, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The stream has met the cut file and lost rows of it; the search for damaged files meets the whole one."""
        lines = lines_of(0, "json", tmp_path / "trace")
        file = tmp_path / "odd" / "late.json.gz"
        file.parent.mkdir()
        packed = gzip.compress("\n".join(lines).encode())
        file.write_bytes(packed[:-200])

        def search(*arguments: Any) -> pa.Table:
            file.write_bytes(packed)
            return unreadable_files(*arguments)

        monkeypatch.setattr("headgate.spark.input.input_files.unreadable_files", search)
        output = run_once(spark, conf_in(tmp_path / "conf"), file.parent, tmp_path / "out")
        taken = total(output, "publishes")
        assert 0 < taken < len(lines)
        reason = (
            "the file changed while it was read, or could not be read for a moment; rows that are not read are lost: "
            f"{taken} lines or rows were taken, now it has {len(lines)}"
        )
        letters = [(row["reason"], Path(row["source"]).name) for row in rows_of(output, "dead_letters")]
        assert [(reason, file.name)] == letters

    def test_a_file_that_is_gone_when_its_batch_runs_again_has_a_dead_letter(
        self, spark: SparkSession, tmp_path: Path
    ) -> None:
        write_trace(SMALL, tmp_path / "trace", "json")
        raw = read_raw(spark, InputSettings(), str(tmp_path / "trace"), "json")
        letters: list[dict[str, Any]] = []
        started = threading.Event()

        def sink(batch: DataFrame, _batch_id: int) -> None:
            started.wait()
            if not letters and len(batch.toArrow()) == SMALL.events:
                raise OSError("no space left")
            letters.extend(unreadable_files(spark, query, planned_files(query)).to_pylist())

        writer = raw.writeStream.foreachBatch(sink).option("checkpointLocation", str(tmp_path / "checkpoint"))
        for gone in (None, tmp_path / "trace" / "part-00003.json"):
            if gone:
                gone.unlink()
            started.clear()
            query = writer.trigger(availableNow=True).start()
            started.set()
            with suppress(StreamingQueryException):
                query.awaitTermination()
        reason = "the file cannot be read to its end; rows that are not read are lost: it is gone"
        assert [(reason, "part-00003.json")] == [(row["reason"], Path(row["source"]).name) for row in letters]

    @pytest.mark.parametrize("format_", ["json", "csv", "parquet"])
    def test_one_file_is_an_input(self, spark: SparkSession, tmp_path: Path, format_: str) -> None:
        write_trace(SMALL, tmp_path / "trace", format_)
        file, *others = sorted((tmp_path / "trace").iterdir())
        assert others
        rows: list[int] = []
        stream = read_raw(spark, InputSettings(), str(file), format_).writeStream
        started = stream.foreachBatch(lambda batch, _: rows.append(batch.count()))
        started.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(
            availableNow=True
        ).start().awaitTermination()
        once = read_raw(spark, InputSettings(), str(file), format_, once=True)
        assert [once.count()] == rows

    def test_a_folder_without_any_readable_file_is_refused(self, spark: SparkSession, tmp_path: Path) -> None:
        (tmp_path / "trace").mkdir()
        (tmp_path / "trace" / "a.parquet").write_text("no Parquet, and longer than its magic number")
        with pytest.raises(InputError, match=r"is not a Parquet file.*To do: give a folder"):
            Run(spark, conf_in(tmp_path / "conf"), tmp_path / "trace", tmp_path / "out", "parquet").to_end()


def test_names_with_which_spark_counts_files_several_times_stop_the_job(spark: SparkSession, tmp_path: Path) -> None:
    write_trace(SMALL, tmp_path / "trace", "json")
    odd = tmp_path / "trace" / "part[1].json"
    (tmp_path / "trace" / "part-00001.json").rename(odd)
    with pytest.raises(
        InputError, match=re.escape(odd.name) + ".*: rename the file or folder and start with a new --out"
    ):
        run_once(spark, conf_in(tmp_path / "conf"), tmp_path / "trace", tmp_path / "out")
    assert 0 == total(tmp_path / "out", "publishes")


def damage(file: Path, do: Callable[[Path], object]) -> None:
    """Change a file; its time, which decides in which order files are read, stays."""
    before = file.stat()
    do(file)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def with_messages_as_text(file: Path) -> None:
    rows = pq.read_table(file)
    place = rows.schema.get_field_index("messages")
    pq.write_table(rows.set_column(place, "messages", rows["messages"].cast(pa.string())), file)


def with_a_bad_page(file: Path) -> None:
    """Three row groups of ten rows can be read, the fourth cannot."""
    pq.write_table(pq.read_table(file), file, row_group_size=10)
    content = bytearray(file.read_bytes())
    start = pq.ParquetFile(file).metadata.row_group(3).column(0).data_page_offset
    content[start : start + 40] = b"\xff" * 40
    file.write_bytes(bytes(content))
