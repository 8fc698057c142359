"""Input files without Spark: which there are, in which order, every line once, and what cannot be read of them."""

import gzip
import io
import json
import os
import sys
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from headgate.conf import InputSettings
from headgate.errors import InputError
from headgate.rows import batches, files
from headgate.rows.batches import TOO_LONG
from headgate.rows.files import input_files, parsed_files, whole_files
from headgate.rows.kinds import INPUT
from headgate.rows.listing import files_at, is_delta
from headgate.rows.raw import RAW_CHARACTERS
from headgate.rows.traffic import parse_traffic
from unit.rows.lines import GOOD, NO_KIND, TYPED, line

PARSE = partial(parse_traffic, settings=InputSettings())


def read(path, format_):
    """The good rows' seq and the dead letters' file, offset and reason, in the order of the files."""
    parts = list(parsed_files(input_files(str(path), format_), format_, INPUT, PARSE))
    seq = [number for part in parts if len(part.rows) for number in part.rows["seq"].to_pylist()]
    letters = [letter for part in parts for letter in part.dead_letters.to_pylist()]
    return seq, [(Path(letter["source"]).name, letter["offset"], letter["reason"]) for letter in letters]


def lines(*numbers):
    return [line(seq=number) for number in numbers]


def table(*numbers):
    times = [datetime(2026, 1, 5, 9, tzinfo=UTC)] * len(numbers)
    rows = {name: [value] * len(numbers) for name, value in TYPED.items()}
    return pa.table(rows | {"seq": list(numbers), "event_time": pa.array(times, pa.timestamp("us", "UTC"))})


def test_files_come_by_time_and_name_and_hidden_ones_are_no_input(tmp_path):
    for name, number, at_s in (("b", 1, 5), ("a", 2, 5), ("z", 0, 4), ("_hidden", 8, 1), (".hidden", 9, 1)):
        file = tmp_path / f"{name}.json"
        file.write_text("\n".join(lines(number)))
        os.utime(file, (at_s, at_s))
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "last.json").write_text("\n".join(lines(3)))
    (tmp_path / "_spark_metadata").mkdir()
    (tmp_path / "_spark_metadata" / "0").write_text("v1")
    assert ([0, 2, 1, 3], []) == read(tmp_path, "json")
    assert ([2], []) == read(tmp_path / "a.json", "json")
    assert ([0, 2, 1], []) == read(f"{tmp_path}/[a-z].json", "json")


@pytest.mark.parametrize(
    ("path", "format_", "said"),
    [
        ("nowhere", "json", "nowhere: got nothing"),
        ("", "parquet", "got a folder without files [(]those whose names begin"),
        (".", "delta", "no Delta table is at"),
    ],
)
def test_an_input_that_is_not_there_is_refused(path, format_, said, tmp_path):
    (tmp_path / "_hidden.parquet").touch()
    with pytest.raises(InputError, match=rf"^--input: .*{said}"):
        read(tmp_path / path, format_)


