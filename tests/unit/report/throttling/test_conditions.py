"""Which connections were held for the sake of memory: counts of the table."""

import pyarrow as pa

from headgate.report.throttling.conditions import Held, held_connections, opened_connections
from headgate.throttle.schemas import MARKS
from unit.report.empty_tables import empty_tables

FULL, BYTES = "ConnectionOutboundBufferFull", "IOThreadMaxPendingPublishBytesExceeded"


def tables_with(folder, rows):
    tables = empty_tables(folder)
    names = ("broker", "connection", "scope", "type", "action")
    made = [dict(zip(names, row, strict=True)) for row in rows]
    tables.append("marks", pa.Table.from_pylist(made, MARKS), "query", 0)
    return tables


def test_marks_are_counted_by_condition_most_often_first(tmp_path):
    rows = [
        *[("b1", "c1", None, None, "open"), ("b2", "c1", None, None, "open")],
        *[("b1", "c1", "io_thread", BYTES, "mark"), ("b1", "c2", "io_thread", BYTES, "mark")],
        *[("b1", "c1", "connection", FULL, action) for action in ("mark", "unmark", "mark", "unmark")],
        ("b2", "c1", "connection", FULL, "mark"),
    ]
    tables = tables_with(tmp_path, rows)

    assert [Held(FULL, 3, 2), Held(BYTES, 2, 2)] == held_connections(tables)
    assert 2 == opened_connections(tables)


def test_marks_of_quotas_are_not_counted(tmp_path):
    tables = tables_with(tmp_path, [("b1", "c1", "topic", "TopicPublishRate", "mark")])

    assert ([], 0) == (held_connections(tables), opened_connections(tables))
