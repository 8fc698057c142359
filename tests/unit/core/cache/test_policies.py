"""Which entries each policy keeps: textbook rules, tables, and a brute-force search (section 10)."""

import json
import random
from collections import OrderedDict
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from headgate.core.cache.policies.capped import Capped
from headgate.core.cache.policies.registry import POLICIES
from headgate.core.cache.rows import Row
from headgate.core.cache.state import dump, load
from headgate.core.cache.topics import topic as topic_module
from headgate.errors import InvalidArgument
from unit.core.cache.traces import TTL, Rows, cache_of, cached

accesses = st.lists(st.integers(0, 9), min_size=1, max_size=80)


class Textbook:
    """A cache of so many keys that inserts on a miss."""

    def __init__(self, capacity):
        self.capacity = capacity
        self.keys = OrderedDict()
        self.hand = None

    def access(self, key):
        if key in self.keys:
            self.hit(key)
            return True
        if len(self.keys) == self.capacity:
            self.evict()
        self.keys[key] = False
        return False

    def hit(self, key):
        self.keys[key] = True

    def evict(self):
        self.keys.popitem(last=False)


class TextbookLru(Textbook):
    def hit(self, key):
        self.keys.move_to_end(key)


class TextbookSieve(Textbook):
    def evict(self):
        order = list(self.keys)
        place = order.index(self.hand) if self.hand is not None else 0
        while self.keys[order[place]]:
            self.keys[order[place]] = False
            place = (place + 1) % len(order)
        self.hand = order[place + 1] if place + 1 < len(order) else None
        del self.keys[order[place]]


TEXTBOOKS = {"fifo": Textbook, "lru": TextbookLru, "sieve": TextbookSieve}


@pytest.mark.parametrize("policy", TEXTBOOKS)
@given(accesses=accesses, capacity=st.integers(1, 5))
@settings(max_examples=examples(60))
def test_single_reads_hit_as_in_a_textbook(policy, accesses, capacity):
    cache, row = cache_of(policy=policy, maxBytes=100 * capacity), Rows()
    textbook = TEXTBOOKS[policy](capacity)

    for key in accesses:
        assert textbook.access(key) == bool(cache.feed(row(0, "read", cursor="c", at=(0, key))).hits)


@given(accesses=accesses, capacity=st.integers(1, 5))
@settings(max_examples=examples(60))
def test_nothing_hits_more_often_than_belady(accesses, capacity):
    row = Rows()
    rows = [row(0, "read", cursor="c", at=(0, key)) for key in accesses]

    def hits(policy):
        cache = cache_of(policy=policy, maxBytes=100 * capacity)
        if policy == "belady":
            cache.foresee(rows)
        return sum(cache.feed(one).hits for one in rows)

    assert hits("belady") >= max(map(hits, CAPPED))


def test_only_belady_is_told_the_future():
    with pytest.raises(InvalidArgument, match="belady"):
        cache_of().foresee([])


CAPPED = [*(str(name) for name, kind in POLICIES.items() if issubclass(kind, Capped)), "cursor_distance"]
"""Those that never exceed the limit."""


@pytest.mark.parametrize("policy", CAPPED)
def test_a_lower_limit_holds_at_once_under_a_hard_cap(policy):
    cache, row = cache_of(policy=policy, maxBytes=1000), Rows()
    rows = [
        row(0, "open", cursor="c", at=(0, 0)),
        row(0, "add", at=(0, 0), count=10),
        row(1, "conf", topic=None, conf={"headgate.cache.maxBytes": 350}),
        row(2, "read", cursor="c", at=(0, 0), count=10),
    ]
    if policy == "belady":
        cache.foresee(rows)
    cache.feed(rows[0])
    cache.feed(rows[1])
    outcome = cache.feed(rows[2])

    assert 300 == cache.totals()["bytes"]
    assert {"evicted"} == {removed.cause for removed in outcome.removed}


@pytest.mark.parametrize("policy", CAPPED)
def test_an_entry_larger_than_the_limit_is_not_cached(policy):
    cache, row = cache_of(policy=policy, maxBytes=1000), Rows()
    rows = [
        row(0, "open", cursor="c", at=(0, 0)),
        row(0, "add", at=(0, 0)),
        row(1, "add", at=(0, 1), sizes=[1001]),
        row(2, "read", cursor="c", at=(0, 0), count=2),
    ]
    if policy == "belady":
        cache.foresee(rows)
    for one in rows[:3]:
        cache.feed(one)

    assert [[0, 0, 0]] == cached(cache)
    cache.feed(rows[3])
    assert {"not_admitted" if policy == "belady" else "refused"} <= set(cache.misses_by_reason())


