"""What a start of the job says of conf files, and when a quiet broker's time goes on."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from headgate.arrow.blocks import decode
from headgate.cache.clock import Clock
from headgate.cache.control import check_streaming, conf_row, tick_row
from headgate.cache.routing import changes_in, pack_control, time_in
from headgate.cache.schemas import CONTROL, PROGRESS
from headgate.cache.stored.state import NOT_YET, Change
from headgate.conf import LiveSettings
from headgate.errors import ConfError

NINE = datetime(2026, 1, 5, 9, tzinfo=UTC)
US = timedelta(microseconds=1)
MAX_BYTES, TTL = "headgate.cache.maxBytes", "managedLedgerCacheEvictionTimeThresholdMillis"
POLICY = "headgate.cache.policy"


def said(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["kind"], row["event_time"], json.loads(row["conf"]), json.loads(row["changes"])


def test_the_first_start_says_what_caches_begin_with() -> None:
    assert ("conf", None, {MAX_BYTES: 5}, {MAX_BYTES: 5}) == said(conf_row([], {MAX_BYTES: 5}, None))


def test_later_starts_say_what_changed_since_the_last_conf_from_the_next_microsecond_on() -> None:
    """A tick is no conf; back again is a change, too, and never ahead of one before it."""
    rows = [conf_row([], {MAX_BYTES: 5}, None), tick_row(NINE)]
    assert {} == conf_row(rows, {MAX_BYTES: 5}, NINE)
    rows.append(conf_row(rows, {MAX_BYTES: 7, TTL: 9}, NINE))
    assert ("conf", NINE + US, {MAX_BYTES: 7, TTL: 9}, {MAX_BYTES: 7, TTL: 9, SIZE: 64}) == said(rows[-1])
    rows.append(conf_row(rows, {MAX_BYTES: 5, TTL: 9}, NINE - US))
    assert (NINE + US, {MAX_BYTES: 5, SIZE: 64}) == (said(rows[-1])[1], said(rows[-1])[3])


SIZE = "managedLedgerCacheSizeMB"


def test_a_change_before_any_row_holds_from_the_beginning() -> None:
    rows = [conf_row([], {}, None)]
    assert datetime(1970, 1, 1, tzinfo=UTC) == conf_row(rows, {TTL: 5}, None)["event_time"]


def test_every_key_that_may_not_change_is_told() -> None:
    rows = [conf_row([], {POLICY: "lru"}, None)]
    with pytest.raises(ConfError) as error:
        conf_row(rows, {"headgate.cache.cacheReads": True, MAX_BYTES: 1}, NINE)
    assert [
        f"broker.conf: {key}: got {now}, the checkpoint was begun with {was}; allowed: no change while it lives; "
        "set it back, or start with a new --checkpoint and --output"
        for key, now, was in ((POLICY, "the default", "lru"), ("headgate.cache.cacheReads", True, "the default"))
    ] == list(error.value.mistakes)


def test_what_no_stream_can_do_is_refused() -> None:
    check_streaming({})
    with pytest.raises(ConfError, match=f"{POLICY}: got belady"):
        check_streaming({POLICY: "belady"})
    with pytest.raises(ConfError, match=r"headgate\.cache\.mode: got horizon, which no job runs"):
        check_streaming({"headgate.cache.mode": "horizon"})


def test_control_rows_reach_every_slot() -> None:
    rows = [conf_row([], {TTL: 5}, None), tick_row(NINE, finish=True), tick_row(None)]
    table = pa.Table.from_pylist(rows, CONTROL)
    (packed,) = pack_control(iter(table.to_batches()))
    blocks = packed.to_pylist()
    assert 32 == len({row["key"] for row in blocks}) == len(blocks) / 2
    by_kind = {row["kind"]: decode(row["block"]) for row in blocks}
    assert [Change(NOT_YET, {TTL: 5})] == changes_in(by_kind["conf"])
    assert (round(NINE.timestamp() * 10**6), True) == time_in(by_kind["time"])


def test_a_finish_below_another_time_is_none() -> None:
    rows = [tick_row(NINE, finish=True), tick_row(NINE + US)]
    (packed,) = pack_control(iter(pa.Table.from_pylist(rows, CONTROL).to_batches()))
    assert not time_in(decode(packed.to_pylist()[0]["block"])).finish


LIVE = LiveSettings(live_within_ms=60_000, live_lag_ms=2000)
LAG = timedelta(seconds=2)


def clock_at(high: datetime, done: datetime, *, is_open: bool) -> Clock:
    clock = Clock()
    row = {"broker": "b", "rows": 1, "event_time": high, "watermark": done, "is_open": is_open}
    clock.take(pa.Table.from_pylist([row], PROGRESS))
    return clock


@pytest.mark.parametrize(
    ("now", "is_open", "is_idle", "expected"),
    [
        (NINE + timedelta(seconds=10), True, True, NINE + timedelta(seconds=8)),
        (NINE + timedelta(seconds=10), False, True, None),
        (NINE + timedelta(seconds=10), True, False, None),
        (NINE + timedelta(seconds=61), True, True, None),
        (NINE + timedelta(seconds=1), True, True, None),
    ],
    ids=["waits", "nothing waits", "more is there", "not live", "not past the lag"],
)
def test_time_goes_on_for_a_quiet_broker_in_live_input(
    now: datetime, is_open: bool, is_idle: bool, expected: datetime | None
) -> None:
    clock = clock_at(NINE, NINE, is_open=is_open)
    assert expected == clock.due_tick(LIVE, now, is_idle=is_idle)


def test_time_goes_on_no_nearer_to_the_rows_than_they_are_held_back() -> None:
    """Else a tick would be due for ever, or rows would wait less than was asked for."""
    clock, held = clock_at(NINE, NINE - 3 * LAG, is_open=True), 6000
    assert None is clock.due_tick(LIVE, NINE + LAG, held, is_idle=False)
    assert NINE + LAG == clock.due_tick(LIVE, NINE + 4 * LAG, held, is_idle=True)


def test_a_broker_that_is_further_moves_the_time_of_others() -> None:
    clock = clock_at(NINE, NINE, is_open=True)
    row = {"broker": "other", "event_time": NINE + 3 * LAG, "watermark": NINE + 3 * LAG, "is_open": False}
    clock.take(pa.Table.from_pylist([row], PROGRESS))
    assert NINE + 2 * LAG == clock.due_tick(LIVE, NINE + 4 * LAG, is_idle=False)
    assert None is Clock().due_tick(LIVE, NINE, is_idle=True)
