"""Requests as cache events, and what policies make of them."""

import os
import struct
import subprocess
import sys
from collections import OrderedDict
from functools import partial
from pathlib import Path

import pytest

from headgate.cache_trace import Layout, convert
from headgate.errors import ConfError, InputError
from unit.cache_trace import requests
from unit.cache_trace.requests import ORACLE_GENERAL, REQUESTS
from unit.jobs import run_here

ROOT = Path(__file__).parents[3]


def converted(folder, content, layout=ORACLE_GENERAL, *, all_of_one_byte=False):
    trace, output = folder / "trace", folder / "events"
    trace.write_bytes(content)
    return convert(trace, layout, output, broker="b", topic="t", all_of_one_byte=all_of_one_byte), output


def short(rows):
    return [(row.t_us, row.seq, row.ledger, row.entry, *row.sizes) for row in rows]


def textbook_lru_hits(trace, objects):
    """A cache of so many objects that inserts on a miss."""
    cached, hits = OrderedDict(), 0
    for _, id_, _ in trace:
        hits += id_ in cached
        cached[id_] = None
        cached.move_to_end(id_)
        if len(cached) > objects:
            cached.popitem(last=False)
    return hits


def test_each_request_reads_one_entry_whose_position_is_the_id(tmp_path):
    done, events = converted(tmp_path, requests.oracle_general(REQUESTS))
    last = (1 << 63) - 1
    expected = [(3000000, 0, 0, 7, 512), (3000000, 1, 1, 0, 4096), (4000000, 2, 0, 7, 512), (9000000, 3, 1, last, 1)]
    assert expected == short(requests.rows(events))
    assert (4, 1) == (done.requests, done.files)


def test_a_request_for_nothing_is_left_out_and_counted(tmp_path):
    done, events = converted(tmp_path, requests.oracle_general([(1, 5, 0), (2, 6, 9)]))
    assert [(2000000, 1, 0, 6, 9)] == short(requests.rows(events))
    assert 1 == done.without_size


def test_a_request_for_more_than_an_entry_can_have_is_left_out_and_counted(tmp_path):
    done, events = converted(tmp_path, requests.oracle_general([(1, 5, 1 << 31), (2, 6, (1 << 31) - 1)]))
    assert [(2000000, 1, 0, 6, (1 << 31) - 1)] == short(requests.rows(events))
    assert 1 == done.too_large


@pytest.mark.parametrize("size", [(1 << 63) - 1, 1 << 63, (1 << 63) + 1])
def test_a_size_beyond_64_bits_with_a_sign_is_too_large_too_and_one_object_where_they_are_counted(tmp_path, size):
    layouts = {
        Layout("csv", id_column=1, size_column=2): f"5,{size}\n6,9\n".encode(),
        Layout("binary", record="<QQ", id_column=1, size_column=2): struct.pack("<QQQQ", 5, size, 6, 9),
    }
    for number, (layout, content) in enumerate(layouts.items()):
        for all_of_one_byte in (False, True):
            folder = tmp_path / f"{number}-{all_of_one_byte}"
            folder.mkdir()
            done, events = converted(folder, content, layout, all_of_one_byte=all_of_one_byte)
            assert (1 - all_of_one_byte, 1 + all_of_one_byte) == (done.too_large, done.requests)
            assert [(6, 1 if all_of_one_byte else 9)] == [(r.entry, *r.sizes) for r in requests.rows(events)][-1:]


def test_a_time_that_falls_is_that_of_the_request_before(tmp_path):
    done, events = converted(tmp_path, requests.oracle_general([(5, 1, 1), (4, 2, 1), (6, 3, 1)]))
    assert [5000000, 5000000, 6000000] == [row.t_us for row in requests.rows(events)]
    assert 1 == done.moved


def test_without_times_requests_are_a_millisecond_apart_and_without_sizes_of_one_byte(tmp_path):
    _, events = converted(tmp_path, b"8\n9\n", Layout("txt"))
    assert [(0, 0, 0, 8, 1), (1000, 1, 0, 9, 1)] == short(requests.rows(events))


def test_objects_can_be_counted_whatever_their_size(tmp_path):
    _, events = converted(tmp_path, requests.oracle_general([(1, 5, 0), (2, 6, 9)]), all_of_one_byte=True)
    assert [1, 1] == [row.sizes[0] for row in requests.rows(events)]


