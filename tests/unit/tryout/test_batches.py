"""Batches of a trace: by event time where quotas are shared, and kept for the next conf."""

import random

import pyarrow as pa
import pytest

from headgate.arrow.schemas import DEAD_LETTERS
from headgate.rows.traffic import Parsed
from headgate.tryout import batches
from headgate.tryout.batches import Trace, by_time
from headgate.tryout.inputs import Source
from unit.local_runs import conf_of, publishes, write_trace

NONE = DEAD_LETTERS.empty_table()


def parts(times_ms, sizes):
    start = 0
    for size in sizes:
        times = [time_ms * 1000 for time_ms in times_ms[start : start + size]]
        yield Parsed(pa.table({"event_time_us": pa.array(times, pa.int64())}), NONE)
        start += size


def times_of(batches):
    return [
        [t // 1000 for part in batch if len(part.rows) for t in part.rows["event_time_us"].to_pylist()]
        for batch in batches
    ]


def uncounted(_):
    pass


TIMES = [100, 900, 1000, 950, 1500, 3999, 2500, 4000]
BY_SECOND = [[100, 900], [1000, 950, 1500], [3999, 2500], [4000]]


@pytest.mark.parametrize("seed", range(5))
def test_a_batch_ends_where_the_clock_passes_an_interval_however_rows_come(seed):
    chance, sizes = random.Random(seed), []
    while sum(sizes) < len(TIMES):
        sizes.append(chance.randint(0, 3))
    assert times_of(by_time(parts(TIMES, sizes), 1000, uncounted)) == BY_SECOND


@pytest.mark.parametrize("sizes", [[8], [1] * 8, [2, 0, 5, 1]])
def test_a_batch_has_a_limit_though_time_stands_still(sizes, monkeypatch):
    monkeypatch.setattr(batches, "MOST_AT_ONCE", 2)
    ahead = [9000, 100, 200, 300, 400, 500, 600, 9999]
    assert times_of(by_time(parts(ahead, sizes), 1000, uncounted)) == [[9000, 100], [200, 300], [400, 500], [600, 9999]]


@pytest.mark.parametrize("sizes", [[8], [1] * 8, [2, 0, 5, 1]])
def test_rows_that_come_more_than_an_interval_behind_are_counted(sizes):
    behind = []
    list(by_time(parts([100, 2000, 1000, 999, 3001, 2000, 3000, 500], sizes), 1000, behind.append))
    assert sum(behind) == 3  # 999, 2000, 500: 1000 and 3000 are an interval behind at the most


def test_dead_letters_of_files_without_rows_are_in_a_batch():
    letter = pa.Table.from_pylist([{"reason": "unreadable"}], DEAD_LETTERS)
    (batch,) = by_time([Parsed(pa.table({}), letter)], 1000, uncounted)
    assert [len(part.dead_letters) for part in batch] == [1]


def test_a_trace_is_read_once_for_confs_that_take_it_alike(tmp_path):
    path = write_trace(tmp_path / "t.json", publishes(2))
    trace, conf = Trace(Source(str(path), "json")), conf_of(tmp_path / "conf")
    first = list(trace.batches(conf))
    path.unlink()
    assert [len(part.rows) for batch in trace.batches(conf) for part in batch] == [
        len(part.rows) for batch in first for part in batch
    ]
    assert len(first) == 2
