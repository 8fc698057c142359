"""Rows of a broker through the job without its engine: order, seconds, conf, dead letters, ends."""

from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.cache.schemas import ROWS
from headgate.cache.step import CacheRules
from headgate.cache.watermark import in_order
from headgate.core.cache.broker import Cache
from headgate.core.cache.settings import CacheSettings
from headgate.core.cache.traces.workload import generate
from headgate.errors import StateError
from unit.cache.runs import (
    BROKER,
    MAX_BYTES,
    SECOND,
    TTL_MS,
    SlotRun,
    begun,
    change,
    event,
    rows_from,
    run,
    tick,
    totals,
)

SMALL = {MAX_BYTES: 1000}


def at(seconds: float) -> datetime:
    return datetime.fromtimestamp(0, UTC) + timedelta(seconds=seconds)


def add(t_us: int, seq: int, entry: int, size: int = 100, **more: Any) -> dict[str, Any]:
    return event("add", t_us, seq, entry=entry, count=1, sizes=[size], **more)


def read(t_us: int, seq: int, entry: int, count: int = 1, **more: Any) -> dict[str, Any]:
    return event("read", t_us, seq, cursor="c", entry=entry, count=count, sizes=[100], **more)


OPEN = event("open", 0, 0, cursor="c", entry=0)


def test_what_is_told_of_the_last_second_is_what_the_rules_count() -> None:
    rows = list(islice(generate("replay", 1), 4000))
    settings = {MAX_BYTES: 200_000}
    cache = Cache(CacheSettings.of(settings))
    for row in rows:
        cache.feed(row)
    totals_, names = cache.totals(), {"storage_ops": "storage_reads", "bytes": "used_bytes"}
    expected = {names.get(name, name): value for name, value in totals_.items() if name != "dead"}
    last = [row for row in run(settings, rows_from(rows)).told["metrics"] if row["topic"] is None][-1]
    assert expected == {name: last[name] for name in expected}
    assert (cache.finished_bytes(), cache.pinned_bytes()) == (last["finished_bytes"], last["pinned_bytes"])
    assert cache.misses_by_reason() == dict(last["misses_by_reason"])


def test_a_second_is_told_at_its_end_and_the_open_one_at_the_end_of_the_input() -> None:
    """Rates are of the second alone; an hour without rows is told by nobody."""
    rows = [OPEN, add(10, 1, 0), read(20, 2, 0), read(SECOND, 3, 0, 2), read(3600 * SECOND, 4, 5)]
    slot = run(SMALL, rows)
    assert [
        (at(0), at(1), 1, 0, 1.0, 100.0, 0.0),
        (at(1), at(2), 1, 2, 0.0, 0.0, 2.0),
        (at(3600), at(3600), 1, 3, 0.0, 0.0, 1.0),
    ] == slot.seconds("second", "until", "hits", "misses", "hits_rate", "hits_throughput", "misses_rate")


def test_gauges_are_those_of_the_end_of_the_second() -> None:
    """What is too old by then has left, although no row came."""
    rows = [OPEN, add(10, 1, 0), add(3 * SECOND, 2, 1)]
    slot = run(SMALL | {TTL_MS: 100, "cacheEvictionByExpectedReadCount": False}, rows)
    assert [(at(0), 0, 1), (at(3), 1, 1)] == slot.seconds("second", "entries", "expired")
    assert [(at(0), 0), (at(3), 1)] == slot.seconds("second", "entries", topic="t")


def test_topics_are_told_of_in_the_seconds_that_concern_them() -> None:
    """One that rows were about, and one whose entries left."""
    rows = [
        OPEN,
        event("open", 1, 1, cursor="c", entry=0, topic="u"),
        add(10, 2, 0),
        add(SECOND + 1, 3, 0, topic="u"),
        event("open", 2 * SECOND, 4, cursor="c", entry=0, topic="v"),
        add(2 * SECOND + 1, 5, 0, 900, topic="v"),
    ]
    slot = run(SMALL | {TTL_MS: 10_000}, rows)
    told = {topic: [second for (second,) in slot.seconds("second", topic=topic)] for topic in "tuv"}
    assert {"t": [at(0), at(2)], "u": [at(0), at(1), at(2)], "v": [at(2)]} == told