def test_ghosts_bring_an_entry_into_the_main_queue_and_end_with_the_limit():
    cache, row = cache_of(policy="s3fifo", maxBytes=300), Rows()
    for number in (0, 1, 2, 3, 0):
        cache.feed(row(0, "read", cursor="c", at=(0, number)))
    stored = cache.policy.dump({entry: entry.number for entry in cache.topics["a"].entries})

    assert [[0, 0]] == stored["main"]
    assert [["a", 0, 1, 100]] == stored["ghosts"]
    cache.feed(row(1, "conf", topic=None, conf={"headgate.cache.maxBytes": 110}))
    stored = cache.policy.dump({entry: entry.number for entry in cache.topics["a"].entries})
    assert [] == stored["ghosts"]


def test_before_the_pip_the_check_precedes_the_insertion():
    cache, row = cache_of(policy="by_mark_delete", maxBytes=1000), Rows()
    cache.feed(row(0, "open", cursor="c", at=(0, 0)))

    steps = [(9, 900, 0), (1, 1000, 0), (1, 900, 1)]
    first = 0
    for count, bytes_after, evicted in steps:
        outcome = cache.feed(row(1, "add", at=(0, first), count=count))
        first += count
        assert (bytes_after, evicted) == (cache.totals()["bytes"], len(outcome.removed))


def test_the_largest_topics_pay_for_size_each_by_its_bytes():
    cache, row = cache_of(policy="size_proportional", maxBytes=2000), Rows()
    for topic, count in (("a", 6), ("b", 9), ("c", 5)):
        cache.feed(row(0, "open", topic=topic, cursor="c", at=(0, 0)))
        cache.feed(row(0, "add", topic=topic, at=(0, 0), count=count))

    outcome = cache.feed(row(1, "add", topic="c", at=(0, 5)))

    # 200 bytes of 2000 are too much: b, with 900, and a, with 600, have half of all and give 120 and 80
    assert [("b", 0, 0), ("b", 0, 1), ("a", 0, 0)] == [removed[:3] for removed in outcome.removed]


CONSUMED = [
    # policy, keys of Pulsar, what is left after a read of 0..4 and an acknowledgement of 0..1
    ("size_proportional", {}, [[0, 5, 9]]),
    ("size_proportional", {"cacheEvictionByMarkDeletedPosition": True}, [[0, 2, 9]]),
    ("by_mark_delete", {}, [[0, 2, 9]]),
    ("pip430", {"cacheEvictionByExpectedReadCount": False}, [[0, 5, 9]]),
    ("pip430", {}, [[0, 0, 9]]),
    ("cursor_distance", {}, [[0, 5, 9]]),
]


@pytest.mark.parametrize(("policy", "pulsar", "left"), CONSUMED)
def test_a_tick_drops_what_every_cursor_has_passed(policy, pulsar, left):
    cache, row = cache_of(policy=policy, maxBytes=10_000, pulsar=pulsar), Rows()
    cache.feed(row(0, "open", cursor="c", at=(0, 0)))
    cache.feed(row(0, "add", at=(0, 0), count=10))
    cache.feed(row(1, "read", cursor="c", at=(0, 0), count=5))
    cache.feed(row(2, "mark", cursor="c", at=(0, 1)))

    assert [[0, 0, 9]] == cached(cache)
    cache.advance(10_000)
    assert left == cached(cache)


def test_without_a_cursor_a_tick_drops_all_and_without_a_tracked_one_nothing():
    for moves, left in (("close", []), ("move", [[0, 0, 0]])):
        cache, row = cache_of(policy="by_mark_delete", maxBytes=10_000), Rows()
        cache.feed(row(0, "open", cursor="c", at=(0, 0)))
        cache.feed(row(0, "add", at=(0, 0)))
        cache.feed(row(1, moves, cursor="c"))
        cache.advance(10_000)

        assert left == cached(cache)


def test_what_waits_for_its_replay_is_kept_when_every_cursor_has_passed_it():
    cache, row = cache_of(policy="cursor_distance", maxBytes=10_000), Rows()
    for one in (
        row(0, "open", cursor="c", at=(0, 0)),
        row(0, "add", at=(0, 0), count=4),
        row(1, "read", cursor="c", at=(0, 0), count=4),
        row(1, "replay_add", cursor="c", at=(0, 2)),
    ):
        cache.feed(one)
    cache.advance(10_000)
    assert [[0, 2, 2]] == cached(cache)

    cache.feed(row(11, "replay_read", cursor="c", at=(0, 2)))
    cache.advance(20_000)
    assert [] == cached(cache)


