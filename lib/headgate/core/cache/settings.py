"""The configuration of an entry cache: frozen, closed, Pulsar's key names, all mistakes at once (entry-cache 12)."""
# ruff: noqa: RUF009  the calls in CacheSettings declare its fields

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Any, NamedTuple, Self

from headgate.core.numbers import MAX
from headgate.core.settings_keys import Mistake, Setting, choice, integer, switch
from headgate.errors import ConfError

MIB_BYTES = 1 << 20
MILLISECOND_US = 1000
BUFFER_BYTES_MAX = 1 << 30
PREFIX = "headgate.cache."
RECEIVE_PREFIX = "brokerAdaptiveRecvByteBufAllocator"
_TTL_MS = 1000

IGNORED_KEYS = (
    "managedLedgerCacheEvictionFrequency",
    "managedLedgerMaxReadsInFlightSizeInMB",
    "managedLedgerCursorBackloggedThreshold",
    "managedLedgerMinimumBacklogCursorsForCaching",
    "managedLedgerMinimumBacklogEntriesForCaching",
    "managedLedgerMaxBacklogBetweenCursorsForCaching",
)
"""Keys of Pulsar that are accepted, whatever their value, and do nothing here."""


class CacheSettingsError(ConfError, ValueError):
    """Mistakes in the configuration of a cache; nothing was built and nothing changed."""


class Profile(StrEnum):
    """Whose defaults hold: those of two releases, or what PIP-430 recommends."""

    V4_0 = "4.0"
    V4_2 = "4.2"
    PIP = "pip"


class PolicyName(StrEnum):
    """What decides which entries are in the cache (entry-cache 10)."""

    PIP430 = "pip430"
    LRU = "lru"
    FIFO = "fifo"
    SIEVE = "sieve"
    S3FIFO = "s3fifo"
    BY_MARK_DELETE = "by_mark_delete"
    SIZE_PROPORTIONAL = "size_proportional"
    CURSOR_DISTANCE = "cursor_distance"
    BELADY = "belady"


class Mode(StrEnum):
    """One state for all topics of a broker, or shards that meet at the end of each round (entry-cache 14)."""

    EXACT = "exact"
    HORIZON = "horizon"


class RangeHits(StrEnum):
    """What a range read hits: all of its entries or none, as in Pulsar, or each entry that is cached."""

    WHOLE = "whole"
    ENTRY = "entry"


class Release(StrEnum):
    """When copies that were handed out are freed: at once, or by rows."""

    IMMEDIATE = "immediate"
    EXPLICIT = "explicit"


def _fraction(key: str, default: float, *, from_zero: bool, dynamic: bool = False) -> Any:
    """Declare a number up to 1."""

    def read(value: object) -> object:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        # compared before it becomes a float: an integer may be too large for one
        if not (is_number and 0 <= value <= 1 and (from_zero or value > 0)):  # type: ignore[operator]
            raise ValueError(value)
        return float(value)  # type: ignore[arg-type]

    allowed = "a number from 0 to 1" if from_zero else "a number above 0, up to 1"
    return _marked(field(default=default, metadata={"setting": Setting(key, allowed, read, str(default))}), dynamic)


def _marked(declared: Any, dynamic: bool) -> Any:
    """The declaration with the note whether rows may change the key."""
    declared.metadata = {**declared.metadata, "dynamic": dynamic}
    return declared


def _dynamic(declared: Any) -> Any:
    return _marked(declared, dynamic=True)