def test_hits_are_those_of_a_textbook_cache(tmp_path):
    trace = requests.popular(5_000, 500)
    _, events = converted(tmp_path, requests.oracle_general(trace))
    assert textbook_lru_hits(trace, 50) == requests.hits(requests.rows(events), "lru", 50)


@pytest.mark.parametrize("policy", ["lru", "fifo", "sieve", "s3fifo"])
def test_nobody_hits_more_than_belady(tmp_path, policy):
    _, events = converted(tmp_path, requests.oracle_general(requests.popular(2_000, 300)))
    rows = list(requests.rows(events))
    assert 0 < requests.hits(rows, policy, 30) < requests.hits(rows, "belady", 30)


def test_a_folder_with_something_in_it_is_refused(tmp_path):
    with pytest.raises(ConfError, match="not empty"):
        convert(tmp_path / "trace", ORACLE_GENERAL, tmp_path.parent, broker="b", topic="t", all_of_one_byte=False)


@pytest.mark.parametrize("below", ["file/events", "file/some/events"])
def test_a_folder_that_cannot_be_made_is_refused(tmp_path, below):
    (tmp_path / "file").touch()
    with pytest.raises(
        InputError, match=r"--output: .*events cannot be made: Not a directory; give a new or empty folder"
    ):
        convert(tmp_path / "trace", ORACLE_GENERAL, tmp_path / below, broker="b", topic="t", all_of_one_byte=False)


def test_a_broker_and_a_topic_without_a_name_are_refused_together_before_anything_is_made(tmp_path):
    with pytest.raises(ConfError) as error:
        convert(tmp_path / "t", ORACLE_GENERAL, tmp_path / "events", broker="", topic=" ", all_of_one_byte=False)
    assert ["broker: got ''", "topic: got ' '"] == [mistake.partition(";")[0] for mistake in error.value.mistakes]
    assert not (tmp_path / "events").exists()


def test_a_trace_without_a_size_above_0_is_refused(tmp_path):
    with pytest.raises(InputError, match="no request with a size above 0"):
        converted(tmp_path, requests.oracle_general([(1, 5, 0)]))


@pytest.fixture
def run_job(capsys):
    return partial(run_here, capsys, "cache_trace")


def start_job(*arguments):
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "lib")}
    command = [sys.executable, str(ROOT / "jobs/cache_trace.py"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def test_the_job_says_what_it_wrote(tmp_path):
    (tmp_path / "trace.csv").write_bytes(requests.csv([*REQUESTS, (2, 3, 0), (1, 3, 1)]))
    columns = ["--time-column", 2, "--id-column", 4, "--size-column", 3]
    done = start_job("--input", tmp_path / "trace.csv", "--format", "csv", *columns, "--output", tmp_path / "events")
    assert (0, "") == (done.returncode, done.stderr)
    assert done.stdout.startswith("5 requests in 1 file: ")
    assert "1 requests for 0 bytes left out" in done.stdout
    assert "2 requests moved to the time" in done.stdout
    assert 5 == len(list(requests.rows(tmp_path / "events")))


def test_the_job_says_what_is_wrong(tmp_path, run_job):
    (tmp_path / "trace").write_bytes(b"abc")
    done = run_job("--input", tmp_path / "trace", "--format", "oracleGeneral", "--output", tmp_path / "events")
    assert (2, "") == (done.returncode, done.stdout)
    assert "record 1: got 3 bytes, needed 24" in done.stderr


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--id-column", 3, "--size-column", 3], "id-column, size-column: got 3 for each"),
        (["--id-column", 2, "--time-column", 2, "--ids", "text"], "id-column, time-column: got 2 for each"),
        (["--id-column", 1, "--broker", ""], "broker: got ''"),
        (["--id-column", 1, "--topic", ""], "topic: got ''"),
        (["--id-column", 1, "--output", "/proc/events"], "--output: /proc/events cannot be made"),
    ],
)
def test_the_job_refuses_options_that_cannot_be_meant(tmp_path, run_job, options, says):
    (tmp_path / "trace.csv").write_bytes(b"1,2,3\n")
    given = ["--input", tmp_path / "trace.csv", "--format", "csv", "--output", tmp_path / "events"]
    done = run_job(*given, *options)
    assert (2, "") == (done.returncode, done.stdout)
    assert says in done.stderr
    assert "Traceback" not in done.stderr