def test_rows_wait_until_the_watermark_has_passed_them_and_are_fed_in_order() -> None:
    rules = CacheRules(hold_back_us=SECOND)
    slot = begun(SMALL, rules).rows(read(500_000, 5, 0), OPEN, add(400_000, 3, 0))
    assert [(3, 0)] == [(row["waiting"], row["dead_letters"]) for row in slot.told["progress"]]
    slot.rows(add(450_000, 4, 1), event("mark", 1_600_000, 9, cursor="c", entry=0))
    assert (1, 600_000) == (slot.state.brokers[BROKER].waiting, slot.state.brokers[BROKER].done_us)
    slot.batch(tick(1_600_000, finish=True))
    assert [(1, 0)] == slot.seconds("hits", "misses")[:1]
    assert [] == slot.reasons()


@pytest.mark.parametrize(
    "odd",
    [
        event("sneeze", 90 * SECOND, 9),
        event("add", 90 * SECOND, 9, entry=0),
        event("conf", 90 * SECOND, 9, conf={"managedLedgerCacheEvictionWatermark": 7}),
    ],
)
def test_a_row_that_changes_nothing_moves_no_watermark(odd: dict[str, Any]) -> None:
    """Rows behind it wait for each other, and a second goes on, as without it; it is refused as it comes."""
    rules = CacheRules(hold_back_us=SECOND)
    rest = [add(1_600_000, 5, 2)], [add(1_500_000, 4, 1)]
    without = begun(SMALL, rules).rows(OPEN, add(400_000, 3, 0))
    slot = begun(SMALL, rules).rows(OPEN, add(400_000, 3, 0), odd)
    assert 1 == len(slot.reasons())
    assert (400_000, 2) == (slot.state.brokers[BROKER].high_us, slot.state.brokers[BROKER].waiting)
    for rows in rest:
        slot.rows(*rows)
        without.rows(*rows)
    finish = tick(1_600_000, finish=True)
    names = ("second", "until", "inserted", "used_bytes", "dead_letters")
    assert without.batch(finish).seconds(*names) == slot.batch(finish).seconds(*names)
    assert 1 == len(slot.reasons())


def test_a_broker_of_which_no_row_can_act_has_dead_letters_and_waits_for_nothing() -> None:
    slot = begun(SMALL).rows(*(event("sneeze", 90 * SECOND + place, place) for place in range(3)))
    assert ["unknown_kind"] * 3 == slot.reasons()
    (progress,) = slot.told["progress"]
    assert (3, 3, None, False) == tuple(progress[name] for name in ("rows", "dead_letters", "event_time", "is_open"))


def test_a_row_behind_the_watermark_acts_unless_a_later_one_was_accepted() -> None:
    slot = begun(SMALL).rows(OPEN).batch(tick(900)).rows(add(800, 2, 0), add(700, 1, 1)).rows(add(750, 8, 2))
    assert ["add_not_increasing", "late"] == slot.reasons()
    assert [(1, 0), (0, 0), (2, 0), (1, 1)] == [(row["rows"], row["late"]) for row in slot.told["progress"]]


@pytest.mark.parametrize(
    ("row", "columns"),
    [
        (event("add", 5, 1, entry=0), "sizes"),
        (event("add", 5, 1, entry=-1, count=0, sizes=[0, 7], ledger=None), "ledger, entry, count, sizes"),
        (event("add", 5, 1, entry=0, count=-1, sizes=[7, 7]), "count"),
        (event("read", 5, 1, cursor="", entry=0, count=2, sizes=[1, 2]), "cursor"),
        (event("read", 5, 1, cursor="c", entry=0, count=2, sizes=[1, 2, 3]), "sizes"),
        (event("read", 5, 1, cursor="c", entry=(1 << 63) - 3, count=10, sizes=[1]), "entry and count"),
        (event("replay_read", 5, 1, cursor="c", entry=0, count=2, sizes=[1]), "count"),
        (event("open", 5, 1, cursor=None, entry=0, topic=""), "topic, cursor"),
        (event("move", 5, 1, cursor="c", entry=0, ledger=None), "ledger"),
        (event("open", 5, 1, cursor=""), "cursor"),
        (event("mark", 5, 1, cursor="c", entry=0, count=2, sizes=[0, 0]), "count"),
        (event("add", 5, -1, entry=0, sizes=[7]), "seq"),
        (event("conf", 5, 1) | {"conf": "[1"}, "conf"),
    ],
)
def test_the_columns_at_fault_are_named(row: dict[str, Any], columns: str) -> None:
    (letter,) = run(SMALL, [row]).told["dead_letters"]
    assert letter["reason"].endswith(f"; at fault: {columns}")


