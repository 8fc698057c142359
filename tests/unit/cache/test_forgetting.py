"""Topics that hold nothing and are silent are forgotten; tables do not change by it."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from headgate.cache.forms import topics_and_cursors
from headgate.cache.step import CacheRules
from headgate.cache.stored.state import decode_broker
from headgate.core.cache.broker import Cache
from headgate.core.cache.settings import PolicyName
from unit.cache.runs import BROKER, MAX_BYTES, SECOND, TTL_MS, SlotRun, begun, block, event, tick
from unit.cache.test_forms import POLICIES, POLICY, some_rows
from unit.cache.test_split import results

HOUR = 3600 * SECOND
SILENT_US = 2 * HOUR
REASONS = "headgate.cache.reasonMemory"
KERNELS = ("numba", "python")
POLICIES_OF = {"numba": POLICIES, "python": [str(one) for one in PolicyName if one is not PolicyName.BELADY]}
VALUES = {MAX_BYTES: 600, TTL_MS: 300}
quick = settings(max_examples=examples(24))


def rules(kernel: str, silent_us: int = SILENT_US) -> CacheRules:
    return CacheRules(evictions=True, kernel=kernel, silent_us=silent_us)


def told(batches: list[list[dict[str, Any]]], *kinds: CacheRules, **values: Any) -> SlotRun:
    slot = begun(VALUES | values)
    for number, rows in enumerate(batches):
        slot.rules = kinds[number % len(kinds)]
        slot.batch(block(rows))
    return slot.batch(tick(1000 * HOUR, finish=True))


def of_hours(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What came in tenths of a second comes in hours."""
    by_place = {(row["event_time_us"], row["seq"], row["broker"]): row for row in reversed(rows)}
    spread = [row | {"event_time_us": row["event_time_us"] * 10_000} for _, row in sorted(by_place.items())]
    return [{**row, "seq": number} for number, row in enumerate(spread)]


@pytest.mark.parametrize("policy", POLICIES)
@quick
@given(rows=some_rows, cuts=st.lists(st.integers(0, 48), max_size=4), memory=st.sampled_from([0, 3]))
def test_what_is_forgotten_and_comes_again_is_the_same_in_both_forms_and_however_rows_are_cut(
    policy: str, rows: list[dict[str, Any]], cuts: list[int], memory: int
) -> None:
    rows = of_hours([*opened(), *rows])
    batches = [rows[begin:end] for begin, end in pairwise([0, *sorted(cuts), len(rows)])]
    values = {POLICY: policy, REASONS: memory}
    expected = results(told([rows], rules("python"), **values))
    for kernels in (["numba"], ["numba", "python"]):
        assert expected == results(told(batches, *map(rules, kernels), **values))


def opened() -> list[dict[str, Any]]:
    return [event("open", 0, number, topic=topic, cursor="c", entry=0, broker="a") for number, topic in enumerate("tu")]


@st.composite
def short_lives(draw: Any) -> list[dict[str, Any]]:
    """Topics that have rows for an hour at most, and never again."""
    rows = []
    for number in range(draw(st.integers(1, 12))):
        begin_us, topic = draw(st.integers(0, 20)) * HOUR // 2, f"t-{number}"
        kinds = draw(st.lists(st.sampled_from(("add", "add", "read", "replay_add", "replay_read", "ledger_delete"))))
        last = draw(st.sampled_from([["close"], ["close"], []]))
        for place, kind in enumerate(["open", *kinds, *last]):
            row = event(kind, begin_us + place * SECOND // 3, 0, topic=topic, cursor="c")
            rows.append(row | {"ledger": 0, "entry": draw(st.integers(0, 9)), "count": 1, "sizes": [100]})
    rows.sort(key=lambda row: row["event_time_us"])
    return [row | {"seq": number} for number, row in enumerate(rows)]


@pytest.mark.parametrize("kernel", KERNELS)
@quick
@given(rows=short_lives(), cuts=st.lists(st.integers(0, 60), max_size=3), chosen=st.data())
def test_forgetting_changes_no_table(
    kernel: str, rows: list[dict[str, Any]], cuts: list[int], chosen: st.DataObject
) -> None:
    policy = chosen.draw(st.sampled_from(POLICIES_OF[kernel]))
    batches = [rows[begin:end] for begin, end in pairwise([0, *sorted(cuts), len(rows)])]
    forgot, kept = (told(batches, rules(kernel, silent_us), **{POLICY: policy}) for silent_us in (SILENT_US, 0))
    assert kept.told == forgot.told


@pytest.mark.parametrize(("kernel", "policy"), [(kernel, one) for kernel in KERNELS for one in POLICIES_OF[kernel]])
def test_state_does_not_grow_with_topics_cursors_and_ledgers_that_have_gone(kernel: str, policy: str) -> None:
    slot, sizes = begun(VALUES | {POLICY: policy, REASONS: 3}, rules(kernel)), []
    for hour in range(30):
        of_hour = f"of-{hour}"
        rows = [
            event("open", 0, 0, topic="stays", cursor=f"reader-{hour}", entry=0),
            event("add", 1, 1, topic="stays", entry=0, count=1, sizes=[300]) | {"ledger": hour},
            event("close", 2, 2, topic="stays", cursor=f"reader-{hour}"),
            event("open", 3, 3, topic=of_hour, cursor="c", entry=0),
            event("read", 4, 4, topic=of_hour, cursor="c", entry=0, count=1, sizes=[300]),
            event("close", 5, 5, topic=of_hour, cursor="c"),
            event("read", 6, 6, topic=of_hour, cursor="unknown", entry=0, count=1, sizes=[300]),
        ]
        slot.rows(*(row | {"event_time_us": hour * HOUR + row["event_time_us"]} for row in rows))
        sizes.append(size_of(slot))
    assert all(last <= 2 * first for first, last in zip(sizes[9], sizes[-1], strict=True)), (sizes[9], sizes[-1])
    hits, misses = slot.batch(tick(31 * HOUR, finish=True)).seconds("hits", "misses")[-1]
    assert 60 == hits + misses


def size_of(slot: SlotRun) -> tuple[int, ...]:
    """Of topics, and in array form also of names and ledgers that have a number."""
    cache = decode_broker(BROKER, slot.state.brokers[BROKER]).cache
    topics, _ = topics_and_cursors(cache)
    if isinstance(cache, Cache):
        return (topics,)
    stored = cache.dump()
    is_distance = cache.settings.policy is PolicyName.CURSOR_DISTANCE
    ledgers = [] if is_distance else stored["arrays"]["spaces"]  # their last entries are kept
    return topics, len(stored["topics"]), len(stored["cursors"]), len(ledgers)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_topic_that_holds_something_or_had_a_row_is_kept(kernel: str) -> None:
    rows = [
        event("open", 0, 0, topic="open", cursor="c", entry=0),
        event("open", 1, 1, topic="silent", cursor="c", entry=0),
        event("close", 2, 2, topic="silent", cursor="c"),
        event("topic_clear", HOUR, 3, topic="cleared"),
        event("topic_clear", 3 * HOUR, 4, topic="cleared"),
        event("mark", 5 * HOUR, 5, topic="open", cursor="c", entry=0),
    ]
    slot = begun(VALUES, rules(kernel)).rows(*rows)
    assert ["open", "cleared"] == [topic["name"] for topic in results(slot)[3][BROKER]["topics"]]
