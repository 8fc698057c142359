"""From the readable form of the entry cache to the array form: both go on alike, whatever the cache has seen."""

from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from headgate.core.cache.broker import Cache
from headgate.core.cache.rows import Row
from headgate.core.cache.settings import PREFIX, CacheSettings
from headgate.core.cache.traces.workload import generate
from headgate.core.kernels.cache.convert.from_readable import array_cache_of
from unit.kernels.test_cache import EVENT, MIB_BYTES, OPTIONS, STREAMED, assert_equal, rows_of, settings_of

MAX_BYTES = f"{PREFIX}maxBytes"


@pytest.mark.parametrize("policy", STREAMED)
@given(
    events=st.lists(EVENT, max_size=60),
    options=OPTIONS,
    profile=st.sampled_from(["pip", "4.2"]),
    every=st.integers(1, 20),
)
@settings(max_examples=examples(60))
def test_a_cache_goes_on_as_arrays_after_any_row(policy, events, options, profile, every):
    cache = Cache(settings_of(policy, 900, profile=profile, **options))
    array = array_cache_of(cache, is_logged=True)

    for place, row in enumerate(rows_of(events)):
        assert array.feed(row) == cache.feed(row)
        if place % every == 0:
            array = array_cache_of(cache, is_logged=True)
            assert_equal(array, cache)
    assert array.advance(10**8) == cache.advance(10**8)

    assert_equal(array, cache)


@pytest.mark.parametrize("policy", STREAMED)
def test_a_cache_in_use_goes_on_as_arrays(policy):
    cache = Cache(settings_of(policy, MIB_BYTES // 8, rangeHits="entry", reasonMemory=50))
    rows = list(islice(generate("replay", 1, "skewed"), 2000))
    for row in rows[:1500]:
        cache.feed(row)
    array = array_cache_of(cache, is_logged=True)

    assert [array.feed(row) for row in rows[1500:]] == [cache.feed(row) for row in rows[1500:]]

    assert_equal(array, cache)


@pytest.mark.parametrize("policy", STREAMED)
@pytest.mark.parametrize("t_us", [5, 3_000_000])
@pytest.mark.parametrize("max_bytes", [0, 30_000, 60_000])
def test_conf_files_change_arrays_as_they_change_the_readable_form(policy, t_us, max_bytes):
    cache = Cache(settings_of(policy, 50_000))
    rows = list(islice(generate("replay", 1, "skewed"), 600))
    for row in rows[:450]:
        cache.feed(row)
    array = array_cache_of(cache, is_logged=True)

    changed = {MAX_BYTES: max_bytes, "managedLedgerCacheEvictionTimeThresholdMillis": 50}
    assert array.change(changed, t_us) == cache.change(changed, t_us)
    assert (array.now_us, array.seq) == (cache.now_us, cache.seq)
    assert [array.feed(row) for row in rows[450:]] == [cache.feed(row) for row in rows[450:]]

    assert_equal(array, cache)


@pytest.mark.parametrize(
    "row",
    [
        Row(1 << 55, 1, "close", "t", "c"),
        Row(5, 1, "open", "t", "d", 1 << 61, 0),
        Row(5, 1, "mark", "t", "c", 0, 1 << 61),
        Row(5, 1, "replay_add", "t", "c", 0, 1 << 61),
        Row(5, 1, "add", "t", None, 0, 1 << 60, 1, [1]),
        Row(5, 1, "conf", conf={MAX_BYTES: 1 << 60}),
        Row(5, 1, "ledger_delete", "t", None, 1 << 61),
    ],
    ids=lambda row: row.kind,
)
def test_numbers_that_do_not_fit_have_no_array_form(row):
    cache = Cache(CacheSettings.of({MAX_BYTES: 1 << 50, "headgate.cache.policy": "cursor_distance"}))
    cache.feed(Row(0, 0, "open", "t", "c", 0, 0))
    assert array_cache_of(cache) is not None
    assert cache.feed(row).dead is None
    assert array_cache_of(cache) is None


@pytest.mark.parametrize("policy", ["s3fifo", "belady"])
def test_settings_without_an_array_form_have_none(policy):
    assert array_cache_of(Cache(CacheSettings.of({f"{PREFIX}policy": policy}))) is None
