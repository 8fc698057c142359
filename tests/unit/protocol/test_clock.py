"""Ticks of a live input: for what waits, never past the time that has certainly come."""

import pyarrow as pa
import pytest

from headgate.conf import LiveSettings
from headgate.protocol.clock import Clock
from headgate.protocol.schemas import PROGRESS
from headgate.protocol.state import NOT_YET

LIVE = LiveSettings(live_within_ms=60_000, live_lag_ms=2000)
NOW_MS = 1_000_000


def clock(*keys):
    """keys: highest time, watermark, rows that wait, and when a machine acts next."""
    rows = [
        {"key": str(number), "rows": 1, "late": 0, "high_ms": high, "done_ms": done, "kept": kept, "due_ms": due}
        for number, (high, done, kept, due) in enumerate(keys)
    ]
    made = Clock()
    made.take(pa.Table.from_pylist(rows, PROGRESS))
    return made


@pytest.mark.parametrize(
    ("keys", "is_idle", "at_ms"),
    [
        ([(NOW_MS - 5000, NOW_MS - 5001, 1, None)], True, NOW_MS - 2000),
        ([(NOW_MS - 5000, NOW_MS - 5001, 0, NOW_MS)], True, NOW_MS - 2000),
        ([(NOW_MS - 5000, NOW_MS - 5001, 0, None)], True, None),
        ([(NOW_MS - 5000, NOW_MS - 5001, 1, None)], False, None),
        ([(NOW_MS - 5000, NOT_YET, 1, None)], False, NOW_MS - 7000),
        ([(NOW_MS - 500, NOW_MS - 501, 0, None), (NOW_MS - 500, NOW_MS - 9000, 1, None)], False, NOW_MS - 2500),
        ([(NOW_MS - 500, NOW_MS - 501, 1, None)], True, None),
        ([(NOW_MS - 61_000, NOW_MS - 61_001, 1, None)], True, None),
        ([(NOW_MS + 3000, NOT_YET, 1, None)], True, None),
        ([(NOT_YET, NOT_YET, 0, None)], True, None),
    ],
    ids=[
        "rows wait",
        "a machine waits",
        "nothing waits",
        "more is to be taken in",
        "one source says nothing",
        "a key is behind the others",
        "it is already there",
        "recorded",
        "ahead of the wall clock",
        "nothing came yet",
    ],
)
def test_time_goes_on_where_something_waits_for_it_and_the_input_is_live(keys, is_idle, at_ms):
    assert at_ms == clock(*keys).due_tick(LIVE, NOW_MS, is_idle=is_idle)


def test_a_batch_without_output_changes_nothing():
    made = clock((5, 4, 1, None))
    made.take(PROGRESS.empty_table())

    assert Clock(5, 4, is_open=True) == made
