"""Increases of counters: nothing is counted twice or lost, whatever begins anew or is not seen for a while."""

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.core.clusters.counters import Counters, Increase, Reading
from headgate.errors import InvalidArgument

A, B = ("a", "in"), ("b", "in")


def increases(*looks):
    """looks: (time, broker, {counted: reading}). What came: (from, to, broker, topic, messages, bytes, throttled)."""
    counters = Counters()
    return [
        (one.from_us, one.at_us, one.broker, one.topic, *one.came)
        for at_us, broker, readings in looks
        for one in counters.look(at_us, broker, {key: Reading(*values) for key, values in readings.items()})
        if one.from_us < one.at_us
    ]


@pytest.mark.parametrize(
    ("looks", "came"),
    [
        ([(5, "x", {A: (100, 900, 3)})], []),  # counting begins
        ([(5, "x", {A: (100, 900, 3)}), (10, "x", {A: (130, 1000, 3)})], [(5, 10, "x", "a", 30, 100, 0)]),
        ([(5, "x", {A: (100, 900)}), (10, "x", {A: (130, 1000)})], [(5, 10, "x", "a", 30, 100, None)]),
        ([(5, "x", {A: (100, 900)}), (10, "x", {A: (100, 900)})], []),  # nothing moved
        ([(5, "x", {A: (100, 900, 3)}), (10, "x", {A: (20, 90, 0)})], [(5, 10, "x", "a", 20, 90, 0)]),  # a restart
        ([(5, "x", {A: (100, 900, 3)}), (10, "x", {A: (101, 910, 1)})], [(5, 10, "x", "a", 1, 10, 1)]),  # of its own
        (  # it moves to another broker, and back
            [
                *((5, "x", {A: (100, 900)}), (5, "y", {B: (1, 1)}), (10, "x", {}), (10, "y", {A: (7, 70), B: (1, 1)})),
                *((15, "x", {A: (3, 30)}), (15, "y", {B: (1, 1)})),
            ],
            [(5, 10, "y", "a", 7, 70, None), (10, 15, "x", "a", 3, 30, None)],
        ),
        (  # a broker that is not seen for a while
            [(5, "x", {A: (100, 900)}), (60, "x", {A: (700, 1900), B: (2, 2)})],
            [(5, 60, "x", "a", 600, 1000, None), (5, 60, "x", "b", 2, 2, None)],
        ),
        ([(5, "x", {A: (1, 1, None)}), (10, "x", {A: (2, 2, 4)})], [(5, 10, "x", "a", 1, 1, 4)]),
    ],
)
def test_what_came_since_the_look_before(looks, came):
    assert increases(*looks) == came


@given(st.lists(st.integers(0, 50), min_size=2, max_size=20), st.sets(st.integers(1, 18)))
def test_lost_looks_lose_nothing(came, lost):
    looks = [(at, "x", {A: (total, 10 * total)}) for at, total in enumerate(accumulate(came))]
    seen = [look for at, look in enumerate(looks) if at not in lost or at == len(looks) - 1]

    assert sum(one[4] for one in increases(*seen)) == sum(came[1:])


def test_first_looks_and_topics_that_left_say_where_counting_begins():
    counters = Counters()
    assert counters.look(5, "x", {A: Reading(7, 70, 1), B: Reading(0, 0)}) == [
        Increase(5, 5, "x", *A, Reading(0, 0, 0), Reading(7, 70, 1))
    ]
    assert counters.look(9, "x", {}) == [Increase(9, 9, "x", *A, Reading(0, 0), Reading(0, 0))]


@given(
    st.lists(st.dictionaries(st.sampled_from([A, B]), st.integers(0, 20)), min_size=2, max_size=12),
    st.sets(st.integers(0, 11)),
)
def test_a_collector_that_starts_again_from_its_rows_finds_what_one_that_ran_on_finds(looks, restarts):
    """looks: what each topic that is there has counted; the counters of one that is not begin anew."""
    readings = [{key: Reading(count, 10 * count) for key, count in look.items()} for look in looks]
    running, restarted, rows = Counters(), Counters(), []
    for at_us, reading in enumerate(readings):
        if at_us in restarts:
            last = {(one.broker, one.topic, one.direction): one for one in rows}
            restarted = Counters(last.values(), {"x": at_us - 1} if at_us else {})
        expected = running.look(at_us, "x", reading)
        assert sorted(restarted.look(at_us, "x", reading)) == sorted(expected)
        rows += expected


def test_a_look_that_is_not_after_the_one_before_is_refused():
    counters = Counters()
    counters.look(5, "x", {})
    with pytest.raises(InvalidArgument, match="at_us: got 5, allowed is an integer from 6"):
        counters.look(5, "x", {})
    assert counters.look(5, "y", {}) == []
    assert counters.look(6, "y", {A: Reading(2, 1)}) == [Increase(5, 6, "y", *A, Reading(2, 1), Reading(2, 1))]
