"""Traces on disk, and the job that writes them."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from headgate.errors import ConfError
from headgate.rows.listing import FORMATS
from headgate.trace import SCHEMA, TraceSpec, generate_files, write_trace
from unit.jobs import run_here

ROOT = Path(__file__).parents[3]
SPEC = TraceSpec(events=2_000, files=5)
FILES = ["part-00000", "part-00001", "part-00002", "part-00003", "part-00004"]


def whole(spec):
    return pa.concat_tables(generate_files(spec))


@pytest.fixture
def run_job(capsys):
    return partial(run_here, capsys, "generate")


def start_job(*arguments):
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "lib")}
    command = [sys.executable, str(ROOT / "jobs/generate.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def content(folder):
    return [path.read_bytes() for path in sorted(folder.iterdir())]


@pytest.mark.parametrize("file_format", ["json", "csv", "parquet"])
def test_files_are_numbered_in_order_and_nothing_else_is_left(tmp_path, file_format):
    write_trace(SPEC, tmp_path, file_format)
    assert [f"{name}.{file_format}" for name in FILES] == sorted(path.name for path in tmp_path.iterdir())


@pytest.mark.parametrize("file_format", ["json", "csv"])
def test_equal_specs_give_equal_bytes(tmp_path, file_format):
    spec = replace(SPEC, bad_share=0.1, disorder_ms=500)
    write_trace(spec, tmp_path / "one", file_format)
    write_trace(spec, tmp_path / "two", file_format)
    assert content(tmp_path / "one") == content(tmp_path / "two")


def test_the_lines_do_not_depend_on_the_number_of_files(tmp_path):
    spec = replace(SPEC, bad_share=0.1, disorder_ms=500)
    write_trace(spec, tmp_path / "five", "json")
    write_trace(replace(spec, files=1), tmp_path / "one", "json")
    assert b"".join(content(tmp_path / "one")) == b"".join(content(tmp_path / "five"))


@pytest.mark.parametrize("file_format", ["json", "parquet"])
def test_modification_times_rise_by_whole_milliseconds(tmp_path, file_format):
    write_trace(TraceSpec(events=100, files=50), tmp_path, file_format)
    times_ms = [path.stat().st_mtime_ns // 1_000_000 for path in sorted(tmp_path.iterdir())]
    assert not [(earlier, later) for earlier, later in pairwise(times_ms) if later <= earlier]


def test_json_lines_hold_the_rows(tmp_path):
    write_trace(SPEC, tmp_path, "json")
    rows = [json.loads(line) for path in sorted(tmp_path.iterdir()) for line in path.read_text().splitlines()]
    expected = whole(SPEC).to_pylist()
    assert SCHEMA.names == list(rows[0])
    assert [f"{row['event_time']:%Y-%m-%dT%H:%M:%S.%fZ}" for row in expected] == [row["event_time"] for row in rows]
    assert [row["seq"] for row in expected] == [row["seq"] for row in rows]
    assert [{**row, "event_time": None} for row in expected] == [{**row, "event_time": None} for row in rows]


def test_csv_files_each_have_the_header_and_hold_the_rows(tmp_path):
    write_trace(SPEC, tmp_path, "csv")
    types = pc.ConvertOptions(column_types=SCHEMA)
    tables = [pc.read_csv(path, convert_options=types) for path in sorted(tmp_path.iterdir())]
    assert pa.concat_tables(tables).equals(whole(SPEC))


def test_parquet_files_hold_the_rows(tmp_path):
    write_trace(SPEC, tmp_path, "parquet")
    files = [pq.read_table(path) for path in sorted(tmp_path.iterdir())]
    assert pa.concat_tables(files).equals(whole(SPEC))


def test_a_delta_table_gets_one_commit_a_file(tmp_path):
    write_trace(SPEC, tmp_path, "delta")
    table = DeltaTable(tmp_path)
    assert SPEC.files - 1 == table.version()
    assert table.to_pyarrow_table().sort_by("seq").cast(SCHEMA).equals(whole(SPEC))


def test_an_empty_folder_is_taken_and_the_summary_counts_it(tmp_path):
    expected = [(1, 400), (2, 800), (3, 1_200), (4, 1_600), (5, 2_000)]
    seen = []
    summary = write_trace(SPEC, tmp_path, "json", lambda so_far: seen.append((so_far.files, so_far.rows)))
    table = whole(SPEC)
    assert expected == seen
    assert table["messages"].to_numpy().sum() == summary.messages
    assert table["bytes"].to_numpy().sum() == summary.bytes
    assert [summary.first, summary.last] == [table["event_time"][at].as_py() for at in (0, -1)]


def test_a_folder_that_holds_something_and_an_unknown_format_are_refused_together(tmp_path):
    mine = tmp_path / "mine"
    mine.touch()
    with pytest.raises(ConfError) as error:
        write_trace(SPEC, tmp_path, "xml")
    assert (
        f"format: got 'xml', allowed {', '.join(FORMATS)}",
        f"output: got {tmp_path}, which exists and is not empty; allowed a new or an empty folder",
    ) == error.value.mistakes
    assert [mine] == list(tmp_path.iterdir())


def test_the_job_writes_what_the_library_writes_and_sums_it_up(tmp_path):
    done = start_job("--output", str(tmp_path / "job"), "--events", "2000", "--files", "5", "--bad-share", "0.1")
    summary = write_trace(replace(SPEC, bad_share=0.1), tmp_path / "library", "json")
    assert (0, content(tmp_path / "library")) == (done.returncode, content(tmp_path / "job"))
    assert summary.describe().splitlines() == done.stdout.splitlines()[:-1]
    assert done.stderr.endswith("file 5 of 5: 2,000 of 2,000 rows\n")


def test_the_job_refuses_bad_arguments_without_a_traceback(tmp_path, run_job):
    done = run_job("--output", str(tmp_path / "new"), "--topics", "0", "--files", "0")
    expected = [
        "generate: 2 mistakes in the configuration:",
        "  topics: got 0, allowed a whole number from 1 to 1000000 (topics in all)",
        "  files: got 0, allowed a whole number from 1 to 100000 (files, in event-time order)",
    ]
    assert (2, expected) == (done.returncode, done.stderr.splitlines())


DELTA, CACHE = ("--format", "delta"), ("--cache", "fanout", "--files", "1")


@pytest.mark.parametrize("arguments", [(), *(pytest.param(more, marks=pytest.mark.long) for more in (DELTA, CACHE))])
def test_the_job_says_that_a_folder_cannot_be_made(tmp_path, run_job, arguments):
    below = tmp_path / "file" / "trace"
    below.parent.touch()
    done = run_job("--output", str(below), *arguments)
    expected = f"generate: --output: {below} cannot be made: Not a directory; give a new or empty folder\n"
    assert (2, "", expected) == (done.returncode, done.stdout, done.stderr)


def test_the_job_refuses_what_only_cache_events_have_without_them(tmp_path, run_job):
    done = run_job("--output", str(tmp_path / "new"), "--brokers", "2", "--sizes", "skewed", "--scale", "3")
    expected = [
        "generate: 2 mistakes in the configuration:",
        "  sizes: got skewed without --cache; allowed with it alone; leave it out, or give --cache",
        "  scale: got 3 without --cache; allowed with it alone; leave it out, or give --cache",
    ]
    assert (2, expected) == (done.returncode, done.stderr.splitlines())
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("option", "names"),
    [("--cache", "'fanout', 'catchup', 'replay', 'mixed'"), ("--sizes", "'equal', 'skewed'")],
)
def test_the_job_names_the_choices_as_they_are_given(tmp_path, run_job, option, names):
    done = run_job("--output", str(tmp_path / "new"), option, "foo")
    assert done.returncode == 2
    assert f"argument {option}: invalid choice: 'foo' (choose from {names})" in done.stderr


@pytest.mark.parametrize("arguments", [("--format", "kafka"), ("--format", "csv", "--kafka-servers", "localhost:9092")])
def test_the_job_takes_kafka_servers_with_kafka_and_only_then(tmp_path, run_job, arguments):
    done = run_job("--output", str(tmp_path / "new"), *arguments)
    assert done.returncode == 2
    assert "needed with kafka, refused otherwise" in done.stderr


def test_the_trace_package_needs_no_spark():
    check = "import sys, headgate.trace; sys.exit('pyspark' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "lib")}
    done = subprocess.run([sys.executable, "-c", check], check=False, env=environment)
    assert done.returncode == 0
