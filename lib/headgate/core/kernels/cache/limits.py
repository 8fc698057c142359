"""Which settings and rows the array form takes, and the settings as numbers (entry-cache 12)."""

from bisect import bisect_left
from typing import Any

from headgate.core.cache.limit import ByteLimit
from headgate.core.cache.receive_buffers import TABLE
from headgate.core.cache.rows import WITHOUT_LEDGER, EventKind, Row
from headgate.core.cache.settings import CacheSettings, Mode, PolicyName, RangeHits, Release
from headgate.core.kernels.cache.types import BELADY, DISTANCE, FIFO, LRU, PIP430, SIEVE

POLICIES = {
    PolicyName.PIP430: PIP430,
    PolicyName.LRU: LRU,
    PolicyName.FIFO: FIFO,
    PolicyName.SIEVE: SIEVE,
    PolicyName.CURSOR_DISTANCE: DISTANCE,
    PolicyName.BELADY: BELADY,
}
TIME_LIMIT_US = 1 << 55
NUMBER_LIMIT = 1 << 60
MEMORY_LIMIT = 1 << 31


def refusal_of(settings: CacheSettings) -> str | None:
    """Why the array form does not take these settings, None where it does. The readable form takes all."""
    if settings.policy not in POLICIES:
        return f"policy {settings.policy}"
    if settings.mode is not Mode.EXACT:
        return f"mode {settings.mode}"
    if settings.release is not Release.IMMEDIATE:
        return f"release {settings.release}"
    if settings.policy is PolicyName.PIP430 and not settings.strategy:
        return "pip430 without expected reads"
    if settings.reason_memory >= MEMORY_LIMIT:
        return f"a memory of {settings.reason_memory} reasons, allowed are less than {MEMORY_LIMIT}"
    if max(settings.wake_init_us, settings.replay_init_us, settings.receive_window_us) >= TIME_LIMIT_US:
        return f"a time of {TIME_LIMIT_US} us or more"
    if max(settings.max_bytes, settings.max_requeue) >= NUMBER_LIMIT:
        return f"a limit of bytes or requeues of {NUMBER_LIMIT} or more"
    return None


def fits(row: Row) -> bool:
    """Whether the numbers of a well-formed row leave room to calculate in 64 bits."""
    if not -TIME_LIMIT_US < row.t_us < TIME_LIMIT_US:
        return False
    if row.kind in WITHOUT_LEDGER:
        return True
    return max(row.ledger or 0, 0 if row.kind == EventKind.LEDGER_DELETE else row.entry or 0) < NUMBER_LIMIT


def limits_of(settings: CacheSettings) -> dict[str, int]:
    """The settings as numbers, by the fields of STATE."""
    limit = ByteLimit(settings.max_bytes, settings.watermark)
    values: dict[str, Any] = {
        "policy": POLICIES[settings.policy],
        "is_whole": settings.range_hits is RangeHits.WHOLE and settings.policy is not PolicyName.BELADY,
        "max_bytes": limit.max_bytes,
        "trigger_bytes": limit.trigger_bytes,
        "target_bytes": limit.target_bytes,
        "goal_bytes": int(float(limit.max_bytes) * settings.distance_target),
        "ttl_us": settings.ttl_us,
        "interval_us": settings.interval_us,
        "max_requeue": settings.max_requeue,
        "extends": settings.extend_accessed,
        "strategy": settings.strategy,
        "grace_us": settings.grace_us,
        "copies_all": settings.copy_entries,
        "copies_reads": settings.batch_read_copies,
        "adopts": settings.adopt_handler,
        "by_mark": settings.policy is PolicyName.PIP430 and settings.by_mark_deleted,
        "batch": settings.distance_batch,
        "look": settings.distance_look,
        "wake_init_us": settings.wake_init_us,
        "replay_init_us": settings.replay_init_us,
        "memory": settings.reason_memory,
        "window_us": settings.receive_window_us,
    }
    return {name: int(value) for name, value in values.items()}


def buffer_sizes_of(settings: CacheSettings) -> list[int]:
    """Sizes of receive buffers that are guessed, and the least, first and largest guess of producer and storage."""
    bounds = (
        *(settings.receive_minimum_bytes, settings.receive_initial_bytes, settings.receive_maximum_bytes),
        *(settings.bookie_minimum_bytes, settings.bookie_initial_bytes, settings.bookie_maximum_bytes),
    )
    return [*TABLE, *(bisect_left(TABLE, bound) for bound in bounds)]
