"""The array form of the entry cache is the readable form: after any row, on any traffic, also stored in between."""

import json
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from headgate.conformance.runner import replay_vector
from headgate.conformance.vector_file import read_vectors
from headgate.core.cache.broker import Cache
from headgate.core.cache.rows import Row
from headgate.core.cache.settings import PREFIX, CacheSettings
from headgate.core.cache.state import dump
from headgate.core.cache.traces.workload import generate
from headgate.core.kernels.cache import broker
from headgate.core.kernels.cache.broker import ArrayCache
from headgate.core.kernels.cache.limits import refusal_of
from headgate.errors import InvalidArgument
from unit.core.cache.test_policies import rows_with_some_refused

FILE = Path(__file__).parents[2] / "conformance" / "vectors" / "entry-cache.json"
STREAMED = ("pip430", "lru", "fifo", "sieve", "cursor_distance")
POLICIES = (*STREAMED, "belady")
MIB_BYTES = 1 << 20


def is_taken(vector):
    return vector["kind"] == "cache_trace" and refusal_of(CacheSettings.of(vector["config"])) is None


VECTORS = [vector for vector in read_vectors(FILE) if is_taken(vector)]


def settings_of(policy, max_bytes, **more):
    keys = {f"{PREFIX}policy": policy, f"{PREFIX}maxBytes": max_bytes}
    return CacheSettings.of(keys | {f"{PREFIX}{name}": value for name, value in more.items()})


def plain(cache):
    """State without what both forms may do differently: the order of marks and reads, which topics are swept in vain,
    and what was heard of rows to come, which arrays that were stored have forgotten.
    """
    state = dump(cache)
    for name in ("sweeps", "heard", "deleted"):
        state["policy"].pop(name, None)
    for name in {"reads", "next"} & state["policy"].keys():
        state["policy"][name].sort()
    for topic in state["topics"]:
        topic["marks"].sort()
        topic["highest"].sort()
    state["misses_by_reason"] = dict(sorted(state["misses_by_reason"].items()))
    state["dead_letters"] = dict(sorted(state["dead_letters"].items()))
    return json.loads(json.dumps(state))


def both_told(chosen, rows):
    """Both forms, empty; to belady the rows are told."""
    array, cache = ArrayCache(chosen, is_logged=True), Cache(chosen)
    if chosen.policy == "belady":
        array.foresee(rows)
        cache.foresee(rows)
    return array, cache


def assert_equal(array, cache):
    assert plain(array.cache()) == plain(cache)
    assert array.totals() == cache.totals()
    assert array.finished_bytes() == cache.finished_bytes()
    assert array.pinned_bytes() == cache.pinned_bytes()


