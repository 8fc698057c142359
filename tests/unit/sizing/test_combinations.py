"""What a sweep tries: everything once, the conf of now first, mistakes all together."""

from dataclasses import fields, replace
from itertools import islice

import pytest

from headgate.core.cache.broker import Cache
from headgate.core.cache.settings import CacheSettings, PolicyName
from headgate.core.cache.traces.workload import generate
from headgate.errors import ConfError
from headgate.sizing.combinations import _UNREAD, Grid, combinations, for_sample

MIB_BYTES = 1 << 20
GRACE = "managedLedgerContinueCachingAddedEntriesAfterLastActiveCursorLeavesMillis"
TTL = "managedLedgerCacheEvictionTimeThresholdMillis"
NOW = {"managedLedgerCacheSizeMB": 4}
OTHER = {
    "watermark": 0.5,
    "ttl_ms": 40,
    "max_requeue": 1,
    "extend_accessed": True,
    "adopt_handler": False,
    "cache_reads": True,
    "by_mark_deleted": True,
    "distance_target": 0.6,
    "distance_batch": 3,
    "distance_look": 1,
    "wake_init_us": 1,
    "replay_init_us": 1,
    "range_hits": "whole",
    "grace_ms": 1,
    "strategy": False,
}
"""A value of each field that some policy does not read, other than the default."""
ROWS = list(islice(generate("mixed", 1), 4000))


def tried(grid: Grid, now: dict = NOW) -> list[tuple[int, str, dict]]:
    return [
        (one.settings.max_bytes // MIB_BYTES, str(one.settings.policy), dict(one.changed))
        for one in combinations(grid, now)
    ]


def test_the_conf_of_now_comes_first_and_its_size_is_tried_with_all_policies_and_keys() -> None:
    grid = Grid([2 * MIB_BYTES], [PolicyName.PIP430, PolicyName.LRU], {TTL: [200]})
    assert tried(grid) == [
        (4, "pip430", {}),
        (2, "pip430", {}),
        (2, "pip430", {TTL: 200}),
        (2, "lru", {}),
        (4, "pip430", {TTL: 200}),
        (4, "lru", {}),
    ]


def test_what_a_policy_does_not_read_is_not_tried_with_it() -> None:
    grid = Grid([4 * MIB_BYTES], list(PolicyName), {"headgate.cache.distance.look": [4]})
    with_look = [policy for _, policy, changed in tried(grid) if changed]
    assert with_look == ["cursor_distance"]


def test_values_of_several_keys_are_tried_all_with_all() -> None:
    interval = "managedLedgerCacheEvictionIntervalMs"
    changes = [one for _, _, one in tried(Grid([4 * MIB_BYTES], [PolicyName.PIP430], {TTL: [1, 2], interval: [3]}))]
    assert len(changes) == 6
    assert {TTL: 2, interval: 3} in changes


def test_a_value_of_now_is_set_where_it_would_follow_from_another_one() -> None:
    """The grace of now is twice the time threshold of now, and would be twice a new one."""
    found = combinations(Grid([64 * MIB_BYTES], [PolicyName.PIP430], {TTL: [5000], GRACE: [2000, 4000]}), {})
    tried_with = {(one.settings.ttl_ms, one.settings.grace_ms): dict(one.changed) for one in found}
    assert tried_with == {
        (1000, 2000): {},
        (1000, 4000): {GRACE: 4000},
        (5000, 10_000): {TTL: 5000},
        (5000, 2000): {TTL: 5000, GRACE: 2000},
        (5000, 4000): {TTL: 5000, GRACE: 4000},
    }


def test_what_came_before_pip_430_is_not_tried_with_what_pip_430_brought() -> None:
    vary = {GRACE: [0, 5], "cacheEvictionByExpectedReadCount": [False]}
    found = combinations(Grid([64 * MIB_BYTES], [PolicyName.BY_MARK_DELETE, PolicyName.SIZE_PROPORTIONAL], vary), {})
    assert [one.settings.policy for one in found] == ["pip430", "by_mark_delete", "size_proportional"]


def test_a_sweep_is_exact_whatever_the_conf_of_now() -> None:
    now = {"headgate.cache.mode": "horizon"}
    grid = Grid([MIB_BYTES], list(PolicyName), {"cacheEvictionByExpectedReadCount": [False]})
    assert combinations(grid, now) == combinations(grid, {})
    assert {one.settings.mode for one in combinations(grid, now)} == {"exact"}


def test_every_value_that_is_not_allowed_is_told() -> None:
    vary = {TTL: [0, "x"], "headgate.cache.policy": ["lru"], "nonsense": [1]}
    with pytest.raises(ConfError) as told:
        combinations(Grid([1], [PolicyName.LRU], vary), NOW)
    first, second, policy, unknown = told.value.mistakes
    assert first.startswith(f"vary.{TTL}: got 0; allowed: an integer from 1")
    assert second.startswith(f"vary.{TTL}: got 'x'")
    assert policy == "vary.headgate.cache.policy: got a key that a sweep sets; list policies instead"
    assert unknown.startswith("vary.nonsense: got an unknown key")


def test_too_many_combinations_are_refused() -> None:
    with pytest.raises(ConfError, match="got 2,002 combinations; allowed: up to 2,000"):
        combinations(Grid([1], [PolicyName.PIP430], {TTL: range(1, 1002)}), NOW)


@pytest.mark.parametrize("policy", PolicyName)
def test_a_field_that_is_said_not_to_be_read_changes_nothing(policy: PolicyName) -> None:
    settings = CacheSettings.of({"headgate.cache.policy": policy, "headgate.cache.maxBytes": MIB_BYTES // 4})
    settings = replace(settings, range_hits="entry")
    other = replace(settings, **{name: OTHER[name] for name in _UNREAD[policy]})
    assert outcome(settings) == outcome(other)


def outcome(settings: CacheSettings) -> tuple[dict, dict, int]:
    cache = Cache(settings)
    if settings.policy is PolicyName.BELADY:
        cache.foresee(ROWS)
    for row in ROWS:
        cache.feed(row)
    return cache.totals(), cache.misses_by_reason(), cache.pinned_bytes()


def test_every_field_that_a_policy_does_not_read_exists() -> None:
    assert {name for names in _UNREAD.values() for name in names} <= {one.name for one in fields(CacheSettings)}
    assert _UNREAD.keys() == set(PolicyName)


def test_the_cache_of_a_sample_is_as_many_times_smaller() -> None:
    settings = CacheSettings.of(NOW)
    scaled = for_sample(settings, 10)
    assert (scaled.max_bytes, scaled.distance_batch, scaled.reason_memory) == (4 * MIB_BYTES // 10, 10, 410)
    assert for_sample(settings, 1) is settings
