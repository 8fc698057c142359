"""Shards that are keys of their own and meet round by round are the cache of the rules, however rows are cut."""

from collections import Counter
from itertools import islice, pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from headgate.cache.apply_events import rows_of
from headgate.cache.horizon.meeting import horizons_of
from headgate.cache.horizon.schemas import REPORTS
from headgate.cache.schemas import ROWS
from headgate.cache.step import CacheRules
from headgate.core.cache.horizon.horizon_cache import HorizonCache
from headgate.core.cache.rows import Row
from headgate.core.cache.settings import CacheSettings
from headgate.core.cache.traces.workload import generate
from headgate.errors import StateError
from unit.cache.horizon.runs import Slots, run
from unit.cache.runs import MAX_BYTES, SECOND, TTL_MS, change, event, rows_from, tick
from unit.cache.test_split import BROKERS, some_rows

HORIZON = {"headgate.cache.mode": "horizon"}
SHARE, ROUND_ROWS, SHARDS = (f"headgate.cache.horizon.{name}" for name in ("roundShare", "roundRows", "shards"))
VALUES = HORIZON | {MAX_BYTES: 600, TTL_MS: 300, SHARE: 0.5, SHARDS: 3}
SAME = ("hits", "misses", "storage_bytes", "inserted", "expired", "evicted", "dropped", "invalidated", "requeues")
AT_ONCE = {"bad_row", "unknown_kind"}
quick = settings(max_examples=examples(12))


def told(slots: Slots) -> tuple[Any, ...]:
    """What holds of each second, evictions, dead letters and horizons, whatever came in which batch."""
    last = {(row["broker"], row["topic"] or "", row["second"]): row for row in slots.told["metrics"]}
    rest = (sorted(map(repr, rows)) for rows in (slots.told["evictions"], slots.told["dead_letters"], slots.horizons))
    return [last[place] for place in sorted(last)], *rest


def core_rows(rows: list[dict[str, Any]], broker: str) -> list[Row]:
    """The rows of a broker as the core takes them, in order."""
    own = sorted((row for row in rows if row["broker"] == broker), key=lambda row: (row["event_time_us"], row["seq"]))
    return rows_of(pa.Table.from_pylist(own, ROWS))


def test_a_second_that_is_told_of_twice_while_shards_wait_for_a_round_counts_once() -> None:
    """A late row, or one of the same time, lets it be told of again; shards come to both marks in one batch."""
    opened = event("open", 1000, 0, cursor="c", entry=0)
    rows = [opened, *(event("add", 500_000, 1 + n, entry=n, count=1, sizes=[160]) for n in range(5))]
    late = event("read", 900, 0, cursor="c", entry=4, count=1, sizes=[50])
    later = event("add", 500_000, 9, entry=5, count=1, sizes=[40])
    at_once = run(VALUES, [[*rows, later]]).told["metrics"]
    slots = Slots(CacheSettings.of(VALUES), CacheRules()).batch((), change(**VALUES))
    slots.batch(rows).batch((), tick(SECOND)).batch([late, later], tick(SECOND + 1))
    slots.batch((), tick(2 * SECOND, finish=True))
    assert slots.next
    *_, broker, topic = slots.still().told["metrics"]
    assert [("late", 1)] == broker["dead_letters"]
    assert at_once == [broker | {"dead_letters": []}, topic]


def test_a_quiet_broker_is_told_of_when_time_has_passed_its_second() -> None:
    slots = Slots(CacheSettings.of(VALUES), CacheRules()).batch((), change(**VALUES))
    slots.batch([event("open", 1000, 0, cursor="c", entry=0)]).batch((), tick(SECOND - 1)).still()
    assert [] == slots.told["metrics"]
    slots.batch((), tick(SECOND)).still()
    assert [None, "t"] == [row["topic"] for row in slots.told["metrics"]]


