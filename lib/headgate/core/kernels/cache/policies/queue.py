"""The removal queue of pip430: the pass that looks at age, and the one that frees bytes (entry-cache 6, 7)."""

from typing import Any

from numpy import int64

from headgate.core.kernels.cache.order import append, sort_ids, unlink
from headgate.core.kernels.cache.store import remove
from headgate.core.kernels.cache.types import EVICTED, EXPIRED, NEVER, NONE, CacheArrays
from headgate.core.kernels.compiled import inner


@inner
def next_tick_us(c: CacheArrays, after_us: int64) -> int64:
    """The first tick after an instant."""
    interval_us = c.state[0].interval_us
    return (after_us // interval_us + 1) * interval_us


@inner
def plan(c: CacheArrays, now_us: int64) -> None:
    """Name the next tick that can change anything, after one at `now_us` or before it."""
    state, limits = c.state[0], c.state[0]
    if _need_bytes(c) > 0:
        state.due_us = next_tick_us(c, now_us)
    elif state.head == NONE:
        state.due_us = NEVER
    else:
        state.due_us = next_tick_us(c, max(now_us, c.entries[state.head].ts_us + limits.ttl_us))


@inner
def tick(c: CacheArrays, now_us: int64) -> None:
    """What has become too old leaves; then, where the limit was lowered, what is too much."""
    _time_pass(c, now_us, now_us - c.state[0].ttl_us)
    size_pass(c, now_us)
    plan(c, now_us)


@inner
def size_pass(c: CacheArrays, now_us: int64) -> None:
    """Free down to the target, where more than the trigger is cached."""
    need_bytes = _need_bytes(c)
    if need_bytes <= 0:
        return
    last, visits = _reached(c, need_bytes)
    if last != NONE:
        _one_lap(c, last, now_us)
    else:
        visits = _all_laps(c, need_bytes, now_us)
    state = c.state[0]
    visits += int64(state.head != NONE)
    state.size_passes += 1
    state.visits += visits
    state.max_pass_visits = max(state.max_pass_visits, visits)


@inner
def _need_bytes(c: CacheArrays) -> int64:
    """What a size pass has to free now, 0 where none is due."""
    current_bytes, limits = c.state[0].current_bytes, c.state[0]
    if current_bytes <= limits.trigger_bytes or current_bytes <= limits.target_bytes:
        return int64(0)
    return current_bytes - limits.target_bytes


@inner
def _is_requeued(c: CacheArrays, entry: int64) -> bool:
    of, limits = c.entries[entry], c.state[0]
    is_expected = of.is_handled != 0 and of.count >= 1 and of.requeues < limits.max_requeue
    return is_expected or (limits.extends != 0 and of.accessed != 0)


@inner
def _requeue(c: CacheArrays, entry: int64, now_us: int64) -> None:
    _spend(c, entry, now_us, int64(1))
    unlink(c, entry)
    append(c, entry)


@inner
def _spend(c: CacheArrays, entry: int64, now_us: int64, times: int64) -> None:
    """Spend so much of an entry's budget."""
    of = c.entries[entry]
    of.ts_us, of.accessed = now_us, 0
    of.requeues += times
    c.state[0].requeues += times


@inner
def _time_pass(c: CacheArrays, now_us: int64, cutoff_us: int64) -> None:
    state = c.state[0]
    while state.head != NONE and c.entries[state.head].ts_us < cutoff_us:
        entry = state.head
        state.visits += 1
        if _is_requeued(c, entry):
            _requeue(c, entry, now_us)
        else:
            remove(c, entry, EXPIRED)


@inner
def _reached(c: CacheArrays, need_bytes: int64) -> tuple[Any, Any]:
    """The last victim, if one lap frees enough, and the visits up to it; else NONE."""
    entry = c.state[0].head
    visits = int64(0)
    while entry != NONE:
        visits += 1
        if not _is_requeued(c, entry):
            need_bytes -= c.entries[entry].size
            if need_bytes <= 0:
                return entry, visits
        entry = int64(c.entries[entry].newer)
    return int64(NONE), visits


@inner
def _one_lap(c: CacheArrays, last: int64, now_us: int64) -> None:
    """Judge the entries up to the last victim."""
    while True:
        entry = c.state[0].head
        if _is_requeued(c, entry):
            _requeue(c, entry, now_us)
        else:
            remove(c, entry, EVICTED)
        if entry == last:
            return


@inner
def _all_laps(c: CacheArrays, need_bytes: int64, now_us: int64) -> int64:
    """The closed form of section 6 over the whole queue; returns the visits but for the one that says stop."""
    count = _list_laps(c)
    sort_ids(c, count)
    taken, freed_bytes = int64(0), int64(0)
    while taken < count and freed_bytes < need_bytes:
        freed_bytes += c.entries[c.sorting[taken].id].size
        c.state[0].requeues += c.sorting[taken].key
        taken += 1
    visits = _rotate(c, count, c.sorting[taken - 1].key, int64(c.sorting[taken - 1].id), now_us)
    for place in range(taken):
        remove(c, int64(c.sorting[place].id), EVICTED)
    return visits


@inner
def _laps(c: CacheArrays, entry: int64) -> int64:
    """How often a walk of the queue would requeue an entry before it removes it."""
    of, limits = c.entries[entry], c.state[0]
    laps = int64(0)
    if of.is_handled != 0 and of.count >= 1:
        laps = max(int64(0), limits.max_requeue - of.requeues)
    if limits.extends != 0 and of.accessed != 0:
        laps = max(int64(1), laps)
    return laps


@inner
def _list_laps(c: CacheArrays) -> int64:
    """The entries of the queue as `ids`, and their laps as `keys`."""
    entry = c.state[0].head
    count = int64(0)
    while entry != NONE:
        c.sorting[count].key, c.sorting[count].id = _laps(c, entry), entry
        count += 1
        entry = int64(c.entries[entry].newer)
    return count


@inner
def _rotate(c: CacheArrays, count: int64, last_lap: int64, last: int64, now_us: int64) -> int64:
    """Requeue those that stay: those up to the last victim once more than those behind it. Returns the visits."""
    entry, is_behind, visits = c.state[0].head, False, int64(0)
    for _ in range(count):
        newer, laps = int64(c.entries[entry].newer), _laps(c, entry)
        visits += min(laps + 1, last_lap) + int64(laps >= last_lap and not is_behind)
        if laps > last_lap or (laps == last_lap and is_behind):
            _spend(c, entry, now_us, last_lap + int64(not is_behind))
            if not is_behind:
                unlink(c, entry)
                append(c, entry)
        is_behind = is_behind or entry == last
        entry = newer
    return visits
