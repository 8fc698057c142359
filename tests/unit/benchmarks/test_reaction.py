"""What the reaction benchmark makes of limits, commits, reads and admitted messages."""

import pytest
from reaction import (
    BROKERS,
    EVENT_START_S,
    FILE_S,
    FINE_FOR_S,
    STEP_S,
    WANTED,
    Limit,
    Step,
    file_of,
    plan,
    publishes,
    reactions_s,
    reads_s,
    too_much,
)

FIRST, SECOND = Step(0, 20, WANTED[0]), Step(20, 40, WANTED[1])
BEFORE = {"b1": 500, "b2": 300, "b3": 200}
AFTER = {"b1": 200, "b2": 500, "b3": 300}


def limits(at_s, of, *brokers):
    return [Limit(at_s, broker, of[broker]) for broker in brokers or BROKERS]


@pytest.mark.parametrize(
    ("changes", "seconds"),
    [
        ([], 20),
        (limits(20.5, AFTER), 0.5),
        (limits(20, AFTER), 0),
        (limits(20.5, AFTER, "b1", "b3") + limits(21.25, AFTER, "b2"), 1.25),
        (limits(20.5, AFTER) + limits(25, BEFORE), 20),
        (limits(20.5, AFTER) + limits(25, BEFORE) + limits(26, AFTER), 6),
        (limits(20.5, AFTER | {"b2": 480}), 0.5),
        (limits(20.5, AFTER | {"b2": 380}), 20),
        (limits(41, AFTER), 20),
    ],
    ids=["never", "at once", "in no time", "b2 later", "swings out", "swings out and back", "close", "far", "too late"],
)
def test_a_step_is_over_when_what_is_let_in_stays_close(changes, seconds):
    assert [seconds] == pytest.approx(reactions_s([FIRST, SECOND], [*limits(1, BEFORE), *changes]))


def test_a_commit_is_read_by_the_first_read_that_ends_with_it_or_a_later_one():
    commits = {3: 10.0, 4: 11.0, 5: 12.0, 6: 13.0}
    reads = [(9.0, 2), (10.5, 3), (10.9, 3), (12.5, 5)]
    assert [0.5, 1.5, 0.5] == reads_s(commits, reads)


@pytest.mark.parametrize(("second", "more"), [(700, 0), (1700, 0), (1711, 1)])
def test_a_bucket_and_a_publish_are_no_excess(second, more):
    held = [Limit(0, broker, 700) for broker in BROKERS]
    admitted = {("b1", at_s): 700 for at_s in range(1, 20)} | {("b1", 7): second - 300}
    assert more == too_much([FIRST], held, admitted)


def test_files_follow_each_other_in_time_fine_after_a_step():
    steps = plan(EVENT_START_S, STEP_S, STEP_S, 3)
    files = [file_of(at_s, steps) for at_s, _ in publishes(steps)]
    assert sorted(files) == files
    fine = round(FINE_FOR_S / FILE_S)
    assert 3 * fine <= len(set(files)) <= 3 * (fine + STEP_S) + STEP_S + fine