@given(
    st.lists(st.sampled_from(["", " ", "x", "\u00e9y", line(seq=7)]), max_size=6),
    st.lists(st.sampled_from(["\n", "\r\n", "\r"]), min_size=6, max_size=6),
    st.booleans(),
    st.integers(1, 9),
)
def test_lines_are_those_of_the_text_however_much_is_read_at_once(texts, ends, ended, at_once):
    whole = "".join(text + end for text, end in zip(texts, ends, strict=False))
    whole = whole if ended or not texts else whole.removesuffix(ends[len(texts) - 1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "BYTES_AT_ONCE", at_once)
        parts = list(files._lines_of(io.BytesIO(b"\xef\xbb\xbf" + whole.encode()), "f"))
    found = [value.decode() for batch in parts for value in batch["value"].to_pylist()]
    assert whole.splitlines() == found


def test_a_byte_order_mark_is_no_part_of_the_first_line(tmp_path):
    (tmp_path / "a.json").write_bytes(("\ufeff" + "\r\n".join(lines(1, 2))).encode())
    assert ([1, 2], []) == read(tmp_path, "json")


def test_lines_of_csv_are_counted_with_the_header_and_blank_ones(tmp_path):
    header = ",".join(GOOD)
    row = ",".join(str(value) for value in GOOD.values())
    (tmp_path / "a.csv").write_text("\n".join(["", header, " ", row, "x", row.replace("publish", "load")]))
    seq, letters = read(tmp_path, "csv")
    assert [1] == seq
    assert [("a.csv", 5), ("a.csv", 6)] == [letter[:2] for letter in letters]


@pytest.mark.parametrize(("more", "reason"), [(0, NO_KIND.format("\u00fcnload")), (1, TOO_LONG), (10**6, TOO_LONG)])
@pytest.mark.parametrize("format_", ["json", "csv"])
def test_a_line_that_is_too_long_is_one_dead_letter_with_its_start(format_, more, reason, tmp_path, monkeypatch):
    most, at_once = 100_000, 30_000
    for module in (batches, files):
        monkeypatch.setattr(module, "MOST_LINE_BYTES", most)
    monkeypatch.setattr(files, "BYTES_AT_ONCE", at_once)
    header, good = ",".join(GOOD), ",".join(map(str, GOOD.values()))
    if format_ == "json":
        header, good = "", line()
    start = good.replace("publish", "\u00fcnload")
    long = start + " " * (most - len(start.encode()) + more)
    text = f"\r\n{header}\r\n{good}\r\n{long}\r\n\r\n{good}\r\n{long}"
    (tmp_path / "a").write_text(text, newline="")
    parts = list(parsed_files(input_files(str(tmp_path), format_), format_, INPUT, PARSE))
    letters = [letter for part in parts for letter in part.dead_letters.to_pylist()]
    assert 2 == sum(len(part.rows) for part in parts)
    assert [(reason, 4), (reason, 7)] == [(letter["reason"], letter["offset"]) for letter in letters]
    assert {long[:RAW_CHARACTERS]} == {letter["raw"] for letter in letters}

    lines_of = files._lines_of(io.BytesIO(text.encode()), "f")
    kept = [len(value) for batch in lines_of for value in batch["value"].to_pylist()]
    assert most <= max(kept) <= most + 2 * at_once + 3


def test_a_cut_gzip_file_gives_its_first_lines(tmp_path):
    packed = gzip.compress("\n".join(lines(*range(5000))).encode(), mtime=0)
    (tmp_path / "cut.json.gz").write_bytes(packed[:-200])
    (tmp_path / "whole.json.gz").write_bytes(gzip.compress("\n".join(lines(7)).encode()))
    seq, letters = read(tmp_path, "json")
    assert 7 in seq
    assert ["cut.json.gz"] == [name for name, offset, _ in letters if offset is None]
    assert "the file cannot be read to its end; rows that are not read are lost: " in letters[-1][2]


def test_damaged_parquet_files_are_left_out_and_the_others_count(tmp_path):
    pq.write_table(table(1, 2), tmp_path / "a.parquet")
    (tmp_path / "b.parquet").write_bytes(b"no Parquet, and longer than its magic number")
    pq.write_table(table(3), tmp_path / "c.parquet")
    (tmp_path / "d.parquet").write_bytes((tmp_path / "a.parquet").read_bytes()[:-50])
    seq, letters = read(tmp_path, "parquet")
    assert [1, 2, 3] == sorted(seq)
    assert [("b.parquet", None), ("d.parquet", None)] == sorted(letter[:2] for letter in letters)


def test_the_rows_of_a_parquet_file_are_counted_across_its_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "ROWS_AT_ONCE", 2)
    bad = table(1, 2, 3, 4, 5).set_column(4, "kind", pa.array(["publish", "x", "publish", "publish", "x"]))
    pq.write_table(bad, tmp_path / "a.parquet")
    seq, letters = read(tmp_path, "parquet")
    assert ([1, 3, 4], [1, 4]) == (seq, [offset for _, offset, _ in letters])


def test_the_standard_input_is_one_file(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("\n".join([*lines(1, 2), "x"]).encode())))
    assert ([1, 2], [("stdin", 3, "the line is not a JSON object")]) == read("-", "json")


def test_a_delta_table_gives_its_commits_in_their_order_with_its_partitions(tmp_path):
    for number in (3, 1, 2):
        write_deltalake(str(tmp_path), table(number), mode="append", partition_by=["broker"])
    parts = list(parsed_files(input_files(str(tmp_path), "delta"), "delta", INPUT, PARSE))
    rows = [row for part in parts for row in part.rows.select(["seq", "broker"]).to_pylist()]
    assert [{"seq": number, "broker": "broker-1"} for number in (3, 1, 2)] == rows


