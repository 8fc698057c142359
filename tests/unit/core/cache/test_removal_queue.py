"""The removal queue: what passes take, spare and visit; the closed form does what a walk of the queue does."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from headgate.core.cache.entries import Entry, Handler
from headgate.core.cache.removal_queue import RemovalQueue
from headgate.errors import BadArgument
from unit.core.cache.literal_queue import LiteralQueue

entry_fields = st.fixed_dictionaries(
    {
        "size": st.integers(1, 5),
        "count": st.integers(-1, 2),
        "requeues": st.integers(0, 4),
        "accessed": st.booleans(),
        "gone": st.booleans() | st.just(False),
    }
)


def entry(number=0, *, size=10, count=0, ts_us=0, requeues=0, accessed=False):
    made = Entry(None, 0, number, size, ts_us, Handler(count) if count else None, None)
    made.requeues, made.accessed = requeues, accessed
    return made


def filled(queue, described):
    entries = []
    for number, fields in enumerate(described):
        gone = fields["gone"]
        entries.append(entry(number, **{key: value for key, value in fields.items() if key != "gone"}))
        queue.append(entries[-1])
        if gone:
            queue.discard(entries[-1])
    return queue


def state(queue):
    return [(one.number, one.ts_us, one.requeues, one.accessed) for one in queue]


def told(done):
    return [one.number for one in done.removed], done.visits, done.requeues


@given(
    described=st.lists(entry_fields, max_size=12),
    max_requeue=st.integers(0, 4),
    extend=st.booleans(),
    needs=st.lists(st.integers(1, 30), min_size=1, max_size=4),
)
@settings(max_examples=examples(300))
def test_a_size_pass_does_what_a_walk_of_the_queue_does(described, max_requeue, extend, needs):
    queue = filled(RemovalQueue(max_requeue, extend_accessed=extend), described)
    literal = filled(LiteralQueue(max_requeue, extend_accessed=extend), described)

    for at_us, need_bytes in enumerate(needs, 1):
        assert told(literal.size_pass(at_us, need_bytes)) == told(queue.size_pass(at_us, need_bytes))
        assert state(literal) == state(queue)
        assert len(literal) == len(queue)


@given(
    described=st.lists(entry_fields, max_size=12),
    max_requeue=st.integers(0, 4),
    extend=st.booleans(),
    cutoffs=st.lists(st.integers(-1, 12), min_size=1, max_size=4),
)
def test_a_time_pass_does_what_a_walk_of_the_queue_does(described, max_requeue, extend, cutoffs):
    queue = filled(RemovalQueue(max_requeue, extend_accessed=extend), described)
    literal = filled(LiteralQueue(max_requeue, extend_accessed=extend), described)

    for at_us, cutoff_us in enumerate(sorted(cutoffs), 10):
        assert told(literal.time_pass(at_us, cutoff_us)) == told(queue.time_pass(at_us, cutoff_us))
        assert state(literal) == state(queue)


@given(described=st.lists(entry_fields, max_size=12), max_requeue=st.integers(0, 4), need_bytes=st.integers(1, 60))
def test_a_size_pass_makes_at_most_one_lap_more_than_the_budget(described, max_requeue, need_bytes):
    queue = filled(RemovalQueue(max_requeue, extend_accessed=True), described)
    length = len(queue)

    assert queue.size_pass(1, need_bytes).visits <= length * (max(1, max_requeue) + 1) + 1


TIME_PASSES = [
    ("a timestamp at the cut-off is not before it", {"ts_us": 5}, 5, False),
    ("what is older leaves", {"ts_us": 4}, 5, True),
    ("what is expected is requeued", {"ts_us": 4, "count": 1}, 5, False),
    ("unless its budget is spent", {"ts_us": 4, "count": 1, "requeues": 2}, 5, True),
    ("a count of 0 expects nothing", {"ts_us": 4, "count": -1}, 5, True),
    ("what was accessed is requeued, whatever its budget", {"ts_us": 4, "accessed": True, "requeues": 9}, 5, False),
]


@pytest.mark.parametrize(("case", "fields", "cutoff_us", "leaves"), TIME_PASSES, ids=[case[0] for case in TIME_PASSES])
def test_by_age(case, fields, cutoff_us, leaves):
    queue = RemovalQueue(2, extend_accessed=True)
    queue.append(entry(**fields))

    done = queue.time_pass(100, cutoff_us)

    assert leaves == bool(done.removed)
    assert len(queue) == (not leaves)


def test_entries_that_left_by_other_ways_cost_no_visits():
    queue = RemovalQueue(0, extend_accessed=False)
    entries = [entry(number) for number in range(4)]
    for one in entries:
        queue.append(one)
    for one in entries[:2]:
        queue.discard(one)

    assert told(queue.size_pass(1, 10)) == ([2], 2, 0)
    assert [3] == [one.number for one in queue]


@pytest.mark.parametrize("need_bytes", [0, -1])
def test_a_size_pass_that_frees_nothing_is_refused_and_changes_nothing(need_bytes):
    queue = RemovalQueue(0, extend_accessed=False)
    queue.append(entry())

    with pytest.raises(BadArgument):
        queue.size_pass(1, need_bytes)
    assert len(queue) == 1
