"""Whose attempts to subscribe were refused: sums over the table."""

import pyarrow as pa

from headgate.report.throttling.refusals import Refused, refused_consumers
from headgate.throttle.schemas import SUBSCRIBE_DECISIONS
from unit.report.empty_tables import empty_tables


def test_attempts_are_summed_by_consumer_and_client_most_refused_first(tmp_path):
    tables = empty_tables(tmp_path)
    rows = [
        *[("c", "h1", "t1", True), ("c", "h1", "t1", False), ("c", "h1", "t2", False), ("c", "h1", "t2", False)],
        *[("c", "h2", "t1", True), ("d", "h1", "t1", True), ("d", "h1", "t1", False)],
    ]
    names = ("consumer", "client", "topic", "allowed")
    made = [dict(zip(names, row, strict=True)) for row in rows]
    tables.append("subscribe_decisions", pa.Table.from_pylist(made, SUBSCRIBE_DECISIONS), "query", 0)

    expected = [Refused("c", "h1", 4, 3, 2), Refused("d", "h1", 2, 1, 1), Refused("c", "h2", 1, 0, 0)]
    assert expected == refused_consumers(tables)


def test_without_subscribes_there_is_nobody(tmp_path):
    assert [] == refused_consumers(empty_tables(tmp_path))
