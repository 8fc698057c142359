"""cursor_distance: the sweep at ticks, and the pass that evicts what is read last (entry-cache 10.3)."""

from numpy import int64

from headgate.core.kernels.cache.cursors import is_at_most, slowest
from headgate.core.kernels.cache.order import sort_ids
from headgate.core.kernels.cache.pages import NOTHING, bit
from headgate.core.kernels.cache.policies.lanes import candidate, list_lanes
from headgate.core.kernels.cache.policies.queue import next_tick_us
from headgate.core.kernels.cache.store import remove
from headgate.core.kernels.cache.types import DROPPED, EVICTED, NEVER, NONE, PAGE_BITS, PAGE_ENTRIES, CacheArrays
from headgate.core.kernels.compiled import inner


@inner
def note_change(c: CacheArrays, topic: int64, now_us: int64) -> None:
    """The topic is looked through at the next tick."""
    of = c.topics[topic]
    if of.is_changed == 0:
        of.is_changed = 1
        c.topics[c.state[0].changed].changed = topic
        c.state[0].changed += 1
        c.state[0].due_us = min(c.state[0].due_us, next_tick_us(c, now_us))


@inner
def sweep(c: CacheArrays, now_us: int64) -> None:
    """Drop what no cursor will read, in the topics that changed or waited for this time; plan the next tick."""
    count = _list_due(c, now_us)
    sort_ids(c, count)
    for place in range(count):
        topic = int64(c.sorting[place].id)
        c.topics[topic].is_changed = 0
        c.topics[topic].waits_us = _sweep_topic(c, topic, now_us)
        c.state[0].earliest_us = min(c.state[0].earliest_us, c.topics[topic].waits_us)
    earliest_us = c.state[0].earliest_us
    c.state[0].due_us = NEVER if earliest_us == NEVER else next_tick_us(c, max(now_us, earliest_us - 1))


@inner
def _list_due(c: CacheArrays, now_us: int64) -> int64:
    """The topics to sweep as `ids`, their places as `keys`."""
    state = c.state[0]
    count = state.changed
    for i in range(count):
        c.sorting[i].id, c.sorting[i].key = c.topics[i].changed, c.topics[c.topics[i].changed].place
    state.changed = 0
    if state.earliest_us <= now_us:
        state.earliest_us = NEVER
        for place in range(state.places):
            of = c.topics[c.topics[place].placed]
            if of.is_changed == 0 and of.waits_us <= now_us:
                c.sorting[count].id, c.sorting[count].key = c.topics[place].placed, place
                count += 1
            elif of.is_changed == 0:
                state.earliest_us = min(state.earliest_us, of.waits_us)
    return count


@inner
def _sweep_topic(c: CacheArrays, topic: int64, now_us: int64) -> int64:
    """Drop what is finished, without tracked cursors once the grace is over; when it is, NEVER where it is now."""
    of = c.topics[topic]
    if of.entries == 0:
        return int64(NEVER)
    reader = slowest(c, topic, NONE)
    ends_us = of.last_removal_us + c.state[0].grace_us
    if reader == NONE and now_us < ends_us:
        return ends_us
    page = of.first_page
    while page != NONE and _drop_from(c, page, reader):
        page = int64(c.pages[page].after)
    return int64(NEVER)


@inner
def _drop_from(c: CacheArrays, page: int64, reader: int64) -> bool:
    """Drop what is not marked and before the reader in a page; False where the reader is on it, or before it.

    The `after` of a page stays when it is freed.
    """
    first = c.pages[page].number << PAGE_BITS
    end = int64(PAGE_ENTRIES)
    if reader != NONE:
        ledger, at = c.spaces[c.pages[page].space].ledger, c.cursors[reader]
        if not is_at_most(ledger, first, at.read_ledger, at.read_entry):
            return False
        if ledger == at.read_ledger:
            end = min(end, at.read_entry - first)
    for place in range(end):
        if c.pages[page].cached & ~c.pages[page].marked & bit(place) != NOTHING:
            remove(c, int64(c.slots[page, place]), DROPPED)
    return end == PAGE_ENTRIES


@inner
def evict_farthest(c: CacheArrays, now_us: int64) -> None:
    """Evict what is read last until a little less than the limit is cached."""
    state = c.state[0]
    if state.current_bytes <= c.state[0].goal_bytes:
        return
    lanes = list_lanes(c, now_us)
    for place in range(lanes // 2 - 1, -1, -1):
        _sift(c, place, lanes)
    visits = lanes
    while lanes > 0 and state.current_bytes > c.state[0].goal_bytes:
        lane = int64(c.lanes[0].heaped)
        remove(c, c.lanes[lane].entry, EVICTED)
        if candidate(c, lane):
            visits += 1
        else:
            lanes -= 1
            c.lanes[0].heaped = c.lanes[lanes].heaped
        _sift(c, int64(0), lanes)
    state.size_passes += 1
    state.visits += visits
    state.max_pass_visits = max(state.max_pass_visits, visits)


@inner
def _sift(c: CacheArrays, place: int64, count: int64) -> None:
    """Put the lane at a place of the heap where it belongs, below that place."""
    lane = c.lanes[place].heaped
    while True:
        child = 2 * place + 1
        if child >= count:
            break
        if child + 1 < count and _is_farther(c, int64(c.lanes[child + 1].heaped), int64(c.lanes[child].heaped)):
            child += 1
        if not _is_farther(c, int64(c.lanes[child].heaped), int64(lane)):
            break
        c.lanes[place].heaped = c.lanes[child].heaped
        place = child
    if place < count:
        c.lanes[place].heaped = lane


@inner
def _is_farther(c: CacheArrays, lane: int64, other: int64) -> bool:
    """Whether a lane's candidate is evicted before another's: read later, else of an earlier topic, else higher."""
    one, two = c.lanes[lane], c.lanes[other]
    if one.next_us != two.next_us:
        return one.next_us > two.next_us
    if one.place != two.place:
        return one.place < two.place
    mine, its = c.entries[one.entry], c.entries[two.entry]
    return not is_at_most(c.spaces[mine.space].ledger, mine.number, c.spaces[its.space].ledger, its.number)