@quick
@given(some_rows, st.sampled_from([{}, {ROUND_ROWS: 1}, {ROUND_ROWS: 3, SHARDS: 1}]))
def test_shards_together_do_what_the_rules_say(rows: list[dict[str, Any]], more: dict[str, Any]) -> None:
    slots = run(VALUES | more, [rows])
    for broker in BROKERS:
        cache = HorizonCache(CacheSettings.of(VALUES | more))
        own = core_rows(rows, broker)
        outcomes = [cache.feed(row) for row in own]
        outcomes += [shard.advance(cache.now_us) for shard in cache.shards]
        last = [row for row in slots.told["metrics"] if row["broker"] == broker and row["topic"] is None][-1]
        totals = cache.totals() | {"peak_bytes": cache.peak_bytes}
        assert {name: totals[name] for name in (*SAME, "size_passes", "peak_bytes")} == {
            name: last[name] for name in (*SAME, "size_passes", "peak_bytes")
        }
        assert (cache.rounds, cache.inflow_share) == (last["horizon_rounds"], last["horizon_inflow_share"])
        assert cache.busy_rounds == last["horizon_busy_rounds"]
        refused_in_turn = {str(reason): n for reason, n in cache.dead_letters.items() if reason not in AT_ONCE}
        assert refused_in_turn == dict(last["dead_letters"])
        assert cache.misses_by_reason() == dict(last["misses_by_reason"])
        gone = Counter((left.topic, left.ledger, left.entry, str(left.cause)) for o in outcomes for left in o.removed)
        evicted = (row for row in slots.told["evictions"] if row["broker"] == broker)
        assert gone == Counter((row["topic"], row["ledger"], row["entry"], row["cause"]) for row in evicted)


@quick
@given(some_rows, st.lists(st.integers(0, 68), max_size=4), st.booleans())
def test_where_batches_end_does_not_show(rows: list[dict[str, Any]], cuts: list[int], early: bool) -> None:
    """Also with a change of conf files, of which keys hear before all rows or in the middle of them."""
    lowered = change(2 * SECOND, **{MAX_BYTES: 350})
    rows = [row for row in rows if early or row["event_time_us"] < 2 * SECOND]
    places = [0, *sorted(cuts), len(rows)]
    whole = run(VALUES, [rows], lowered)
    slots = Slots(CacheSettings.of(VALUES), CacheRules(evictions=True)).batch((), change(**VALUES))
    for number, (begin, end) in enumerate(pairwise(places)):
        slots.batch(rows[begin:end], *([lowered] if number == 0 else []))
    assert told(whole) == told(slots.batch((), tick(10 * SECOND, finish=True)).still())


def test_the_number_of_shards_does_not_show_with_lines_of_one_entry() -> None:
    """The totals of each second, too; only what a pass costs is counted by shard."""
    rows = rows_from(islice(generate("mixed", 2, "skewed"), 400))
    values = HORIZON | {MAX_BYTES: 300_000, SHARE: 0.2, "headgate.cache.horizon.chunkDivisor": 0}
    one, five = (told(run(values | {SHARDS: shards}, [rows])) for shards in (1, 5))
    assert len(one[3]) > 5
    assert one == five


def test_a_second_counts_what_all_shards_did_in_it() -> None:
    opened = [event("open", 0, n, topic=topic, cursor="c", entry=0) for n, topic in enumerate("tuv")]
    added = [event("add", 10, 3 + n, topic=topic, entry=0, count=1, sizes=[10]) for n, topic in enumerate("tuv")]
    read = [
        event("read", SECOND + 5, 6 + n, topic=topic, cursor="c", entry=0, count=1, sizes=[10])
        for n, topic in enumerate("tuv")
    ]
    slots = run(HORIZON | {MAX_BYTES: 1000}, [opened + added + read])
    of_broker = [row for row in slots.told["metrics"] if row["topic"] is None]
    assert [(3, 0, 30, 0.0), (3, 3, 30, 3.0)] == [
        (row["inserted"], row["hits"], row["used_bytes"], row["hits_rate"]) for row in of_broker
    ]
    assert ["t", "u", "v"] * 2 == [row["topic"] for row in slots.told["metrics"] if row["topic"]]


def test_a_round_that_not_all_shards_report_is_an_error() -> None:
    report = dict.fromkeys(REPORTS.names) | {"broker": "b", "round": 7, "shard": 0}
    with pytest.raises(StateError, match="broker b: 1 of 3 shards report the round 7"):
        horizons_of(pa.Table.from_pylist([report], REPORTS), 3)
