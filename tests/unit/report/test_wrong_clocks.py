"""Whose clock a live job says to be wrong: step tables."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from headgate.report.wrong_clocks import AHEAD_S, SHOWN_LINES, WrongClocks
from headgate.throttle.schemas import PROGRESS

NOW = datetime(2026, 1, 5, 9, tzinfo=UTC)
RIGHT, AHEAD = 0, AHEAD_S + 1


def progress(broker: str, rows: int, late: int, ahead_s: float) -> dict[str, object]:
    reached = NOW + timedelta(seconds=ahead_s)
    return {
        "key": broker,
        "broker": broker,
        "rows": rows,
        "late": late,
        "event_time_us": int(reached.timestamp() * 1e6),
    }


def said(*batches: list[dict[str, object]]) -> list[list[str]]:
    clocks = WrongClocks()
    return [clocks.lines(pa.Table.from_pylist(rows, PROGRESS), NOW) for rows in batches]


@pytest.mark.parametrize(
    ("batches", "expected"),
    [
        ([(9, 0, RIGHT)], [""]),
        ([(9, 0, AHEAD_S)], [""]),
        ([(9, 0, AHEAD), (9, 0, AHEAD)], ["b is 61 s ahead of the clock here", ""]),
        ([(9, 0, AHEAD), (9, 0, RIGHT), (9, 0, AHEAD)], ["b is 61 s", "", "b is 61 s"]),
        ([(9, 4, RIGHT)], [""]),
        (
            [(9, 5, RIGHT), (9, 9, RIGHT)],
            ["b: 5 of 9 rows of a batch came late, behind a row of 2026-01-05T09:00:00Z;", ""],
        ),
        ([(9, 5, RIGHT), (9, 1, RIGHT), (9, 5, RIGHT)], ["b: 5 of 9", "", ""]),
        ([(9, 5, RIGHT), (0, 0, RIGHT), (9, 5, RIGHT)], ["b: 5 of 9", "", ""]),
        ([(9, 5, RIGHT), (9, 0, RIGHT), (9, 5, RIGHT)], ["b: 5 of 9", "", "b: 5 of 9"]),
    ],
)
def test_a_broker_is_named_once_until_it_is_right_again(
    batches: list[tuple[int, int, float]], expected: list[str]
) -> None:
    lines = said(*([progress("b", *one)] for one in batches))
    assert [len(of_batch) for of_batch in lines] == [bool(words) for words in expected]
    assert all(words in "".join(of_batch) for words, of_batch in zip(expected, lines, strict=True)), lines


def test_keys_of_a_broker_are_taken_together_and_many_brokers_are_counted() -> None:
    """Two keys of a broker of which one alone is mostly late."""
    assert said([progress("b", 9, 5, RIGHT), progress("b", 9, 0, RIGHT)]) == [[]]
    (lines,) = said([progress(f"b{n}", 9, 0, AHEAD) for n in range(SHOWN_LINES + 3)])
    assert (len(lines), lines[-1]) == (SHOWN_LINES + 1, "wrong clocks: 3 more such lines")
