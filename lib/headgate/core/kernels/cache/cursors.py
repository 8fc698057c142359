"""Cursors of a topic and its ledgers: where cursors read, how often they wake up, ranks (entry-cache 5.2, 8)."""

from typing import Any

from numpy import int64

from headgate.core.kernels.cache.types import DISTANCE, NONE, CacheArrays
from headgate.core.kernels.compiled import inner

SILENCE_US = 50_000
SILENCE_INTERVALS = 20


@inner
def is_at_most(ledger: int64, entry: int64, other_ledger: int64, other_entry: int64) -> Any:
    """Whether a position is another one or before it."""
    return ledger < other_ledger or (ledger == other_ledger and entry <= other_entry)


@inner
def open_cursor(c: CacheArrays, topic: int64, cursor: int64, space: int64, entry: int64, now_us: int64) -> None:
    """Register a cursor that is not; space NONE: without a position."""
    of, its = c.cursors[cursor], c.topics[topic]
    its.registrations += 1
    its.registered += 1
    of.registration, of.has_mark, of.is_tracked = its.registrations, 0, 0
    of.interval_us, of.last_wake_us = c.state[0].wake_init_us, now_us
    of.first_mark, of.last_mark = NONE, NONE
    of.before, of.after = its.last_cursor, NONE
    if its.last_cursor == NONE:
        its.first_cursor = cursor
    else:
        c.cursors[its.last_cursor].after = cursor
    its.last_cursor = cursor
    move(c, cursor, space, entry)


@inner
def close_cursor(c: CacheArrays, topic: int64, cursor: int64, now_us: int64) -> None:
    """Unregister a cursor; its marks are for the caller to forget."""
    of, its = c.cursors[cursor], c.topics[topic]
    if of.before == NONE:
        its.first_cursor = of.after
    else:
        c.cursors[of.before].after = of.after
    if of.after == NONE:
        its.last_cursor = of.before
    else:
        c.cursors[of.after].before = of.before
    of.registration, of.is_tracked = 0, 0
    its.registered -= 1
    if its.registered == 0:
        its.last_removal_us = now_us


@inner
def move(c: CacheArrays, cursor: int64, space: int64, entry: int64) -> None:
    """Set the read position, and a missing mark position with it; space NONE: it is not tracked any more."""
    of = c.cursors[cursor]
    if space == NONE:
        of.is_tracked = 0
        return
    ledger = c.spaces[space].ledger
    of.is_tracked, of.read_ledger, of.read_entry, of.read_space = 1, ledger, entry, space
    if of.has_mark == 0:
        of.has_mark, of.mark_ledger, of.mark_entry = 1, ledger, entry


@inner
def wake(c: CacheArrays, cursor: int64, now_us: int64) -> None:
    """A cursor reads: fold the time since it last did into its interval, unless it was silent."""
    of = c.cursors[cursor]
    gap_us = now_us - of.last_wake_us
    if gap_us > 0:
        if gap_us <= SILENCE_US or gap_us <= SILENCE_INTERVALS * of.interval_us:
            of.interval_us = (4 * of.interval_us + gap_us) // 5
        of.last_wake_us = now_us


@inner
def rank(c: CacheArrays, topic: int64, cursor: int64) -> int64:
    """How many tracked cursors are at the cursor's tracked position or before, itself included; 0 without one."""
    own = c.cursors[cursor]
    if own.registration == 0 or own.is_tracked == 0:
        return int64(0)
    by_mark = c.state[0].by_mark != 0
    ledger = own.mark_ledger if by_mark else own.read_ledger
    entry = own.mark_entry if by_mark else own.read_entry
    count = int64(0)
    other = c.topics[topic].first_cursor
    while other != NONE:
        of = c.cursors[other]
        if by_mark:
            is_behind = is_at_most(of.mark_ledger, of.mark_entry, ledger, entry)
        else:
            is_behind = is_at_most(of.read_ledger, of.read_entry, ledger, entry)
        count += int64(of.is_tracked != 0 and is_behind)
        other = of.after
    return count


@inner
def slowest(c: CacheArrays, topic: int64, but: int64) -> int64:
    """The cursor with the least read position, other than `but`; NONE without a tracked one."""
    least = int64(NONE)
    other = c.topics[topic].first_cursor
    while other != NONE:
        of = c.cursors[other]
        if of.is_tracked != 0 and other != but and (least == NONE or _is_before(of, c.cursors[least])):
            least = other
        other = of.after
    return least


@inner
def _is_before(cursor: Any, other: Any) -> bool:
    return not is_at_most(other.read_ledger, other.read_entry, cursor.read_ledger, cursor.read_entry)


@inner
def note_end(c: CacheArrays, space: int64, number: int64) -> None:
    """An entry with this number was seen in a ledger: what comes in later ledgers is so much farther, for DISTANCE."""
    if c.state[0].policy != DISTANCE:
        return
    of = c.spaces[space]
    more = number - of.highest
    if more <= 0:
        return
    of.highest = number
    later = of.after
    while later != NONE:
        c.spaces[later].start += more
        later = c.spaces[later].after


@inner
def link_space(c: CacheArrays, space: int64) -> None:
    """List a new space among those of its topic, by ledger."""
    of = c.spaces[space]
    its = c.topics[of.topic]
    before = its.last_space
    while before != NONE and c.spaces[before].ledger > of.ledger:
        before = c.spaces[before].before
    of.start = int64(0) if before == NONE else c.spaces[before].start + c.spaces[before].highest + 1
    of.before = before
    of.after = its.first_space if before == NONE else c.spaces[before].after
    if before == NONE:
        its.first_space = space
    else:
        c.spaces[before].after = space
    if of.after == NONE:
        its.last_space = space
    else:
        c.spaces[of.after].before = space
