"""Settings of a cache: profiles give defaults only, the set of keys is closed, all mistakes are told at once."""

import pytest

from headgate.core.cache.settings import IGNORED_KEYS, CacheSettings, CacheSettingsError, PolicyName

SIZE = "managedLedgerCacheSizeMB"
BYTES = "headgate.cache.maxBytes"
TTL = "managedLedgerCacheEvictionTimeThresholdMillis"
GRACE = "managedLedgerContinueCachingAddedEntriesAfterLastActiveCursorLeavesMillis"
ACCESSED = "managedLedgerCacheEvictionExtendTTLOfRecentlyAccessed"
STRATEGY = "cacheEvictionByExpectedReadCount"
PROFILE = "headgate.cache.profile"
MODE = "headgate.cache.mode"


def mistakes(values):
    with pytest.raises(CacheSettingsError) as refused:
        CacheSettings.of(values)
    return refused.value.mistakes


PROFILES = [
    ({}, PolicyName.PIP430, True, 5, False, 2000, True),
    ({PROFILE: "pip"}, PolicyName.PIP430, True, 5, False, 2000, True),
    ({PROFILE: "4.2"}, PolicyName.PIP430, True, 5, True, 2000, False),
    ({PROFILE: "4.0"}, PolicyName.SIZE_PROPORTIONAL, False, 0, False, 0, False),
    ({PROFILE: "4.2", ACCESSED: False}, PolicyName.PIP430, True, 5, False, 2000, False),
    ({PROFILE: "4.0", "headgate.cache.policy": "lru"}, PolicyName.LRU, False, 0, False, 0, False),
]


@pytest.mark.parametrize(("values", "policy", "strategy", "requeue", "accessed", "grace_ms", "copies"), PROFILES)
def test_a_profile_gives_the_values_of_keys_that_are_left_out(
    values, policy, strategy, requeue, accessed, grace_ms, copies
):
    settings = CacheSettings.of(values)

    assert policy is settings.policy
    assert (strategy, requeue, accessed) == (settings.strategy, settings.max_requeue, settings.extend_accessed)
    assert (grace_ms, copies, copies) == (settings.grace_ms, settings.batch_read_copies, settings.adopt_handler)


def test_the_grace_is_twice_the_threshold_that_the_cache_starts_with():
    settings = CacheSettings.of({TTL: 300})

    assert settings.grace_us == 600_000
    assert settings.changed({TTL: 50}).grace_us == 600_000
    assert CacheSettings.of({TTL: 300, GRACE: 0}).grace_us == 0


def test_bytes_replace_megabytes_until_megabytes_alone_replace_them():
    settings = CacheSettings.of({SIZE: 2})

    assert settings.max_bytes == 2 << 20
    assert settings.changed({BYTES: 7}).max_bytes == 7
    assert settings.changed({BYTES: 7}).changed({SIZE: 3}).max_bytes == 3 << 20
    assert settings.changed({BYTES: 7, SIZE: 3}).max_bytes == 7


def test_keys_of_pulsar_without_effect_are_accepted():
    assert CacheSettings.of(dict.fromkeys(IGNORED_KEYS, "anything")) == CacheSettings.of({})


def test_settings_are_what_their_values_say():
    settings = CacheSettings.of({PROFILE: "4.2", BYTES: 9, TTL: 10})

    assert settings == CacheSettings.of(settings.values())


def test_all_mistakes_are_told_at_once():
    told = mistakes({"managedLedgerCacheSizeMb": 1, TTL: 0, "headgate.cache.policy": "mru", ACCESSED: "yes"})

    assert [line.partition(":")[0] for line in told] == [
        "managedLedgerCacheSizeMb",
        TTL,
        "headgate.cache.policy",
        ACCESSED,
    ]


WRONG = [
    {SIZE: -1},
    {SIZE: True},
    {BYTES: 1.5},
    {"managedLedgerCacheEvictionWatermark": 1.01},
    {"managedLedgerCacheEvictionWatermark": "0.9"},
    {"managedLedgerCacheEvictionWatermark": float("nan")},
    {"headgate.cache.horizon.roundShare": 0},
    {"brokerAdaptiveRecvByteBufAllocatorMinimumSize": 1 << 31},
    {"brokerAdaptiveRecvByteBufAllocatorMinimumSize": 32_768},
    {PROFILE: "4.0", STRATEGY: True},
    {MODE: "horizon", "headgate.cache.policy": "lru"},
    {MODE: "horizon", STRATEGY: False},
]


@pytest.mark.parametrize("values", WRONG, ids=str)
def test_a_value_that_is_not_allowed_is_a_mistake(values):
    assert len(mistakes(values)) == 1


FIXED = [{}, {"nope": 1}, {STRATEGY: True}, {IGNORED_KEYS[0]: 1}, {SIZE: -1}, {SIZE: 1, GRACE: 5}]


@pytest.mark.parametrize("values", FIXED, ids=str)
def test_a_change_takes_known_dynamic_keys_with_good_values_only(values):
    with pytest.raises(CacheSettingsError):
        CacheSettings.of({}).changed(values)