@dataclass(frozen=True, slots=True)
class CacheSettings:
    """Every key of entry-cache 12 as a field.

    Build it with `of`: a key that is left out has the value of its profile. Durations and sizes have their unit in the
    name. `max_bytes_override` replaces `size_mib` where it is set. `grace_ms` is never None: left out, it is twice the
    time threshold that the cache starts with.
    """

    profile: Profile = choice(f"{PREFIX}profile", Profile.PIP)
    policy: PolicyName = choice(f"{PREFIX}policy", PolicyName.PIP430)
    mode: Mode = choice(f"{PREFIX}mode", Mode.EXACT)

    size_mib: int = _dynamic(integer("managedLedgerCacheSizeMB", 64, 0, MAX // MIB_BYTES))
    max_bytes_override: int | None = _dynamic(integer(f"{PREFIX}maxBytes", None, 0, MAX))
    watermark: float = _fraction("managedLedgerCacheEvictionWatermark", 0.9, from_zero=True, dynamic=True)
    ttl_ms: int = _dynamic(integer("managedLedgerCacheEvictionTimeThresholdMillis", _TTL_MS, 1, MAX // 10**6))
    interval_ms: int = integer("managedLedgerCacheEvictionIntervalMs", 10, 1, MAX // 10**6)
    strategy: bool = switch("cacheEvictionByExpectedReadCount", default=True)
    max_requeue: int = _dynamic(
        integer("managedLedgerCacheEvictionExtendTTLOfEntriesWithRemainingExpectedReadsMaxTimes", 5, 0)
    )
    extend_accessed: bool = _dynamic(switch("managedLedgerCacheEvictionExtendTTLOfRecentlyAccessed"))
    grace_ms: int = integer(
        "managedLedgerContinueCachingAddedEntriesAfterLastActiveCursorLeavesMillis",
        None,
        0,
        MAX // 10**6,
        derived="twice the time threshold",
    )
    copy_entries: bool = switch("managedLedgerCacheCopyEntries")
    by_mark_deleted: bool = switch("cacheEvictionByMarkDeletedPosition")
    receive_minimum_bytes: int = integer(f"{RECEIVE_PREFIX}MinimumSize", 1024, 1, BUFFER_BYTES_MAX)
    receive_initial_bytes: int = integer(f"{RECEIVE_PREFIX}InitialSize", 16_384, 1, BUFFER_BYTES_MAX)
    receive_maximum_bytes: int = integer(f"{RECEIVE_PREFIX}MaximumSize", 1_048_576, 1, BUFFER_BYTES_MAX)

    range_hits: RangeHits = choice(f"{PREFIX}rangeHits", RangeHits.WHOLE)
    release: Release = choice(f"{PREFIX}release", Release.IMMEDIATE)
    cache_reads: bool = switch(f"{PREFIX}cacheReads")
    adopt_handler: bool = switch(f"{PREFIX}adoptHandler", default=True)
    batch_read_copies: bool = switch(f"{PREFIX}batchReadCopies", default=True)
    distance_target: float = _fraction(f"{PREFIX}distance.target", 0.98, from_zero=True)
    distance_batch: int = integer(f"{PREFIX}distance.batch", 100, 1)
    distance_look: int = integer(f"{PREFIX}distance.look", 16, 1)
    wake_init_us: int = integer(f"{PREFIX}distance.wakeInitMicros", 50_000, 0, MAX)
    replay_init_us: int = integer(f"{PREFIX}distance.replayInitMicros", 250_000, 0, MAX)
    reason_memory: int = integer(f"{PREFIX}reasonMemory", 4096, 0)
    receive_window_us: int = integer(f"{PREFIX}recvWindowMicros", 1000, 0, MAX)
    bookie_minimum_bytes: int = integer(f"{PREFIX}bookieRecvBufMinimumSize", 64, 1, BUFFER_BYTES_MAX)
    bookie_initial_bytes: int = integer(f"{PREFIX}bookieRecvBufInitialSize", 2048, 1, BUFFER_BYTES_MAX)
    bookie_maximum_bytes: int = integer(f"{PREFIX}bookieRecvBufMaximumSize", 65_536, 1, BUFFER_BYTES_MAX)
    shards: int = integer(f"{PREFIX}horizon.shards", 8, 1)
    round_share: float = _fraction(f"{PREFIX}horizon.roundShare", 0.05, from_zero=False)
    round_rows: int = integer(f"{PREFIX}horizon.roundRows", 0, 0)
    chunk_divisor: int = integer(f"{PREFIX}horizon.chunkDivisor", 1024, 0)

    @staticmethod
    def of(values: Mapping[str, object]) -> "CacheSettings":
        """Settings from values by key: those of `headgate.cache.profile`, overridden by the others.

        Raises CacheSettingsError with every unknown key, every value that is not allowed, and every pair of values
        that contradict each other.
        """
        settings, mistakes = _built(values)
        if mistakes:
            raise CacheSettingsError([str(mistake) for mistake in mistakes])
        return settings

    def changed(self, values: Mapping[str, object]) -> Self:
        """Settings with other values for keys that may change while a cache runs; a size in MB ends one in bytes.

        Raises CacheSettingsError for no values at all, with every key that is unknown or fixed, and with every value
        that is not allowed.
        """
        given, mistakes = _read(values, _DYNAMIC)
        if not values:
            mistakes.append(Mistake("conf", "nothing", f"one or more of {', '.join(_DYNAMIC)}", "name what changes"))
        if mistakes:
            raise CacheSettingsError([str(mistake) for mistake in mistakes])
        if "size_mib" in given:
            given = {"max_bytes_override": None, **given}
        return replace(self, **given)

    def values(self) -> dict[str, Any]:
        """The settings by key, as `of` reads them; what is unset is left out."""
        return {
            setting.key: getattr(self, name) for name, setting in _FIELDS.items() if getattr(self, name) is not None
        }

    @property
    def max_bytes(self) -> int:
        """The limit of the cache."""
        return self.size_mib * MIB_BYTES if self.max_bytes_override is None else self.max_bytes_override

    @property
    def ttl_us(self) -> int:
        """How long an entry that nobody waits for stays."""
        return self.ttl_ms * MILLISECOND_US

    @property
    def interval_us(self) -> int:
        """Ticks are the instants divisible by it."""
        return self.interval_ms * MILLISECOND_US

    @property
    def grace_us(self) -> int:
        """How long a topic is cached on after its last cursor left."""
        return self.grace_ms * MILLISECOND_US


_FIELDS: dict[str, Setting] = {declared.name: declared.metadata["setting"] for declared in fields(CacheSettings)}
_SETTINGS = {setting.key: (name, setting) for name, setting in _FIELDS.items()}
_DYNAMIC = {
    declared.metadata["setting"].key: (declared.name, declared.metadata["setting"])
    for declared in fields(CacheSettings)
    if declared.metadata.get("dynamic", False)
}
KEYS = tuple(_SETTINGS)
WORD_KEYS = frozenset(key for key, (_, setting) in _SETTINGS.items() if isinstance(setting.read, type))
"""Those of KEYS whose value is one of several words, of which some look like numbers."""

_PROFILES: dict[Profile, dict[str, Any]] = {
    Profile.PIP: {},
    Profile.V4_2: {"extend_accessed": True, "adopt_handler": False, "batch_read_copies": False},
    Profile.V4_0: {
        "policy": PolicyName.SIZE_PROPORTIONAL,
        "strategy": False,
        "max_requeue": 0,
        "grace_ms": 0,
        "adopt_handler": False,
        "batch_read_copies": False,
    },
}


def mistakes_in(values: Mapping[str, object]) -> list[Mistake]:
    """What `CacheSettings.of` refuses in the values; the reader of a file adds file and line."""
    return _built(values)[1]


class Difference(NamedTuple):
    """Between two sets of values: what may change while a cache runs, as a conf row says it, and keys that may not."""

    dynamic: dict[str, Any]
    fixed: tuple[str, ...]


def difference(before: Mapping[str, object], after: Mapping[str, object]) -> Difference:
    """What has to change in a cache that began with the settings of `before` for those of `after` to hold.

    A grace that neither names is that of the beginning. Raises CacheSettingsError as `CacheSettings.of`.
    """
    began, wanted = CacheSettings.of(before), CacheSettings.of(after)
    differs = {name for name in _FIELDS if getattr(began, name) != getattr(wanted, name)}
    if _FIELDS["grace_ms"].key not in {*before, *after}:
        differs.discard("grace_ms")
    limits = {"size_mib", "max_bytes_override"}
    if differs & limits:  # a size in MB ends one in bytes, so that both are said
        differs |= limits if wanted.max_bytes_override is not None else {"size_mib"}
        differs -= set() if wanted.max_bytes_override is not None else {"max_bytes_override"}
    names = {name: _FIELDS[name].key for name in _FIELDS if name in differs}
    dynamic = {key: getattr(wanted, name) for name, key in names.items() if key in _DYNAMIC}
    return Difference(dynamic, tuple(key for key in names.values() if key not in _DYNAMIC))


def _built(values: Mapping[str, object]) -> tuple[CacheSettings, list[Mistake]]:
    """Settings of the values that are allowed, and what is wrong with all of them."""
    given, mistakes = _read(values, _SETTINGS)
    settings = CacheSettings(**{**_profile_defaults(given), **given})
    return settings, [*mistakes, *_contradictions(settings, given)]


def _profile_defaults(given: Mapping[str, Any]) -> dict[str, Any]:
    return {"grace_ms": 2 * given.get("ttl_ms", _TTL_MS), **_PROFILES[given.get("profile", Profile.PIP)]}


def _read(
    values: Mapping[str, object], settings: Mapping[str, tuple[str, Setting]]
) -> tuple[dict[str, Any], list[Mistake]]:
    """Fields by name, as far as the values are allowed, and what is wrong with the others."""
    given: dict[str, Any] = {}
    mistakes = []
    for key, value in values.items():
        if key in settings:
            name, setting = settings[key]
            try:
                given[name] = setting.read(value)
            except (ValueError, TypeError):
                mistakes.append(setting.mistake(value))
        elif settings is _SETTINGS and key not in IGNORED_KEYS:
            mistakes.append(Mistake(str(key), "an unknown key", ", ".join(settings), "correct the name, or remove it"))
        elif settings is _DYNAMIC:
            got = "a fixed key" if key in _SETTINGS or key in IGNORED_KEYS else "an unknown key"
            mistakes.append(Mistake(str(key), got, ", ".join(settings), "start the cache anew to change it"))
    return given, mistakes


def _contradictions(settings: CacheSettings, given: Mapping[str, Any]) -> Iterator[Mistake]:
    if settings.profile is Profile.V4_0 and given.get("strategy"):
        key, remedy = _FIELDS["strategy"].key, "remove it, or choose a later profile"
        yield Mistake(key, "true", "false in profile 4.0, which has no expected reads", remedy)
    if settings.mode is Mode.HORIZON and not (settings.policy is PolicyName.PIP430 and settings.strategy):
        strategy = f"{_FIELDS['strategy'].key}={str(settings.strategy).lower()}"
        got = f"horizon with policy {settings.policy} and {strategy}"
        allowed = f"exact, or horizon with policy {PolicyName.PIP430} and expected reads"
        yield Mistake(_FIELDS["mode"].key, got, allowed, "correct one of them")
    for source in ("receive", "bookie"):
        names = [f"{source}_{bound}_bytes" for bound in ("minimum", "initial", "maximum")]
        bounds = [getattr(settings, name) for name in names]
        if bounds != sorted(bounds):
            keys = ", ".join(_FIELDS[name].key for name in names[1:])
            yield Mistake(
                _FIELDS[names[0]].key, f"{bounds}", f"no more than {keys}, in this order", "correct one of them"
            )