def test_a_silent_cursor_is_expected_as_far_ahead_as_it_has_been_silent():
    """A cursor that stalls loses to one that goes on, whose entries are farther away."""
    cache, row = cache_of(policy="cursor_distance", maxBytes=1000), Rows()
    for topic in ("stalls", "goes on"):
        cache.feed(row(0, "open", topic=topic, cursor="c", at=(0, 0)))
        cache.feed(row(0, "add", topic=topic, at=(0, 0), count=5))
    for at_ms in range(10, 400, 10):
        cache.feed(row(at_ms, "read", topic="goes on", cursor="c", at=(0, 0)))

    outcome = cache.feed(row(400, "add", topic="goes on", at=(0, 5), count=2))

    assert {"stalls"} == {removed.topic for removed in outcome.removed}


def test_an_old_entry_behind_an_evicted_young_one_expires_in_time():
    """The size pass is for another topic's row; who expires next in this one has changed all the same."""
    row, ttl = Rows(), {TTL: 30}
    cache = cache_of(policy="size_proportional", cacheReads=True, maxBytes=1000, pulsar=ttl)
    for topic, cursor, entry in (("a", "slow", 0), ("a", "c", 10), ("b", "d", 0)):
        cache.feed(row(0, "open", topic=topic, cursor=cursor, at=(0, entry)))
    cache.feed(row(1, "read", cursor="c", at=(0, 10), sizes=[300]))
    cache.feed(row(25, "read", cursor="c", at=(0, 0), sizes=[500]))
    cache.feed(row(35, "add", topic="b", at=(0, 0), sizes=[190]))

    evicted, expired = cache.feed(row(55, "read", cursor="c", at=(0, 10), sizes=[300])).removed

    assert ("a", 0, 0, "evicted") == evicted
    assert ("a", 0, 10, "expired") == expired


def rows_with_some_refused():
    """Reads, some twice, some without sizes, and some of a ledger that was deleted, until that is forgotten."""
    draw = random.Random(3)
    for place in range(120):
        read = Row(10 * place, 1, "read", "a", "c", 0, min(draw.randrange(11), draw.randrange(11)), 1, [100])
        yield read
        if draw.random() < 0.3:
            yield read
        if draw.random() < 0.3:
            yield read._replace(t_us=read.t_us + 1, sizes=None)
        if place in {30, 70}:
            yield Row(read.t_us + 2, 0, "ledger_delete", "a", ledger=place // 30)
        if draw.random() < 0.3:
            yield read._replace(t_us=read.t_us + 3, ledger=1 if place > 30 else 2)


@pytest.mark.parametrize("parts", [[0, 400], [0, 100, 400]])
def test_rows_that_are_refused_are_no_future_reads(parts, monkeypatch):
    """Else the reads that are left would be numbered wrongly. The cache may be stored between two parts."""
    monkeypatch.setattr(topic_module, "DELETED_LEDGERS", 1)
    rows = list(rows_with_some_refused())
    odd = cache_of(policy="belady", maxBytes=300)
    for begin, end in pairwise(parts):
        odd.foresee(rows[begin:end])
        odd = load(json.loads(json.dumps(dump(odd))))
    outcomes = [odd.feed(row) for row in rows]
    accepted = [row for row, outcome in zip(rows, outcomes, strict=True) if outcome.dead is None]
    assert {"late", "bad_row", "ledger_deleted"} == set(odd.dead_letters)

    clean = cache_of(policy="belady", maxBytes=300)
    clean.foresee(accepted)
    assert [clean.feed(row) for row in accepted] == [outcome for outcome in outcomes if outcome.dead is None]


def test_rows_of_a_replay_may_be_told_in_parts():
    rows = [Row(0, seq, "read", "a", "c", 0, key, 1, [100]) for seq, key in enumerate((0, 1, 2, 0, 1))]
    cache = cache_of(policy="belady", maxBytes=100)
    cache.foresee(rows[:3])
    cache.foresee(rows[3:])

    assert 1 == sum(cache.feed(row).hits for row in rows)


@pytest.mark.parametrize(("target", "left"), [(0.5, 5), (0.55, 5), (0.0, 0)])
def test_cursor_distance_evicts_no_more_than_down_to_its_target(target, left):
    """Of eleven entries of 100 bytes, when the limit is 1000: at the target itself the pass ends."""
    cache, row = cache_of(policy="cursor_distance", maxBytes=1000, distance_target=target), Rows()
    cache.feed(row(0, "open", cursor="c", at=(0, 0)))
    cache.feed(row(1, "add", at=(0, 0), count=11))

    assert left == cache.totals()["entries"]
