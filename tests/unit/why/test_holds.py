"""When limiters held a topic: from marks and unmarks of its producers."""

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.core.numbers import SECOND_NS
from headgate.core.reasons import HeldReason
from headgate.why.holds import Holds

TOPIC, GROUP = ("topic", "persistent://a/b/c"), ("group", "gold")


def holds(steps, first_s=0, end_s=10, **columns):
    """Of marks (+) and unmarks (-): time in s, producer, limiter."""
    rows = [
        {
            "at_ns": int(at_s * SECOND_NS),
            "broker": "b1",
            "scope": limiter[0],
            "limiter": limiter[1],
            "type": "",
            "topic": "persistent://a/b/c",
            "connection": "c1",
            "producer": producer,
            "action": {"+": "mark", "-": "unmark"}[action],
            "messages_balance": -3,
            "messages_per_s": 10,
            "bytes_balance": 5,
            "bytes_per_s": 10,
            "unit": "messages",
        }
        | columns
        for at_s, action, producer, limiter in steps
    ]
    return Holds(pa.Table.from_pylist(rows), first_s * SECOND_NS, end_s * SECOND_NS)


@pytest.mark.parametrize(
    ("steps", "held_s"),
    [
        ([(1, "+", "p", TOPIC), (3, "-", "p", TOPIC)], 2),
        ([(1, "+", "p", TOPIC)], 9),
        ([(1, "-", "p", TOPIC)], 1),
        ([(1, "+", "p", TOPIC), (3, "-", "p", TOPIC), (2, "+", "q", TOPIC), (5, "-", "q", TOPIC)], 4),
        ([(1, "+", "p", TOPIC), (3, "-", "p", TOPIC), (4, "+", "p", GROUP), (5, "-", "p", GROUP)], 3),
        ([(1, "+", "p", TOPIC), (2, "-", "p", TOPIC), (2, "+", "p", TOPIC), (3, "-", "p", TOPIC)], 2),
        ([(-5, "+", "p", TOPIC), (3, "-", "p", TOPIC)], 3),
        ([(1, "-", "p", TOPIC), (1, "+", "p", TOPIC)], 10),
        ([(1, "-", "p", TOPIC), (1, "+", "p", TOPIC), (3, "-", "p", TOPIC), (3, "+", "p", TOPIC)], 10),
        ([(1, "+", "p", GROUP), (2, "+", "p", GROUP), (3, "+", "p", GROUP), *[(3, "-", "p", GROUP)] * 3], 2),
        ([(1, "+", "p", ("connection", "c")), (1, "-", "p", ("connection", "c"))], 0),
        ([(-5, "+", "p", TOPIC), (-3, "-", "p", TOPIC)], 0),
    ],
)
def test_a_topic_is_held_while_any_limiter_holds_any_producer(steps, held_s):
    assert held_s == holds(sorted(steps, key=lambda step: step[0])).held_s


@given(
    st.lists(
        st.tuples(st.integers(0, 40), st.sampled_from("pq"), st.sampled_from([TOPIC, GROUP]), st.integers(1, 9)),
        max_size=12,
    ),
    st.integers(0, 20),
    st.integers(1, 20),
)
def test_the_time_held_is_that_of_looking_at_each_moment(marks, first_s, seconds):
    """Marks of one producer by one limiter may overlap: each is released by an unmark of its own."""
    steps = [(at, "+", producer, limiter) for at, producer, limiter, _ in marks]
    steps += [(at + long, "-", producer, limiter) for at, producer, limiter, long in marks]
    steps.sort(key=lambda step: (step[0], step[1] == "+"))
    expected = {
        moment for at, _, _, long in marks for moment in range(max(at, first_s), min(at + long, first_s + seconds))
    }
    if not steps:
        return
    found = holds(steps, first_s, first_s + seconds)

    assert len(expected) == found.held_s
    assert {moment for moment in range(first_s, first_s + seconds) if found.is_held_in(moment)} == expected
    by_limiter = Counter({(one.scope, one.limiter): one.held_s for one in found.held_by()})
    for limiter in (TOPIC, GROUP):
        of_limiter = [mark for mark in marks if mark[2] == limiter]
        moments = {
            m for at, _, _, long in of_limiter for m in range(max(at, first_s), min(at + long, first_s + seconds))
        }
        assert len(moments) == by_limiter[limiter]


def test_pauses_of_up_to_ten_seconds_do_not_end_a_span_and_what_began_before_says_so():
    steps = [(-1, "+", "p", GROUP), (2, "-", "p", GROUP), (9, "+", "p", GROUP), (10, "-", "p", GROUP)]
    (one,) = holds([*steps, (25, "+", "p", GROUP), (26, "-", "p", GROUP)], 0, 60).held_by()

    assert [(0, 10, True), (25, 26, False)] == [
        (span.first.timestamp(), span.last.timestamp(), span.since_before) for span in one.spans
    ]
    assert (HeldReason.GROUP_QUOTA_MESSAGES, 2, 4.0) == (one.reason, one.marks, one.held_s)


@pytest.mark.parametrize(
    ("limiter", "columns", "reason"),
    [
        (TOPIC, {}, HeldReason.TOPIC_PUBLISH_RATE_MESSAGES),
        (TOPIC, {"unit": "bytes"}, HeldReason.TOPIC_PUBLISH_RATE_BYTES),
        (("broker", "b1"), {"unit": "bytes"}, HeldReason.BROKER_PUBLISH_RATE_BYTES),
        (GROUP, {"messages_per_s": 0}, HeldReason.GROUP_BLOCKED),
        (GROUP, {"bytes_per_s": None}, HeldReason.GROUP_QUOTA_MESSAGES),
    ],
)
def test_the_reason_is_the_limiter_and_the_unit_that_ran_out(limiter, columns, reason):
    (one,) = holds([(1, "+", "p", limiter), (2, "-", "p", limiter)], **columns).held_by()

    assert reason is one.reason


def test_producers_are_told_by_how_long_they_were_held():
    steps = [(1, "+", "p", GROUP), (2, "+", "q", GROUP), (3, "-", "p", GROUP), (9, "-", "q", GROUP)]

    assert [("q", 1, 7.0), ("p", 1, 2.0)] == [(one.name, one.marks, one.held_s) for one in holds(steps).producers()]
