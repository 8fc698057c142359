"""How unloads of bundles went: sums over the table."""

from datetime import UTC, datetime

import pyarrow as pa

from headgate.report.throttling.unloading import Unloading, unloading
from headgate.throttle.schemas import UNLOAD_OUTCOMES
from unit.report.empty_tables import empty_tables


def test_unloads_are_counted_with_the_longest_wait_and_the_last_end(tmp_path):
    tables = empty_tables(tmp_path)
    ends = [datetime(2026, 1, 5, 9, 0, second, tzinfo=UTC) for second in (3, 9, 7)]
    runs = zip(("done", "timed_out", "done"), (0, 4, 7), ends, strict=True)
    rows = [{"outcome": outcome, "waited_ns": waited_ns, "end_time": end} for outcome, waited_ns, end in runs]
    tables.append("unloads", pa.Table.from_pylist(rows, UNLOAD_OUTCOMES), "query", 0)

    assert Unloading(3, 1, 7, ends[1]) == unloading(tables)


def test_without_unloads_there_is_nothing_to_tell(tmp_path):
    assert unloading(empty_tables(tmp_path)) is None
