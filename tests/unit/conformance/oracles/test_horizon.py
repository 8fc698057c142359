"""Horizon mode: shards do not show, rounds of one row are exact, rounds end where the rows say (section 14)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from headgate.conformance.oracles.horizon.horizon_cache import HorizonCache
from headgate.conformance.oracles.horizon.shard import Shard, shard_of
from headgate.core.cache.broker import Cache
from headgate.core.cache.rows import Row
from headgate.core.cache.traces.workload import generate
from headgate.errors import InvalidArgument
from unit.core.cache.traces import TTL, Rows, settings_of

MIB = 1 << 20
HORIZON = {"mode": "horizon", "rangeHits": "entry"}
SAME = ("hits", "misses", "inserted", "expired", "evicted", "requeues", "bytes", "entries", "storage_bytes", "dead")

row_steps = st.lists(
    st.tuples(
        st.sampled_from(["add", "add", "read", "read", "replay_add", "replay_read", "clear", "wait"]),
        st.sampled_from(["a", "b", "c", "d"]),
        st.sampled_from(["x", "y"]),
        st.integers(1, 6),
    ),
    max_size=80,
)


def made(steps):
    """Rows of several topics: cursors that read on, some replays, and time that goes on."""
    row, rows, added, read, at_ms = Rows(), [], {}, {}, 0
    for topic in "abcd":
        rows += [row(0, "open", topic, cursor, (1, 0)) for cursor in "xy"]
    for what, topic, cursor, count in steps:
        first = read.get((topic, cursor), 0)
        if what == "add":
            rows.append(row(at_ms, "add", topic, None, (1, added.get(topic, 0)), count, [10]))
            added[topic] = added.get(topic, 0) + count
        elif what == "read":
            rows.append(row(at_ms, "read", topic, cursor, (1, first), count, [10]))
            read[topic, cursor] = first + count
        elif what == "clear":
            rows.append(row(at_ms, "topic_clear", topic))
        elif what == "wait":
            at_ms += 3 * count
        else:
            rows.append(row(at_ms, what, topic, cursor, (1, max(0, first - 1)), 1, [10]))
    return rows


def state(cache):
    """What shards share no part of: totals, what is cached, what is expected of it."""
    totals = cache.totals()
    cached = {
        (name, entry.position): (entry.ts_us, entry.requeues, entry.handler and entry.handler.count)
        for name, topic in cache.topics.items()
        for entry in topic.entries
    }
    return {key: totals[key] for key in SAME}, cached, cache.misses_by_reason()


def horizon_of(**keys):
    return HorizonCache(settings_of(**HORIZON, **keys))


def fed(cache, rows):
    return [outcome._replace(removed=tuple(sorted(outcome.removed))) for outcome in map(cache.feed, rows)]


KEYS = st.fixed_dictionaries(
    {
        "maxBytes": st.sampled_from([100, 300]),
        "pulsar": st.fixed_dictionaries(
            {TTL: st.sampled_from([10, 1000])},
            optional={"managedLedgerCacheEvictionExtendTTLOfRecentlyAccessed": st.booleans()},
        ),
    }
)


@given(steps=row_steps, keys=KEYS, shards=st.integers(1, 5))
@settings(max_examples=examples(60))
def test_rounds_of_one_row_are_the_exact_mode(steps, keys, shards):
    rows = made(steps)
    exact = Cache(settings_of(rangeHits="entry", **keys))
    cache = horizon_of(horizon_shards=shards, horizon_roundRows=1, horizon_chunkDivisor=0, **keys)

    assert fed(exact, rows) == fed(cache, rows)
    assert state(exact) == state(cache)
    assert exact.totals()["size_passes"] == cache.totals()["size_passes"]


@given(steps=row_steps, keys=KEYS, shards=st.integers(2, 5), rows_a_round=st.integers(0, 7))
@settings(max_examples=examples(60))
def test_the_number_of_shards_does_not_show_where_lines_are_entries(steps, keys, shards, rows_a_round):
    rows = made(steps)
    caches = [
        horizon_of(horizon_shards=count, horizon_roundRows=rows_a_round, horizon_chunkDivisor=0, **keys)
        for count in (1, shards)
    ]
    for cache in caches:
        fed(cache, rows)
        cache.advance(rows[-1].t_us)

    assert state(caches[0]) == state(caches[1])
    assert caches[0].rounds == caches[1].rounds


@given(steps=row_steps, keys=KEYS)
@settings(max_examples=examples(40))
def test_the_keys_of_a_shard_are_in_the_order_of_its_queue(steps, keys):
    cache = horizon_of(horizon_shards=2, horizon_roundRows=5, **keys)
    for row in made(steps):
        cache.feed(row)
        for shard in cache.shards:
            queue = shard.policy.queue
            places = [queue.keys[entry] for entry in queue]
            assert places == sorted(places)
            assert len(queue.keys) == len(queue) == shard.store.entry_count


ROUNDS = [
    # keys, sizes of the rows that add, conf rows before some of them; rounds that have ended after each row
    ({"horizon_roundShare": 0.1}, [50, 50, 1, 99, 200, 5], {}, [0, 0, 1, 1, 2, 3]),
    ({"horizon_roundRows": 2}, [50, 50, 50, 50, 50], {}, [0, 1, 1, 2, 2]),
    ({"horizon_roundShare": 1}, [10, 10, 10], {1}, [0, 1, 1]),
]


@pytest.mark.parametrize(("keys", "sizes", "conf_before", "ended"), ROUNDS)
def test_a_round_ends_where_the_rows_say(keys, sizes, conf_before, ended):
    cache, row = horizon_of(maxBytes=1000, **keys), Rows()
    for entry, (size, rounds) in enumerate(zip(sizes, ended, strict=True)):
        if entry in conf_before:
            cache.feed(row(0, "conf", None, conf={TTL: 5}))
        outcome = cache.feed(row(0, "add", at=(1, entry), sizes=[size]))

        assert outcome.dead is None
        assert rounds == cache.rounds


def test_a_busy_round_is_cut_below_the_target_so_that_the_mean_is_right():
    cache, row = horizon_of(maxBytes=1000, horizon_roundShare=1, horizon_chunkDivisor=0), Rows()
    for entry in range(10):
        cache.feed(row(0, "add", at=(1, entry), sizes=[100]))
    cache.advance(0)

    # 1000 bytes came in; trigger and target are 980 and 900: the goal is (980 + 900 - 1000) // 2 = 440
    assert 400 == cache.totals()["bytes"]
    assert (1.0, 1, 0.04) == (cache.inflow_share, cache.busy_rounds, cache.size_error)


def test_a_refused_row_is_in_no_round():
    cache = horizon_of(maxBytes=1000, horizon_roundRows=1)

    assert cache.feed(Row(0, 0, "boom")).dead == "unknown_kind"
    assert (0, 1) == (cache.rounds, cache.totals()["dead"])
    assert cache.feed(Row(0, 0, "close", "a", "c")).dead == "unknown_cursor"
    assert (1, 2) == (cache.rounds, cache.totals()["dead"])
    assert {"unknown_kind": 1, "unknown_cursor": 1} == cache.dead_letters


def test_a_topic_is_always_in_the_same_shard():
    assert [shard_of(topic, 8) for topic in ("t0000", "t0001", "persistent://a/b/c")] == [4, 2, 7]


def test_a_shard_needs_settings_of_its_mode():
    with pytest.raises(InvalidArgument, match="horizon"):
        Shard(settings_of())


FAMILIES = {"fanout": (0.5, 1, 2, 4), "catchup": (1, 2, 4, 8, 16), "replay": (0.5, 1, 2, 4), "mixed": (1, 2, 4, 8, 16)}
SCALES = (0.98, 0.99, 1.01, 1.02)


def hit_percent(cache, rows):
    for row in rows:
        cache.feed(row)
        if isinstance(cache, HorizonCache):
            assert cache.size_error <= 0.02
    totals = cache.totals()
    return 100 * totals["hits"] / (totals["hits"] + totals["misses"])


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES)
def test_hits_are_near_those_of_the_exact_mode(family):
    rows = list(generate(family, 1))
    for size_mib in FAMILIES[family]:
        max_bytes = int(size_mib * MIB)
        exact = hit_percent(Cache(settings_of(rangeHits="entry", maxBytes=max_bytes)), rows)
        scaled = [
            hit_percent(Cache(settings_of(rangeHits="entry", maxBytes=int(scale * max_bytes))), rows)
            for scale in SCALES
        ]
        cache = horizon_of(maxBytes=max_bytes, horizon_shards=4)
        allowed = max(0.5, *(abs(one - exact) for one in scaled))

        assert abs(hit_percent(cache, rows) - exact) <= allowed, size_mib
        assert cache.busy_rounds == 0, size_mib
