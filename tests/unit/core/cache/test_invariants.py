"""The invariants of section 17 on random rows, for all policies."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from examples import examples
from headgate.core.cache.broker import Cache
from headgate.core.cache.policies import registry
from headgate.core.cache.policies.capped import Capped
from headgate.core.cache.policies.registry import POLICIES as KINDS
from headgate.core.cache.rows import Row
from headgate.core.cache.settings import CacheSettings, PolicyName
from headgate.core.cache.state import dump, load
from unit.core.cache.brute_distance import CheckedDistance
from unit.core.cache.traces import PREFIX, STRATEGY, TTL, Rows, cache_of, counts, ms

SHAPELESS = {"bad_row", "unknown_kind", "late"}
HARD_CAP = {*(name for name, kind in KINDS.items() if issubclass(kind, Capped)), PolicyName.CURSOR_DISTANCE}
PASSES = {"expired", "evicted"}
ACCESSED = "managedLedgerCacheEvictionExtendTTLOfRecentlyAccessed"
REQUEUES = "managedLedgerCacheEvictionExtendTTLOfEntriesWithRemainingExpectedReadsMaxTimes"
GRACE = "managedLedgerContinueCachingAddedEntriesAfterLastActiveCursorLeavesMillis"

topics = st.sampled_from(["a", "b"])
cursors = st.sampled_from(["c", "d", "e"])
ledgers = st.sampled_from([0, 1, 1, 3])
entries = st.integers(0, 12)
lengths = st.integers(1, 6)
sizes = st.sampled_from([[10], [25], [40], [1]])
pulsar_keys = st.fixed_dictionaries(
    {TTL: st.sampled_from([10, 25])},
    optional={
        STRATEGY: st.booleans(),
        ACCESSED: st.booleans(),
        REQUEUES: st.integers(0, 3),
        GRACE: st.sampled_from([0, 15]),
        "cacheEvictionByMarkDeletedPosition": st.booleans(),
        "managedLedgerCacheEvictionWatermark": st.sampled_from([0.5, 0.9, 1.0]),
    },
)
own_keys = st.fixed_dictionaries(
    {"maxBytes": st.sampled_from([100, 250, 1000]), "rangeHits": st.sampled_from(["whole", "entry"])},
    optional={
        "release": st.sampled_from(["immediate", "explicit"]),
        "cacheReads": st.booleans(),
        "adoptHandler": st.booleans(),
        "reasonMemory": st.sampled_from([0, 3]),
        "distance.look": st.sampled_from([1, 2]),
    },
)
POLICIES = [name.value for name in PolicyName if name is not PolicyName.BELADY]
changes = st.one_of(
    st.fixed_dictionaries({PREFIX + "maxBytes": st.sampled_from([60, 100, 300])}),
    st.fixed_dictionaries({TTL: st.sampled_from([5, 30])}),
    st.fixed_dictionaries({REQUEUES: st.integers(0, 3)}),
)


def through_json(cache):
    return load(json.loads(json.dumps(dump(cache), allow_nan=False)))


def positions(cache):
    return {(topic.name, *entry.position) for topic in cache.topics.values() for entry in topic.entries}


class CacheMachine(RuleBasedStateMachine):
    """A cache, a twin that is stored and loaded, and advanced between rows, and one that skips no tick."""

    policy: str

    @initialize(pulsar=pulsar_keys, own=own_keys)
    def build(self, pulsar, own):
        keys = {PREFIX + name: value for name, value in {**own, "policy": self.policy}.items()}
        self.settings = CacheSettings.of({**pulsar, **keys})
        self.cache, self.twin, self.tireless = (Cache(self.settings) for _ in range(3))
        self.rows = self.asked = self.t_us = 0
        self.most_requeues = self.settings.max_requeue
        self.held = set()
        for topic, cursor in (("a", "c"), ("a", "d"), ("b", "c")):
            self.feed(kind="open", topic=topic, cursor=cursor, ledger=1, entry=0)

    def feed(self, **fields):
        row = Row(self.t_us, self.rows, **fields)
        self.rows += 1
        work = self.cache.policy.work.size_passes
        ticked = self.cache.advance(row.t_us).removed
        expected, was_cached, inserted = dump(self.cache), positions(self.cache), self.cache.store.inserted

        told = self.cache.feed(row)
        outcome = told._replace(removed=(*ticked, *told.removed))

        assert outcome == self.twin.feed(row)
        assert outcome == self.at_every_tick(row)
        self.check_dead(outcome, expected)
        self.check_hits(row, outcome, was_cached)
        self.check_removed(row, outcome, self.cache.store.inserted - inserted)
        if self.policy == "pip430" and self.cache.policy.work.size_passes > work:
            limit = self.cache.store.limit
            assert limit.current_bytes <= limit.target_bytes or not self.cache.store.entry_count

    def at_every_tick(self, row):
        """4: ticks that cannot change anything may be skipped, with equal results."""
        cache, removed = self.tireless, []
        interval_us = cache.settings.interval_us
        for tick_us in range((cache.now_us // interval_us + 1) * interval_us if row.seq else 0, row.t_us, interval_us):
            removed += self.look_through(tick_us)
        if cache.now_us < row.t_us:
            removed += self.look_through(row.t_us)
        told = cache.feed(row)
        return told._replace(removed=(*removed, *told.removed))

    def look_through(self, at_us):
        for topic in self.tireless.topics.values():
            self.tireless.policy.topic_changed(topic, self.tireless.now_us)
        return self.tireless.advance(at_us).removed

    def check_dead(self, outcome, expected):
        """8: what the state refuses has moved the clock and run ticks, no more."""
        if outcome.dead is not None and outcome.dead not in SHAPELESS:
            after = dump(self.cache)
            for volatile in ("seq", "dead_letters", "topics", "policy"):
                del expected[volatile], after[volatile]
            assert expected == after

    def check_hits(self, row, outcome, was_cached):
        """4: what was cached hits, nothing else."""
        if row.kind not in {"read", "replay_read"} or outcome.dead is not None:
            assert (0, 0) == outcome[:2]
            return
        asked = [(row.topic, row.ledger, number) for number in range(row.entry, row.entry + row.count)]
        found = sum(place in was_cached for place in asked)
        if self.settings.range_hits == "whole":
            found = found if found == row.count else 0
        assert (found, row.count - found) == outcome[:2]
        self.asked += row.count

    def check_removed(self, row, outcome, inserted):
        """4: an insertion is removed at most once, and only what was cached or has just come."""
        now = positions(self.cache)
        removed = [removed[:3] for removed in outcome.removed]
        brought = {
            (row.topic, row.ledger, number)
            for number in range(row.entry or 0, (row.entry or 0) + (row.count or 1))
            if row.kind in {"add", "read", "replay_read"}
        }
        held = self.held
        assert inserted >= 0
        assert set(removed) <= held | brought
        assert now <= held | brought
        for place in set(removed):
            assert removed.count(place) <= (place in held) + (place in brought)
        self.held = now

    @rule(delta=st.sampled_from([0, 0, 1, 3, 8, 10, 40]))
    def later(self, delta):
        self.t_us += ms(delta)

    @rule(topic=topics, ledger=ledgers, entry=st.integers(0, 40), count=lengths, size=sizes)
    def add(self, **fields):
        self.feed(kind="add", sizes=fields.pop("size"), **fields)

    @rule(topic=topics, count=lengths, size=sizes)
    def add_next(self, topic, count, size):
        last = max(self.cache.topics[topic].last_added, (1, -1))
        self.feed(kind="add", topic=topic, ledger=last[0], entry=last[1] + 1, count=count, sizes=size)

    @rule(topic=topics, cursor=cursors, at=st.tuples(ledgers, entries) | st.just((None, None)))
    def open_or_move(self, topic, cursor, at):
        known = cursor in self.cache.topics[topic].cursors.by_name
        self.feed(kind="move" if known else "open", topic=topic, cursor=cursor, ledger=at[0], entry=at[1])

    @rule(topic=topics, cursor=cursors, count=lengths, size=sizes)
    def read_on(self, topic, cursor, count, size):
        known = self.cache.topics[topic].cursors.by_name.get(cursor)
        at = (known and known.read) or (1, 0)
        self.feed(kind="read", topic=topic, cursor=cursor, ledger=at[0], entry=at[1], count=count, sizes=size)

    @rule(topic=topics, cursor=cursors, ledger=ledgers, entry=entries, count=lengths, size=sizes)
    def read(self, **fields):
        self.feed(kind="read", sizes=fields.pop("size"), **fields)

    @rule(topic=topics, cursor=cursors, ledger=ledgers, entry=entries, size=sizes)
    def replay_read(self, **fields):
        self.feed(kind="replay_read", count=1, sizes=fields.pop("size"), **fields)

    @rule(
        kind=st.sampled_from(["replay_add", "replay_add", "release"]),
        topic=topics,
        cursor=cursors,
        ledger=ledgers,
        entry=entries,
        count=st.integers(1, 3),
    )
    def mark_for_replay_or_release(self, **fields):
        self.feed(**fields)

    @rule(topic=topics, cursor=cursors, ledger=ledgers, entry=entries)
    def acknowledge(self, **fields):
        self.feed(kind="mark", **fields)

    @rule(topic=topics, cursor=cursors)
    def close(self, **fields):
        self.feed(kind="close", **fields)

    @rule(topic=topics, ledger=st.sampled_from([0, 3]))
    def delete_ledger(self, **fields):
        self.feed(kind="ledger_delete", **fields)

    @rule(topic=topics)
    def clear(self, **fields):
        self.feed(kind="topic_clear", **fields)

    @rule(conf=changes)
    def change(self, conf):
        self.feed(kind="conf", conf=conf)
        self.most_requeues = max(self.most_requeues, self.cache.settings.max_requeue)

    @rule()
    def store_the_twin(self):
        """6: where batches end, and when state is stored, does not show."""
        self.twin = through_json(self.twin)
        assert dump(self.cache) == dump(self.twin)

    @rule()
    def advance(self):
        assert self.cache.advance(self.t_us) == self.twin.advance(self.t_us)
        self.tireless.advance(self.t_us)
        self.held = positions(self.cache)

    @invariant()
    def accounts_agree(self):
        """1, 8: bytes, entries and rows add up."""
        totals, topics = self.cache.totals(), self.cache.topics.values()
        held = [entry for topic in topics for entry in topic.entries]
        removed = sum(totals[cause] for cause in ("expired", "evicted", "dropped", "invalidated"))

        assert totals["bytes"] == sum(entry.size for entry in held)
        assert totals["bytes"] == sum(topic.entries.size_bytes for topic in topics)
        assert totals["entries"] == len(held) == sum(topic.entries.entry_count for topic in topics)
        assert totals["inserted"] == len(held) + removed
        assert totals["hits"] + totals["misses"] == self.asked
        assert sum(self.cache.misses_by_reason().values()) == totals["misses"]
        assert totals["dead"] <= self.rows
        assert (self.cache.pinned_bytes() > 0) == bool(held)

    @precondition(lambda self: self.policy == "pip430")
    @invariant()
    def the_queue_is_in_order(self):
        """2: timestamps never decrease, and the budget of requeues is kept."""
        queue = list(self.cache.policy.queue)
        stamps = [entry.ts_us for entry in queue]

        assert stamps == sorted(stamps)
        assert len(queue) == self.cache.store.entry_count
        if not self.settings.extend_accessed:
            assert all(entry.requeues <= self.most_requeues for entry in queue)

    @precondition(lambda self: self.policy in HARD_CAP)
    @invariant()
    def a_hard_cap_holds(self):
        """7: never more than the limit after a row."""
        assert self.cache.totals()["bytes"] <= self.cache.store.limit.max_bytes


@pytest.fixture(autouse=True)
def _passes_of_cursor_distance_are_checked(monkeypatch):
    """7: brute-force scoring of all entries picks the same victims."""
    monkeypatch.setitem(registry.POLICIES, PolicyName.CURSOR_DISTANCE, CheckedDistance)


def checked(policy, count, steps):
    machine = type("Machine", (CacheMachine,), {"policy": policy})
    run_state_machine_as_test(machine, settings=settings(max_examples=count, stateful_step_count=steps))


@pytest.mark.parametrize("policy", POLICIES)
def test_random_rows_keep_the_invariants(policy):
    checked(policy, examples(120 if policy == PolicyName.CURSOR_DISTANCE else 80), 40)


@pytest.mark.long
@pytest.mark.parametrize("policy", POLICIES)
def test_many_random_rows_keep_the_invariants(policy):
    checked(policy, 500, 60)


steps = st.lists(
    st.tuples(st.sampled_from(["add", "c", "d", "mark", "replay"]), st.integers(1, 4)), min_size=1, max_size=60
)


@given(steps=steps)
@settings(max_examples=examples(60))
def test_expected_reads_are_the_cursors_behind_and_the_replays_to_come(steps):
    """5: as long as nobody seeks or closes and nothing is inserted by a miss."""
    cache, row = cache_of(maxBytes=1 << 20), Rows()
    places = {"c": 0, "d": 0}
    marked = []
    added = 0
    for cursor in places:
        cache.feed(row(0, "open", cursor=cursor, at=(0, 0)))
    for what, count in steps:
        if what == "add":
            cache.feed(row(0, "add", at=(0, added), count=count))
            added += count
        elif what == "mark" and places["c"] and places["c"] - 1 not in marked:
            marked.append(places["c"] - 1)
            cache.feed(row(0, "replay_add", cursor="c", at=(0, marked[-1])))
        elif what == "replay" and marked:
            cache.feed(row(0, "replay_read", cursor="c", at=(0, marked.pop(0))))
        elif what in places and added - places[what] >= count:
            cache.feed(row(0, "read", cursor=what, at=(0, places[what]), count=count))
            places[what] += count

    expected = {entry: sum(place <= entry for place in places.values()) + marked.count(entry) for entry in range(added)}
    assert expected == (counts(cache) if added else {})
