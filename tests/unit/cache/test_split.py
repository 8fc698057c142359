"""How rows are cut into batches, and in which order they come, does not show (entry-cache 1, 17.6)."""

import json
from itertools import islice, pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from headgate.cache.forms import AnyCache, readable
from headgate.cache.step import CacheRules
from headgate.cache.stored.state import decode_broker
from headgate.core.cache.settings import PolicyName
from headgate.core.cache.state import dump
from headgate.core.cache.traces.workload import generate
from unit.cache.runs import MAX_BYTES, SECOND, TTL_MS, SlotRun, begun, block, change, event, rows_from, tick

HOLD_BACK_US = 700_000
BROKERS, TOPICS, CURSORS = ("a", "b"), ("t", "u"), ("c", "d")
KINDS = (
    *("add", "add", "add", "read", "read", "read", "open", "move", "mark", "close", "replay_add", "replay_read"),
    *("release", "ledger_delete", "topic_clear", "conf", "sneeze"),
)
quick = settings(max_examples=examples(25))
times = st.integers(0, 40).map(lambda n: n * 97_000)


@st.composite
def event_rows(draw: Any) -> dict[str, Any]:
    kind = draw(st.sampled_from(KINDS))
    row = event(kind, draw(times), draw(st.integers(0, 500)), broker=draw(st.sampled_from(BROKERS)))
    if kind == "conf":
        conf = json.dumps({MAX_BYTES: draw(st.integers(-100, 900))})
        return row | {"topic": draw(st.sampled_from([None, *TOPICS])), "conf": conf}
    entry = draw(st.integers(0, 12))
    row |= {"topic": draw(st.sampled_from(TOPICS)), "cursor": draw(st.sampled_from(CURSORS)), "ledger": 0}
    return row | {"entry": entry, "count": 1, "sizes": [draw(st.sampled_from([0, 10, 100, 300]))]}


OPENED = [
    event("open", 0, number, topic=topic, cursor=cursor, entry=0, broker=broker)
    for number, (topic, cursor, broker) in enumerate((t, c, b) for t in TOPICS for c in CURSORS for b in BROKERS)
]
some_rows = st.lists(event_rows(), max_size=60).map(lambda rows: unlike(OPENED + rows))


def unlike(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows in order, one at each place of it: which of two comes first is not told by the order."""
    by_place = {(row["event_time_us"], row["seq"], row["broker"]): row for row in reversed(rows)}
    return [by_place[place] for place in sorted(by_place)]


def results(slot: SlotRun) -> tuple[Any, ...]:
    """What was told, and the state. Batches know nothing of each other's brokers, so order is by broker."""
    caches = {name: plain(decode_broker(name, stored).cache) for name, stored in sorted(slot.state.brokers.items())}
    evictions = sorted(slot.told["evictions"], key=lambda row: row["broker"])
    letters = sorted(slot.told["dead_letters"], key=lambda row: row["raw"])
    return sorted(slot.told["metrics"], key=_place), evictions, letters, caches


def _place(row: dict[str, Any]) -> tuple[str, ...]:
    return row["broker"], str(row["second"]), str(row["until"]), row["topic"] or ""


def plain(cache: AnyCache) -> Any:
    """State without what both forms may do differently: the order of some lists, and which topics are swept in vain."""
    state = dump(readable(cache))
    state["policy"].pop("sweeps", None)
    for topic in state["topics"]:
        topic["marks"].sort()
        topic["highest"].sort()
    counts = {name: sorted(state.pop(name).items()) for name in ("misses_by_reason", "dead_letters")}
    return json.loads(json.dumps(state | counts))


def told(values: dict[str, Any], batches: list[list[dict[str, Any]]], hold_back_us: int, *, early: bool) -> SlotRun:
    """early: whether the change of conf files is heard of before the rows, or before the second batch of them."""
    lowered = change(2 * SECOND, **{MAX_BYTES: 350})
    slot = begun(values, CacheRules(hold_back_us, evictions=True))
    for number, rows in enumerate(batches):
        slot.batch(*([lowered] if number == (0 if early else 1) else []), block(rows))
    return slot.batch(tick(10 * SECOND, finish=True))


VALUES = {MAX_BYTES: 600, TTL_MS: 300}


@quick
@given(some_rows, st.lists(st.integers(0, 68), max_size=6), st.data())
def test_cuts_and_the_order_of_arrival_change_nothing(rows: list[dict[str, Any]], cuts: list[int], data: Any) -> None:
    """Within what is held back; state is stored and read back after every batch."""
    arrival = sorted(rows, key=lambda row: row["event_time_us"] + data.draw(st.integers(0, HOLD_BACK_US - 1)))
    places = [0, *sorted(cuts), len(rows)]
    cut = [arrival[begin:end] for begin, end in pairwise(places)]
    assert results(told(VALUES, [rows], 0, early=True)) == results(told(VALUES, cut, HOLD_BACK_US, early=True))


@quick
@given(some_rows, st.integers(0, 68))
def test_when_a_change_of_conf_files_is_heard_of_does_not_show_before_its_time(
    rows: list[dict[str, Any]], place: int
) -> None:
    first = [row for row in rows[:place] if row["event_time_us"] < 2 * SECOND]
    whole = told(VALUES, [rows], 0, early=True)
    assert results(whole) == results(told(VALUES, [first, rows[len(first) :]], 0, early=False))


@pytest.mark.parametrize(
    ("policy", "release"),
    [
        *((policy, "immediate") for policy in PolicyName if policy is not PolicyName.BELADY),
        *((policy, "explicit") for policy in (PolicyName.PIP430, PolicyName.LRU)),
    ],
)
def test_every_policy_is_cut_without_a_trace(policy: str, release: str) -> None:
    values = {MAX_BYTES: 40_000, "headgate.cache.policy": policy, "headgate.cache.release": release}
    rows = rows_from(islice(generate("mixed", 2, "skewed"), 250))
    cut = [rows[begin:end] for begin, end in pairwise([0, 7, 150, 151, 250])]
    assert results(told(values, [rows], 0, early=True)) == results(told(values, cut, 0, early=True))