@pytest.mark.parametrize("vector", [pytest.param(vector, id=vector["id"]) for vector in VECTORS])
def test_vector_holds_on_arrays(vector):
    result = replay_vector(FILE, vector, kernel=True)

    assert (result.skip_reason, result.mismatches) == (None, ())


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("family", ["fanout", "catchup", "replay", "mixed"])
def test_arrays_end_as_the_readable_form_does_on_the_generators_traffic(policy, family):
    rows = list(islice(generate(family, 1, "skewed"), 1000))
    chosen = settings_of(policy, MIB_BYTES // 8, rangeHits="entry", reasonMemory=50)
    array, cache = both_told(chosen, rows)

    array.feed_rows(array.pack(rows))
    removed = [left for row in rows for left in cache.feed(row).removed]

    assert list(array.take_removed()) == removed
    assert_equal(array, cache)


def rows_of(events):
    """Rows at times that grow, but for some that are late."""
    now_us = 0
    for seq, (step_us, kind, topic, cursor, ledger, entry, count, size, conf) in enumerate(events):
        now_us = max(0, now_us + step_us)
        sizes = [size] if kind in {"add", "read", "replay_read"} else None
        if kind == "conf":
            yield Row(now_us, seq, kind, conf=conf)
        elif kind in {"open", "move"} and ledger == 0:
            yield Row(now_us, seq, kind, topic, cursor)
        else:
            many = count if kind in {"add", "read", "replay_add"} else 1
            yield Row(now_us, seq, kind, topic, cursor, ledger, entry, many, sizes)


KINDS = st.sampled_from(
    ["add"] * 8 + ["read"] * 8 + ["open"] * 3 + ["replay_add", "replay_read"] * 3
    + ["move", "mark", "close", "ledger_delete", "topic_clear", "conf", "release", "nonsense"]
)  # fmt: skip
CONFS = st.sampled_from(
    [
        {f"{PREFIX}maxBytes": 300},
        {f"{PREFIX}maxBytes": 1500},
        {f"{PREFIX}maxBytes": 0},
        {"managedLedgerCacheEvictionExtendTTLOfRecentlyAccessed": True},
        {"managedLedgerCacheEvictionExtendTTLOfEntriesWithRemainingExpectedReadsMaxTimes": 1},
        {"managedLedgerCacheEvictionTimeThresholdMillis": 20},
        {"profile": "4.2"},
    ]
)
EVENT = st.tuples(
    st.sampled_from([0, 1, 900, 7000, 40_000, 2_500_000, -5]),
    KINDS,
    st.sampled_from(["a", "b"]),
    st.sampled_from(["x", "y", "z"]),
    st.sampled_from([0, 1, 1, 1, 2]),
    st.integers(0, 140),
    st.sampled_from([1, 1, 3, 30, 100]),
    st.sampled_from([1, 7, 20, 400]),
    CONFS,
)
OPTIONS = st.fixed_dictionaries(
    {
        "rangeHits": st.sampled_from(["whole", "entry"]),
        "reasonMemory": st.sampled_from([0, 3, 4096]),
        "adoptHandler": st.booleans(),
        "batchReadCopies": st.booleans(),
        "distance.look": st.sampled_from([1, 16]),
        "distance.batch": st.sampled_from([1, 100]),
    }
)


@pytest.mark.parametrize("policy", POLICIES)
@given(events=st.lists(EVENT, max_size=60), options=OPTIONS, profile=st.sampled_from(["pip", "4.2"]))
@settings(max_examples=examples(60))
def test_arrays_do_with_every_row_what_the_readable_form_does(policy, events, options, profile):
    chosen = settings_of(policy, 900, profile=profile, **options)
    rows = list(rows_of(events))
    array, cache = both_told(chosen, rows)

    for place, row in enumerate(rows):
        assert array.feed(row) == cache.feed(row)
        if place % 7 == 0:
            array = ArrayCache.load(array.dump(), is_logged=True)
    assert array.advance(10**8) == cache.advance(10**8)

    assert_equal(array, cache)


@pytest.mark.parametrize(
    "row",
    [
        Row(5, 1, "open", "t", "d", None, None, 1, [0, -1, None]),
        Row(5, 1, "move", "t", "c", 0, 0, 1, "sizes"),
        Row(5, 1, "mark", "t", "c", 0, 1, None, [2**62]),
        Row(5, 1, "close", "t", "c", "ledger", 2**62, "count", [0]),
        Row(5, 1, "replay_add", "t", "c", 0, 0, 2, [None]),
        Row(5, 1, "ledger_delete", "t", 3, 0, "entry", "count", [None]),
        Row(5, 1, "ledger_delete", "t", None, 0, 2**62, -1, 1),
        Row(5, 1, "topic_clear", "t", 3, "ledger", "entry", "count", "sizes"),
    ],
    ids=lambda row: row.kind,
)
def test_columns_that_a_kind_does_not_need_are_ignored(row):
    chosen = settings_of("lru", 20)
    array, cache = ArrayCache(chosen, is_logged=True), Cache(chosen)
    for each in (Row(0, 0, "open", "t", "c"), Row(0, 1, "add", "t", None, 0, 0, 2, [3]), row):
        assert array.feed(each) == cache.feed(each)
    assert_equal(array, cache)
    assert array.totals()["dead"] == 0


def test_rows_may_be_told_and_fed_in_other_parts():
    rows = list(islice(generate("replay", 1, "skewed"), 2000))
    _, cache = both_told(settings_of("belady", MIB_BYTES // 8), rows)
    parts = ArrayCache(settings_of("belady", MIB_BYTES // 8), is_logged=True)

    parts.foresee_rows([parts.pack(rows[:500])])
    parts.foresee(rows[500:])
    for begin in range(0, len(rows), 700):
        parts.feed_rows(parts.pack(rows[begin : begin + 700]))

    assert list(parts.take_removed()) == [left for row in rows for left in cache.feed(row).removed]
    assert_equal(parts, cache)


def test_rows_that_are_refused_are_no_future_reads():
    of_deleted = [
        Row(5000, 0, "read", "a", "c", 7, 0, 1, [100]),
        Row(5001, 0, "ledger_delete", "a", ledger=7),
        Row(5002, 0, "read", "a", "c", 7, 0, 1, [100]),
    ]
    rows = [*rows_with_some_refused(), *of_deleted]
    array, cache = both_told(settings_of("belady", 300), rows)

    assert [array.feed(row) for row in rows] == [cache.feed(row) for row in rows]


def test_only_belady_is_told_the_future():
    with pytest.raises(InvalidArgument, match="foresee: got the policy lru"):
        ArrayCache(settings_of("lru", 20)).foresee([])


def test_more_entries_than_can_be_numbered_are_left_to_the_readable_form(monkeypatch):
    monkeypatch.setattr(broker, "MOST_TOLD", 2)
    array, read = ArrayCache(settings_of("belady", 20)), Row(0, 0, "read", "t", "c", 0, 0, 2, [1])
    array.foresee([read])

    with pytest.raises(InvalidArgument, match="got 3 entries to come, allowed: up to 2"):
        array.foresee([read._replace(t_us=1, count=1)])


def test_state_of_an_installation_that_had_fewer_fields_is_read():
    array = ArrayCache(settings_of("lru", 900), is_logged=True)
    array.feed_rows(array.pack(list(islice(generate("replay", 1), 500))))
    stored = array.dump()
    del stored["arrays"]["future"]
    state = stored["arrays"]["state"]
    stored["arrays"]["state"] = state[[name for name in state.dtype.names if name not in {"told_at", "told", "heaped"}]]

    assert plain(ArrayCache.load(stored).cache()) == plain(array.cache())


@pytest.mark.parametrize(
    ("more", "named"),
    [({"policy": "s3fifo"}, "s3fifo"), ({"mode": "horizon"}, "horizon"), ({"release": "explicit"}, "explicit")],
)
def test_settings_without_an_array_form_are_refused_by_name(more, named):
    chosen = CacheSettings.of({f"{PREFIX}{name}": value for name, value in more.items()})

    with pytest.raises(InvalidArgument, match=named):
        ArrayCache(chosen)


def test_numbers_that_cannot_be_calculated_with_are_told_before_anything_changes():
    array = ArrayCache(CacheSettings.of({}))

    with pytest.raises(InvalidArgument, match="do not fit"):
        array.feed(Row(0, 0, "add", "t", None, 0, 2**62, 1, [1]))

    assert array.totals()["dead"] == 0
