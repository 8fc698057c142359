"""Small files of a table that is read in order: joined so that the order stays, whoever writes meanwhile."""

import os
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from headgate.tables import retention, upkeep
from headgate.tables.query import short_log
from headgate.tables.upkeep import keep_up

ROWS = pa.schema([("n", pa.int64()), ("text", pa.string())])


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.setattr(upkeep, "COMPACTED_EVERY", 1)
    DeltaTable.create(tmp_path, schema=ROWS, configuration=short_log(60))
    return tmp_path


def rows_of(*numbers, text="x"):
    return pa.Table.from_pylist([{"n": number, "text": text} for number in numbers], ROWS)


def append(table, *numbers, text="x"):
    write_deltalake(table, rows_of(*numbers, text=text), mode="append")


def joined(table):
    keep_up(DeltaTable(table), -1, in_order=True)


def files_of(table):
    """As a stream takes them that begins with the table."""
    files = pa.table(DeltaTable(table).get_add_actions(flatten=True)).to_pylist()
    files.sort(key=lambda file: (file["modification_time"], file["path"]))
    return [pq.read_table(table / file["path"])["n"].to_pylist() for file in files]


def in_order(table):
    return [number for numbers in files_of(table) for number in numbers]


def test_rows_stay_in_the_order_in_which_they_came_and_files_are_few(table):
    for number in range(40):
        append(table, number)
        if number % 3 == 0:
            joined(table)
    assert list(range(40)) == in_order(table)
    assert len(files_of(table)) <= 4


def test_large_files_are_not_written_again(table, monkeypatch):
    monkeypatch.setattr(upkeep, "COMPACTED_BYTES", 20_000)
    noise = [f"{number * 7_919_993 % 1_000_003:x}" for number in range(4000)]
    append(table, 0)
    append(table, 1)
    for number, some in ((2, noise), (3, noise[:2000]), (4, noise[2000:])):
        write_deltalake(table, pa.table({"n": [number] * len(some), "text": some}, ROWS), mode="append")
    joined(table)
    assert [1, 1, 4000, 4000] == [len(numbers) for numbers in files_of(table)]


def test_what_is_larger_than_all_that_came_after_it_waits_for_more(table):
    append(table, *range(2000), text="y")
    for number in (2000, 2001):
        append(table, number)
    joined(table)
    assert [2000, 2] == [len(numbers) for numbers in files_of(table)]


def test_files_of_others_that_were_closed_before_and_committed_after_a_join_do_not_come_before_it(table):
    for number in (0, 1, 2):
        append(table, number)
    late = retention._written(DeltaTable(table), rows_of(3), retention.time.time_ns() // 1_000_000)
    append(table, 3)
    joined(table)
    retention._commit(DeltaTable(table), [late], upkeep.CommitProperties())
    assert [0, 1, 2, 3, 3] == in_order(table)
    append(table, 4)
    joined(table)
    assert [0, 1, 2, 3, 3, 4] == in_order(table)


def test_who_writes_meanwhile_loses_nothing_and_of_two_joins_at_once_one_counts(table):
    for number in (0, 1, 2):
        append(table, number)
    first, second = DeltaTable(table), DeltaTable(table)
    append(table, 3)
    keep_up(first, -1, in_order=True)
    keep_up(second, -1, in_order=True)
    append(table, 4)
    assert [[0, 1, 2], [3], [4]] == files_of(table)


def test_files_stay_for_as_long_as_a_stream_may_read_the_log_that_names_them(table, monkeypatch):
    monkeypatch.setattr(upkeep, "VACUUMED_EVERY", 1)
    at_once = {"delta.deletedFileRetentionDuration": "interval 0 seconds"}
    DeltaTable(table).alter.set_table_properties(short_log(6 * 60) | at_once)
    for number, hours in ((0, 7), (1, 5), (2, 0)):
        append(table, number)
        newest = max(table.glob("*.parquet"), key=lambda file: file.stat().st_mtime_ns)
        os.utime(newest, (time.time() - hours * 3600,) * 2)
    joined(table)
    DeltaTable(table).create_checkpoint()  # which names no file that was replaced
    joined(table)
    left = [pq.read_table(file)["n"].to_pylist() for file in table.glob("*.parquet")]
    assert [[0, 1, 2], [1], [2]] == sorted(left)


def test_it_is_done_now_and_then(table, monkeypatch):
    monkeypatch.setattr(upkeep, "COMPACTED_EVERY", 10)
    append(table, 0)
    append(table, 1)
    keep_up(DeltaTable(table), 1, in_order=True)
    assert [[0], [1]] == files_of(table)
    for number in range(2, 10):
        append(table, number)
    keep_up(DeltaTable(table), 1, in_order=True)
    assert [list(range(10))] == files_of(table)