def test_of_two_rows_at_one_place_in_the_order_one_is_late() -> None:
    assert ["late"] == run(SMALL, [OPEN, add(5, 1, 0), add(5, 1, 3)]).reasons()


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (event("sneeze", 5, 1), "unknown_kind: got 'sneeze', allowed is add, open, move"),
        (event("add", 5, 1, entry=0), "bad_row: add needs topic, ledger and entry from 0, count null or 1 to 10000"),
        (event("read", 5, 1, cursor="", entry=0, sizes=[1]), "bad_row: read needs topic, cursor"),
        (event("read", 5, 1, cursor="c", entry=0, count=2, sizes=[1, 2, 3]), "bad_row: read needs"),
        (event("conf", 5, 1, conf={}), "bad_row: conf: got nothing"),
        (event("conf", 5, 1, conf={"headgate.cache.policy": "lru"}), "bad_row: headgate.cache.policy: got a fixed key"),
        (event("conf", 5, 1) | {"conf": "[1"}, "bad_row: conf needs conf, an object"),
        (event("close", 5, 1, cursor="x"), "unknown_cursor: the cursor is not open"),
        (event("release", 5, 1, cursor="c", entry=0), "unknown_copy: "),
        (event("open", 0, 0, cursor="x", entry=0), "late: (event_time, seq) is not above"),
    ],
)
def test_a_refused_row_is_a_dead_letter_that_says_why(row: dict[str, Any], reason: str) -> None:
    slot = run(SMALL, [OPEN], [row], [add(50, 2, 0)])
    (letter,) = slot.told["dead_letters"]
    assert letter["reason"].startswith(reason)
    assert f'"seq": {row["seq"]}' in letter["raw"]
    word = reason.partition(":")[0]
    in_turn = [] if word in {"bad_row", "unknown_kind"} else [(word, 1)]
    assert [(in_turn, 1)] == slot.seconds("dead_letters", "entries")


def test_a_dead_letter_has_the_text_and_the_place_of_its_row() -> None:
    row = event("add", 5, 1, entry=0, sizes=[]) | {"raw": "{as it came}", "source": "file:a", "offset": 7}
    assert [("{as it came}", "file:a", 7)] == [
        (letter["raw"], letter["source"], letter["offset"]) for letter in run(SMALL, [OPEN, row]).told["dead_letters"]
    ]


def test_evictions_have_their_cause_and_the_time_of_what_they_left_with() -> None:
    rows = [OPEN, add(10, 1, 0, 500), add(20, 2, 1, 600), event("topic_clear", 30, 3)]
    assert [("evicted", 0, at(0.00002), 2), ("invalidated", 1, at(0.00003), 3)] == [
        (row["cause"], row["entry"], row["event_time"], row["seq"]) for row in run(SMALL, rows).told["evictions"]
    ]
    assert [] == run(SMALL, rows, rules=CacheRules()).told["evictions"]


def test_conf_rows_change_the_limit_of_their_broker() -> None:
    lowered = event("conf", 20, 2, conf={MAX_BYTES: 400})
    rows = [OPEN, add(10, 1, 0, 500), add(10, 1, 0, 500, broker="b"), lowered, add(SECOND, 3, 1)]
    assert [("evicted", BROKER)] == [(row["cause"], row["broker"]) for row in run(SMALL, rows).told["evictions"]]


LOWERED = change(30, **{MAX_BYTES: 400})
AROUND = [OPEN, add(10, 1, 0, 500), add(20, 2, 1, 50), add(30, 0, 2, 50), add(40, 1, 3, 50)]


