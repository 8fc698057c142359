"""How fast topics are published to: averages of whole intervals, told at their ends where they change."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.core.numbers import MAX, MIN, SECOND_NS
from headgate.throttle.dispatch.dispatch_state import Averages
from headgate.throttle.dispatch.publish_averages import changed_averages
from unit.throttle.drawn import quick

INTERVAL_S = 10
FROM_THE_START = MIN + 1


def tell(state, rows, until_ns, topics=3):
    """What follows from rows of (topic, second, messages, bytes): (second, topic, averages) in their order."""
    topic, second, *amounts = np.array(rows, np.int64).reshape(-1, 4).T
    told = changed_averages(state, topic, second, np.stack(amounts, axis=1), topics, until_ns, INTERVAL_S)
    at_s, rest = np.divmod(told.at_us, 1_000_000)
    assert not rest.any()
    return [(at, *of) for at, *of in zip(at_s.tolist(), told.topic.tolist(), told.averages.tolist(), strict=True)]


STEPS = {
    "nothing before an interval has ended": [([(0, 100, 50, 0)], 109, [])],
    "the truncated average at its end": [([(0, 100, 50, 9), (0, 109, 9, 0)], 110, [(110, 0, [5, 0])])],
    "what comes in several steps adds up": [
        ([(0, 100, 50, 0)], 105, []),
        ([(0, 108, 50, 0)], 110, [(110, 0, [10, 0])]),
    ],
    "the same average is not told again": [
        ([(0, 100, 50, 0)], 110, [(110, 0, [5, 0])]),
        ([(0, 115, 50, 0)], 120, []),
        ([(0, 125, 70, 0)], 130, [(130, 0, [7, 0])]),
    ],
    "0 at the end of the first interval without any": [
        ([(0, 100, 50, 0)], 119, [(110, 0, [5, 0])]),
        ([], 120, [(120, 0, [0, 0])]),
        ([], 999, []),
    ],
    "gaps in one step": [
        (
            [(0, 100, 50, 0), (1, 145, 0, 60)],
            160,
            [(110, 0, [5, 0]), (120, 0, [0, 0]), (150, 1, [0, 6]), (160, 1, [0, 0])],
        )
    ],
    "topics by themselves": [
        ([(0, 100, 50, 0), (2, 101, 10, 0)], 110, [(110, 0, [5, 0]), (110, 2, [1, 0])]),
        ([(2, 111, 10, 0)], 120, [(120, 0, [0, 0])]),
    ],
    "less than one a second is none": [([(0, 100, 9, 9)], 110, [])],
    "a step without rows before the first": [([], 95, []), ([(0, 100, 50, 0)], 110, [(110, 0, [5, 0])])],
}


@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)
def test_averages_are_told_at_the_ends_of_intervals(steps):
    state = Averages(since_ns=FROM_THE_START)

    assert [told for _, _, told in steps] == [tell(state, rows, until_s * SECOND_NS) for rows, until_s, _ in steps]


@pytest.mark.parametrize(
    ("since_ns", "average"),
    [(100 * SECOND_NS, 7), (101 * SECOND_NS - 1, 7), (101 * SECOND_NS, 2), (102 * SECOND_NS, 0)],
)
def test_publishes_count_from_the_second_on_in_which_they_are_first_wanted(since_ns, average):
    told = tell(Averages(since_ns=since_ns), [(0, 100, 50, 0), (0, 101, 20, 0)], 110 * SECOND_NS)

    assert ([(110, 0, [average, 0])] if average else []) == told


def test_topics_of_which_nothing_is_known_are_not_kept():
    state = Averages(since_ns=FROM_THE_START)
    tell(state, [(0, 100, 50, 0), (2, 119, 5, 0)], 119 * SECOND_NS + 999_999_999)
    assert ([0, 2], [[0, 0], [5, 0]], [[5, 0], [0, 0]]) == (
        state.topic.tolist(),
        state.sums.tolist(),
        state.averages.tolist(),
    )

    tell(state, [], 130 * SECOND_NS)
    assert ([], 13) == (state.topic.tolist(), state.interval)


seconds = st.integers(100, 190)
published = st.lists(st.tuples(st.integers(0, 2), seconds, st.integers(0, 99), st.integers(0, 999)), max_size=12)


@quick
@given(published, st.lists(st.integers(100 * SECOND_NS, 200 * SECOND_NS), max_size=4), st.integers(0, 10 * SECOND_NS))
def test_where_steps_end_does_not_show(rows, ends_ns, from_ns):
    """What they hear first is that publishes count, at an instant of the first step."""
    since_ns = min([100 * SECOND_NS + from_ns, *ends_ns])
    cut, uncut = Averages(since_ns=since_ns), Averages(since_ns=since_ns)
    told = []
    for begin_ns, end_ns in pairwise([MIN, *sorted(ends_ns), 200 * SECOND_NS]):
        told += tell(cut, [row for row in rows if begin_ns < (row[1] + 1) * SECOND_NS <= end_ns], end_ns)

    assert told == tell(uncut, rows, 200 * SECOND_NS) == averages_of(rows, since_ns)
    assert str(cut) == str(uncut)


def averages_of(rows, since_ns):
    """The averages of all intervals up to 200 s that differ from the one before, added up row by row."""
    told, known = [], {}
    for end_s in range(110, 201, INTERVAL_S):
        sums = {topic: [0, 0] for topic in range(3)}
        for topic, second, *amounts in rows:
            if end_s - INTERVAL_S <= second < end_s and second >= since_ns // SECOND_NS:
                sums[topic] = [kept + amount for kept, amount in zip(sums[topic], amounts, strict=True)]
        for topic, (messages, bytes_) in sums.items():
            average = [messages // INTERVAL_S, bytes_ // INTERVAL_S]
            if average != known.get(topic, [0, 0]):
                told.append((end_s, topic, average))
            known[topic] = average
    return told


def test_sums_stop_at_the_largest_number_wherever_steps_end():
    rows = [(0, 100 + number, 1, 2**62) for number in range(4)]
    cut, uncut = Averages(since_ns=0), Averages(since_ns=0)
    told = [one for row in rows for one in tell(cut, [row], (row[1] + 1) * SECOND_NS)]

    assert [] == told
    expected = [(110, 0, [0, MAX // INTERVAL_S])]
    assert (expected, expected) == (tell(cut, [], 110 * SECOND_NS), tell(uncut, rows, 110 * SECOND_NS))
