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


def said(*batches: tuple[int, list[dict[str, object]]]) -> list[list[str]]:
    """Of batches, each with its minute."""
    clocks = WrongClocks()
    return [
        clocks.lines(pa.Table.from_pylist(rows, PROGRESS), NOW + timedelta(minutes=minute)) for minute, rows in batches
    ]


@pytest.mark.parametrize(
    ("batches", "expected"),
    [
        ([(0, 9, 0, RIGHT)], [""]),
        ([(0, 9, 0, AHEAD_S)], [""]),
        ([(0, 1, 0, AHEAD), (0, 9, 0, AHEAD)], ["b is 61 s ahead of the clock here", ""]),
        ([(0, 9, 0, AHEAD), (1, 9, 0, RIGHT), (4, 9, 0, AHEAD)], ["b is 61 s", "", ""]),
        ([(0, 9, 0, AHEAD), (5, 9, 0, RIGHT), (5, 9, 0, 400)], ["b is 61 s", "", "b is 100 s"]),
        ([(0, 9, 9, RIGHT)], [""]),
        ([(0, 10, 5, RIGHT)], [""]),
        (
            [(0, 10, 6, RIGHT), (0, 10, 10, RIGHT)],
            ["b: 6 of 10 rows came late, behind a row of 2026-01-05T09:00:00Z;", ""],
        ),
        ([(0, 9, 9, RIGHT), (0, 0, 0, RIGHT), (0, 2, 0, RIGHT)], ["", "", "b: 9 of 11 rows"]),
        ([(0, 1, 1, RIGHT), (0, 1, 0, RIGHT)] * 20, [""] * 40),
        ([(0, 10, 6, RIGHT), (1, 10, 0, RIGHT), (4, 10, 6, RIGHT)], ["b: 6 of 10", "", ""]),
        ([(0, 10, 6, RIGHT), (4, 10, 6, RIGHT), (5, 10, 0, RIGHT), (6, 10, 6, RIGHT)], ["b: 6 of 10", "", "", ""]),
        ([(0, 10, 6, RIGHT), (60, 10, 1, RIGHT), (61, 10, 6, RIGHT)], ["b: 6 of 10", "", ""]),
        ([(0, 10, 6, RIGHT), (60, 9, 0, RIGHT), (61, 10, 10, RIGHT)], ["b: 6 of 10", "", ""]),
        ([(0, 10, 6, RIGHT), (5, 10, 0, RIGHT), (6, 10, 6, RIGHT)], ["b: 6 of 10", "", "b: 6 of 10"]),
    ],
)
def test_a_broker_is_named_once_until_it_was_right_for_a_while(
    batches: list[tuple[int, int, int, float]], expected: list[str]
) -> None:
    lines = said(*((minute, [progress("b", *one)]) for minute, *one in batches))
    assert [len(of_batch) for of_batch in lines] == [bool(words) for words in expected]
    assert all(words in "".join(of_batch) for words, of_batch in zip(expected, lines, strict=True)), lines


def test_keys_of_a_broker_are_taken_together_and_many_brokers_are_counted() -> None:
    """Two keys of a broker of which one alone is mostly late."""
    assert said((0, [progress("b", 19, 15, RIGHT), progress("b", 19, 0, RIGHT)])) == [[]]
    (lines,) = said((0, [progress(f"b{n}", 9, 0, AHEAD) for n in range(SHOWN_LINES + 3)]))
    assert (len(lines), lines[-1]) == (SHOWN_LINES + 1, "wrong clocks: 3 more such lines")