def test_changed_files_hold_for_every_row_from_their_time_on_whenever_they_are_heard_of() -> None:
    """And no row is late by them; a broker that comes later begins with the first conf, and then has the change."""
    early = SlotRun().batch(change(**SMALL), LOWERED).rows(*AROUND).batch(tick(40, finish=True))
    between = begun(SMALL).rows(*AROUND[:3]).batch(LOWERED).rows(*AROUND[3:]).batch(tick(40, finish=True))
    assert [("evicted", 0, at(0.00003), 0)] == [
        (row["cause"], row["entry"], row["event_time"], row["seq"]) for row in early.told["evictions"]
    ]
    assert [] == early.reasons() == between.reasons()
    assert totals(early) == totals(between)
    assert early.told["evictions"] == between.told["evictions"]
    assert 400 == SlotRun(state=early.state).rows(OPEN | {"broker": "new", "event_time_us": 50}).limit_of("new")


def test_a_change_that_comes_after_its_time_is_made_before_the_next_row() -> None:
    slot = begun(SMALL).rows(OPEN, add(50, 1, 0, 500)).batch(LOWERED).rows(add(60, 2, 1, 50))
    assert [("evicted", at(0.00006))] == [(row["cause"], row["event_time"]) for row in slot.told["evictions"]]


def test_a_quiet_broker_is_told_of_when_time_has_passed_its_second_and_again_if_rows_come() -> None:
    slot = begun(SMALL).rows(OPEN, add(10, 1, 0))
    assert [] == slot.told["metrics"]
    slot.batch(tick(SECOND - 1)).batch(tick(SECOND)).batch(tick(2 * SECOND))
    assert [(at(0), at(0.00001), 1)] == slot.seconds("second", "until", "inserted")
    slot.rows(add(20, 2, 1)).rows(add(SECOND, 3, 2))
    assert [(at(1), 2)] == slot.seconds("until", "inserted")[-1:]


def test_a_tick_is_the_watermark_whatever_is_held_back() -> None:
    slot = begun(SMALL, CacheRules(hold_back_us=SECOND)).rows(OPEN, add(10, 1, 0)).batch(tick(9))
    assert 1 == slot.state.brokers[BROKER].waiting
    assert 0 == slot.batch(tick(10)).state.brokers[BROKER].waiting


def test_a_finish_counts_where_nothing_is_above_its_time() -> None:
    slot = begun(SMALL, CacheRules(hold_back_us=SECOND)).rows(OPEN, add(10, 1, 0)).batch(tick(5, finish=True))
    assert 2 == slot.state.brokers[BROKER].waiting
    slot.batch(tick(10, finish=True))
    assert (0, [(1,)]) == (slot.state.brokers[BROKER].waiting, slot.seconds("inserted"))


def test_a_finish_that_is_not_for_a_broker_tells_nothing_of_it() -> None:
    """Rows of its open second are held back still."""
    rules = CacheRules(hold_back_us=SECOND)
    slot = begun(SMALL, rules).rows(OPEN, add(10, 1, 0), add(900_000, 2, 1), add(1_500_000, 3, 2))
    assert [] == slot.batch(tick(1_200_000, finish=True)).told["metrics"]


def test_brokers_that_nothing_came_for_stay_as_bytes() -> None:
    slot = begun(SMALL).rows(*(OPEN | {"broker": name} for name in "ab"))
    before = dict(slot.state.brokers)
    slot.rows(add(5, 1, 0, broker="b"))
    assert (True, False) == tuple(before[name] == slot.state.brokers[name] for name in "ab")


def test_rows_before_any_conf_are_an_error() -> None:
    with pytest.raises(StateError, match="before the conf"):
        SlotRun().rows(OPEN)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 2)), max_size=8))
def test_rows_are_in_order_however_they_came(places: list[tuple[int, int, int]]) -> None:
    """By time, number and then the rest of a row, also where nothing has to be done for it."""
    table = pa.Table.from_pylist([add(t_us, seq, entry) for t_us, seq, entry in places], ROWS)
    names = ("event_time_us", "seq", "entry")
    assert sorted(places) == [tuple(row[name] for name in names) for row in in_order(table).to_pylist()]
