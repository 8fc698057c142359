"""When a connection is read, and for how long what held it, step by step (rate-limiters 5)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.core.connections.connection_reads import NUMBERS, TYPES, ConnectionReads
from headgate.core.publish.throttle_tracker import ThrottleTracker, ThrottleType

REQUESTS, THREAD, TOPIC, GROUP, BROKER, BUFFER, COOLDOWN = ThrottleType


def run(*steps):
    """The transitions of steps (at_ns, operation, type): at, auto_read, paused_ns, and ns by type without zeros."""
    reads, told = ConnectionReads(), []
    for at_ns, operation, *types in steps:
        transition = getattr(reads, operation)(*types, at_ns)
        if transition is not None:
            held = {type_: ns for type_, ns in zip(TYPES, transition.held_ns, strict=False) if ns}
            told.append((transition.at_ns, transition.auto_read, transition.paused_ns, held))
    return told, reads


def test_a_pause_tells_how_long_each_type_held_it_and_these_times_overlap():
    told, reads = run(
        *((10, "mark", TOPIC), (12, "mark", TOPIC), (15, "mark", BUFFER), (20, "unmark", TOPIC)),
        *((25, "unmark", BUFFER), (26, "mark", BUFFER), (30, "unmark", TOPIC), (37, "unmark", BUFFER)),
    )

    assert told == [(10, False, None, {}), (37, True, 27, {TOPIC: 20, BUFFER: 21})]
    assert reads.tracker.metrics() == {"paused": 1, "resumed": 1, "throttled_connections": 0}


def test_each_pause_counts_from_its_beginning():
    told, _ = run((10, "mark", TOPIC), (20, "unmark", TOPIC), (50, "mark", REQUESTS), (51, "unmark", REQUESTS))

    assert told[1::2] == [(20, True, 10, {TOPIC: 10}), (51, True, 1, {REQUESTS: 1})]


def test_two_producers_in_the_brokers_queue_clear_its_flag_once_and_the_second_release_is_dropped():
    told, reads = run(
        *((10, "mark", BROKER), (11, "mark", BROKER), (20, "unmark", BROKER), (30, "mark", BROKER)),
        *((40, "unmark", BROKER), (50, "unmark", BROKER)),
    )

    assert [entry[:2] for entry in told] == [(10, False), (20, True), (30, False), (40, True)]
    assert (0, 0) == (reads.waiting, sum(reads.owed))


@pytest.mark.parametrize("type_", [TOPIC, GROUP, BROKER, BUFFER])
def test_an_unmark_that_comes_before_its_mark_at_the_same_instant_takes_it_back(type_):
    assert run((10, "unmark", type_), (10, "mark", type_))[0] == []
    told, _ = run((10, "unmark", type_), (10, "mark", type_), (10, "mark", type_), (12, "unmark", type_))
    assert [entry[:3] for entry in told] == [(10, False, None), (12, True, 2)]


def test_an_unmark_without_a_mark_is_dropped_when_time_goes_on():
    told, reads = run((10, "unmark", TOPIC), (11, "mark", TOPIC))

    assert ([(11, False, None, {})], [0] * 7) == (told, reads.owed)


def test_what_comes_late_acts_at_the_highest_time_seen():
    assert run((10, "mark", TOPIC), (5, "unmark", TOPIC))[0] == [(10, False, None, {}), (10, True, 0, {})]


def test_a_closed_connection_is_not_read_again_and_over_when_nothing_is_marked():
    told, reads = run((10, "mark", TOPIC), (11, "mark", BROKER), (12, "close"), (13, "unmark", TOPIC))

    assert (told[1:], reads.is_over) == ([(12, None, 2, {TOPIC: 2, BROKER: 1})], False)
    assert reads.unmark(BROKER, 14) is None
    assert (reads.is_over, reads.tracker.auto_read) == (True, False)


def test_a_close_ends_a_pause_without_switching_reads_on_and_once():
    told, reads = run(
        *((10, "mark", BUFFER), (13, "unmark", BUFFER), (20, "mark", TOPIC), (24, "mark", BUFFER)),
        *((25, "unmark", TOPIC), (26, "close"), (30, "close")),
    )

    assert told[2:] == [(20, False, None, {}), (26, None, 6, {TOPIC: 5, BUFFER: 2})]
    assert reads.tracker.metrics() == {"paused": 2, "resumed": 1, "throttled_connections": 0}
    assert run((10, "mark", TOPIC), (12, "unmark", TOPIC), (13, "close"))[0][2:] == []


def test_a_connection_that_opens_again_is_held_by_what_is_still_marked():
    told, _ = run(
        *((10, "mark", TOPIC), (11, "mark", BUFFER), (12, "close"), (13, "unmark", BUFFER), (20, "open")),
        *((30, "unmark", TOPIC), (31, "open")),
    )

    assert told[1:] == [
        *((12, None, 2, {TOPIC: 2, BUFFER: 1}), (20, False, None, {}), (30, True, 10, {TOPIC: 10})),
    ]


types = st.sampled_from(TYPES)
operations = st.lists(
    st.tuples(
        st.sampled_from([0, 0, 1, 7]), st.sampled_from(["mark", "mark", "unmark", "unmark", "open", "close"]), types
    )
)


def carried_out(reads, at_ns, operation, type_):
    return getattr(reads, operation)(*([type_] if "mark" in operation else []), at_ns)


@given(operations)
def test_numbers_are_the_whole_state(steps):
    reads, stored, at_ns = ConnectionReads(), ConnectionReads(), 0
    for step_ns, operation, type_ in steps:
        at_ns += step_ns
        stored = ConnectionReads.from_numbers(stored.numbers())
        assert carried_out(reads, at_ns, operation, type_) == carried_out(stored, at_ns, operation, type_)
    assert (reads.numbers(), len(NUMBERS)) == (stored.numbers(), len(reads.numbers()))


@given(operations)
def test_pauses_that_were_told_are_all_of_the_time_that_it_was_open_and_not_read(steps):
    reads, at_ns, told_ns, unread_ns = ConnectionReads(), 0, 0, 0
    for step_ns, operation, type_ in steps:
        at_ns += step_ns
        is_paused = reads.tracker.active and not reads.tracker.auto_read
        unread_ns += step_ns * is_paused
        transition = carried_out(reads, at_ns, operation, type_)
        if transition is not None and transition.auto_read is not False:
            assert is_paused
            assert max(transition.held_ns) <= transition.paused_ns <= sum(transition.held_ns)
            told_ns += transition.paused_ns
    goes_on = reads.tracker.active and not reads.tracker.auto_read
    assert unread_ns == told_ns + (at_ns - reads.paused_at_ns if goes_on else 0)


@given(operations)
def test_its_tracker_is_that_of_the_marks_alone_where_no_unmark_comes_first(steps):
    reads, tracker, at_ns, queued = ConnectionReads(), ThrottleTracker(), 0, dict.fromkeys(TYPES, 0)
    for step_ns, operation, type_ in steps:
        at_ns += step_ns + 1
        if operation not in {"mark", "unmark"} or (operation == "unmark" and not queued[type_]):
            continue
        queued[type_] += 1 if operation == "mark" else -1
        if type_ not in {TOPIC, GROUP, BROKER} and queued[type_] > 1:
            queued[type_] = 1
        transition = carried_out(reads, at_ns, operation, type_)
        before = tracker.auto_read
        getattr(tracker, operation)(type_)
        assert (transition is not None) is (before is not tracker.auto_read)
        assert tracker.state() == reads.tracker.state()
        if transition is not None and transition.auto_read:
            assert max(transition.held_ns) <= transition.paused_ns <= sum(transition.held_ns)
