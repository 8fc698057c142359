"""When a job says that a limit has been exceeded for too long: step tables."""

import pyarrow as pa
import pytest

from headgate.report.long_queues import MANY, LongQueues
from headgate.throttle.schemas import PROGRESS


def domain(waiting: int, *, broker: str = "b", key: str = "0", subscriptions: int = 0) -> dict[str, object]:
    return {"key": key, "broker": broker, "waiting": waiting, "subscriptions": subscriptions}


@pytest.mark.parametrize(
    ("batches", "expected"),
    [
        ([[domain(MANY - 1)]], [[]]),
        ([[domain(MANY)], [domain(9 * MANY)], [domain(10 * MANY)]], [["1,000,000"], [], ["10,000,000"]]),
        ([[domain(MANY)], [domain(0)], [domain(MANY)]], [["1,000,000"], [], []]),
        ([[domain(MANY, subscriptions=1)]], [[]]),
        ([[domain(MANY - 1)], [domain(2, key="1")]], [[], ["1,000,001"]]),
        ([[domain(MANY - 1), domain(1, broker="other")]], [[]]),
    ],
)
def test_a_broker_is_named_at_a_million_marks_and_at_ten_times_as_many(
    batches: list[list[dict[str, object]]], expected: list[list[str]]
) -> None:
    queues = LongQueues()
    said = [queues.lines(pa.Table.from_pylist(rows, PROGRESS)) for rows in batches]

    assert [[f"b: {number} marks" for number in numbers] for numbers in expected] == [
        [line.partition(" of publishes")[0] for line in lines] for lines in said
    ]
