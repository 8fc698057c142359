"""What a sweep tries: the conf that brokers have now, and every combination of a grid that differs from the others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import product
from typing import Any

from headgate.core.cache.settings import MIB_BYTES, CacheSettings, CacheSettingsError, PolicyName
from headgate.errors import ConfError

MOST_COMBINATIONS = 2000
POLICY_KEY = "headgate.cache.policy"
MODE_KEY = "headgate.cache.mode"
SIZE_KEYS = ("managedLedgerCacheSizeMB", "headgate.cache.maxBytes")
TAKEN_KEYS = {
    POLICY_KEY: "list policies instead",
    MODE_KEY: "a sweep is exact; remove it",
    "headgate.cache.profile": "vary the keys that it stands for",
} | dict.fromkeys(SIZE_KEYS, "list sizes_mib instead")
"""Keys that a grid cannot vary, and what to do instead."""

_DISTANCE = ("distance_target", "distance_batch", "distance_look", "wake_init_us", "replay_init_us")
_QUEUE = ("max_requeue", "extend_accessed", "adopt_handler")
_BEFORE_PIP = (*_DISTANCE, *_QUEUE, "grace_ms", "strategy")
_COUNTED = ("watermark", "ttl_ms", "cache_reads", "by_mark_deleted", *_QUEUE)
_GENERIC = (*_DISTANCE, *_COUNTED)
_UNREAD = dict.fromkeys(PolicyName, _GENERIC) | {
    PolicyName.PIP430: _DISTANCE,
    PolicyName.BY_MARK_DELETE: (*_BEFORE_PIP, "by_mark_deleted"),
    PolicyName.SIZE_PROPORTIONAL: _BEFORE_PIP,
    PolicyName.CURSOR_DISTANCE: _COUNTED,
    PolicyName.BELADY: (*_GENERIC, "range_hits", "grace_ms", "strategy"),
}
"""Fields that make no difference under a policy."""
_AS_NOW = object()
_KEYS = {declared.name: declared.metadata["setting"].key for declared in fields(CacheSettings)}


@dataclass(frozen=True)
class Grid:
    """What to try: all sizes with all policies, and with all values of `vary`, by key, that a policy reads."""

    sizes_bytes: Sequence[int]
    policies: Sequence[PolicyName]
    vary: Mapping[str, Sequence[object]]


@dataclass(frozen=True)
class Combination:
    """One cache to try. changed: keys, other than size and policy, that have to be set to come to it, with values."""

    number: int
    settings: CacheSettings
    changed: Mapping[str, object]
    is_present: bool


def combinations(grid: Grid, present: Mapping[str, object]) -> list[Combination]:
    """The present conf first, then the grid without what it has twice; what no key of the grid says is as at present.

    The present size is tried with every policy and key, so that a change of keys alone can be judged. A value that a
    policy does not read is not tried with it. present: values by key, as far as they are set; what follows from them
    (the grace from the time threshold) follows from varied ones, too, unless it is varied itself. Raises ConfError with
    every value that is not allowed.
    """
    present = _without_mode(present)
    if mistakes := key_mistakes(grid.vary, present):
        raise ConfError(mistakes)
    settings = CacheSettings.of(present)
    now = _exact(settings, settings.max_bytes)
    found = {_identity(now): Combination(0, now, {}, is_present=True)}
    sizes = sorted({*grid.sizes_bytes, now.max_bytes})
    kept = {key: value for key, value in present.items() if key not in SIZE_KEYS}
    for size_bytes, policy in product(sizes, grid.policies):
        unread = {_KEYS[name] for name in _UNREAD[policy]}
        for changed in _variants({key: grid.vary[key] for key in grid.vary if key not in unread}):
            settings = _exact(CacheSettings.of({**kept, POLICY_KEY: policy, **changed}), size_bytes)
            if _identity(settings) not in found:
                found[_identity(settings)] = Combination(len(found), settings, changed, is_present=False)
    if len(found) > MOST_COMBINATIONS:
        raise ConfError(
            [f"grid: got {len(found):,} combinations; allowed: up to {MOST_COMBINATIONS:,}; try fewer values"]
        )
    return list(found.values())


def key_mistakes(vary: Mapping[str, Sequence[object]], present: Mapping[str, object]) -> list[str]:
    """Every key and value of `vary` that cannot be tried on the present conf."""
    mistakes, present = [], _without_mode(present)
    for key, values in vary.items():
        if key in TAKEN_KEYS:
            mistakes.append(f"vary.{key}: got a key that a sweep sets; {TAKEN_KEYS[key]}")
            continue
        for value in values:
            try:
                CacheSettings.of({**present, key: value})
            except CacheSettingsError as error:
                mistakes += [f"vary.{mistake}" for mistake in error.mistakes]
    return list(dict.fromkeys(mistakes))


def _variants(vary: Mapping[str, Sequence[object]]) -> list[dict[str, object]]:
    """Every choice of some keys and their values, fewest keys first."""
    choices = product(*((_AS_NOW, *values) for values in vary.values()))
    given = (zip(vary, choice, strict=True) for choice in choices)
    return sorted(({key: value for key, value in pairs if value is not _AS_NOW} for pairs in given), key=len)


def _without_mode(values: Mapping[str, object]) -> Mapping[str, object]:
    """A sweep is exact: what cannot be had in mode horizon can be tried all the same."""
    return {key: value for key, value in values.items() if key != MODE_KEY}


def _exact(settings: CacheSettings, max_bytes: int) -> CacheSettings:
    return replace(settings, size_mib=max_bytes // MIB_BYTES, max_bytes_override=max_bytes)


def _identity(settings: CacheSettings) -> CacheSettings:
    """The same for settings that make no difference to what a cache does."""
    unread = {*_UNREAD[settings.policy], "profile", "shards", "round_share", "round_rows", "chunk_divisor"}
    defaults: dict[str, Any] = {one.name: one.default for one in fields(settings) if one.name in unread}
    return replace(settings, **defaults)


def for_sample(settings: CacheSettings, every: int) -> CacheSettings:
    """The cache for a trace with one entry in so many: as many times smaller, and entries are as many times farther.

    It remembers as many times fewer reasons: with a whole memory it would know those of reads that are longer ago.
    """
    if every == 1:
        return settings
    return replace(
        settings,
        max_bytes_override=settings.max_bytes // every,
        distance_batch=max(1, settings.distance_batch // every),
        reason_memory=-(-settings.reason_memory // every),
    )
