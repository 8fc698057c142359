"""What conf files change while a cache runs: before the rows of an instant, and without making any late."""

import pytest

from headgate.core.cache.broker import Cache
from headgate.core.cache.rows import Row
from headgate.core.cache.settings import CacheSettings, CacheSettingsError

MAX_BYTES = "headgate.cache.maxBytes"


def cache_with_an_entry(policy: str = "pip430") -> Cache:
    cache = Cache(CacheSettings.of({MAX_BYTES: 1000, "headgate.cache.policy": policy}))
    cache.feed(Row(0, 0, "open", "t", "c", 0, 0))
    cache.feed(Row(10, 1, "add", "t", None, 0, 0, 1, [500]))
    return cache


@pytest.mark.parametrize(("t_us", "now_us"), [(30, 30), (5, 10)])
def test_a_change_holds_from_its_time_on_or_from_now_if_that_has_passed(t_us: int, now_us: int) -> None:
    cache = cache_with_an_entry()
    assert () == cache.change({MAX_BYTES: 400}, t_us).removed
    assert (400, now_us) == (cache.store.limit.max_bytes, cache.now_us)
    assert None is cache.feed(Row(30, 0, "add", "t", None, 0, 1, 1, [10])).dead


def test_under_a_hard_cap_what_is_too_much_leaves_at_once() -> None:
    (gone,) = cache_with_an_entry("lru").change({MAX_BYTES: 400}, 30).removed
    assert ("t", 0, "evicted") == (gone.topic, gone.entry, gone.cause)


def test_ticks_before_the_change_are_run_with_what_held_then() -> None:
    cache = cache_with_an_entry()
    ttl = "managedLedgerCacheEvictionTimeThresholdMillis"
    cache.change({ttl: 1}, 9_000)
    assert 1 == cache.totals()["entries"]


def test_keys_that_may_not_change_are_refused_and_change_nothing() -> None:
    cache = cache_with_an_entry()
    with pytest.raises(CacheSettingsError, match="a fixed key"):
        cache.change({"headgate.cache.policy": "lru"}, 30)
    assert 10 == cache.now_us