def test_a_delta_table_whose_files_are_not_its_rows_is_refused(tmp_path):
    write_deltalake(str(tmp_path), table(1))
    log = tmp_path / "_delta_log" / "00000000000000000000.json"
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7}
    features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    actions = [json.loads(action) for action in log.read_text().splitlines()]
    changed = [{"protocol": protocol | features} if "protocol" in action else action for action in actions]
    log.write_text("\n".join(map(json.dumps, changed)))
    with pytest.raises(InputError, match="has deletionVectors"):
        read(tmp_path, "delta")


def test_a_file_of_a_delta_table_that_is_gone_takes_no_other_with_it(tmp_path):
    for number in (3, 1, 2):
        write_deltalake(str(tmp_path), table(number), mode="append")
    added = pa.table(DeltaTable(tmp_path).get_add_actions()).sort_by("modification_time")["path"].to_pylist()
    (tmp_path / added[0]).unlink()
    seq, letters = read(tmp_path, "delta")
    assert ([1, 2], [(added[0], None)]) == (seq, [letter[:2] for letter in letters])
    kept, lost = whole_files(input_files(str(tmp_path), "delta"), "delta", INPUT, PARSE)
    assert ([1, 2], 1) == ([number for part in kept for number in part.rows["seq"].to_pylist()], len(lost))


@pytest.mark.parametrize("content", [None, "no JSON"])
def test_a_delta_table_without_a_log_is_refused(content, tmp_path):
    log = tmp_path / "_delta_log" / "00000000000000000000.json"
    log.parent.mkdir()
    if content is not None:
        log.write_text(content)
    with pytest.raises(InputError, match=rf"^--input: the Delta table {tmp_path} cannot be opened: .+; give"):
        read(tmp_path, "delta")


@pytest.mark.parametrize(
    ("path", "place", "name"),
    [
        ("in", "s3a://b/o p", "s3a://b/o%20p/hour%3D1/a.json"),
        ("in/hour=1/a.json", "s3a://b/a.json", "s3a://b/a.json"),
        ("in", "abfss://c@acct.dfs.core.windows.net/in", "abfss://c@acct.dfs.core.windows.net/in/hour%3D1/a.json"),
        ("in", "gs://b", "gs://b/hour%3D1/a.json"),
    ],
)
def test_a_copy_is_told_of_by_the_place_on_the_store(path, place, name, tmp_path):
    (tmp_path / "in" / "hour=1").mkdir(parents=True)
    (tmp_path / "in" / "hour=1" / "a.json").write_text("{}\n")
    (found,) = input_files(str(tmp_path / path), "json", place)
    assert (name, "{}\n") == (found.name, Path(found.path).read_text())


def test_a_damaged_file_of_a_copied_table_is_told_of_by_the_place_on_the_store(tmp_path):
    write_deltalake(tmp_path, pa.table({"x": [1]}))
    (damaged,) = tmp_path.glob("*.parquet")
    damaged.write_bytes(b"no Parquet")
    (found,) = parsed_files(input_files(str(tmp_path), "delta", "s3a://b/t"), "delta", INPUT, PARSE)
    assert [f"s3a://b/t/{damaged.name}"] == found.dead_letters["source"].to_pylist()


def test_an_error_of_the_parser_is_not_said_of_the_file(tmp_path):
    (tmp_path / "a.json").write_text(line(seq=1))

    def parse(_):
        raise pa.ArrowInvalid("a bug")

    found = input_files(str(tmp_path), "json")
    with pytest.raises(pa.ArrowInvalid, match="a bug"):
        list(parsed_files(found, "json", INPUT, parse))
    with pytest.raises(pa.ArrowInvalid, match="a bug"):
        whole_files(found, "json", INPUT, parse)


def test_a_folder_that_cannot_be_listed_is_refused_and_not_passed_over(tmp_path, monkeypatch):
    (tmp_path / "a.json").write_text(line(seq=1))

    def walk(place, onerror):
        onerror(PermissionError(13, "Permission denied", f"{place}/sub"))
        yield place, [], ["a.json"]

    monkeypatch.setattr("os.walk", walk)
    with pytest.raises(InputError, match=rf"{tmp_path}/sub: cannot be read: Permission denied; give"):
        files_at(str(tmp_path))
    with pytest.raises(InputError, match="cannot be read: File name too long"):
        is_delta("x" * 300)
