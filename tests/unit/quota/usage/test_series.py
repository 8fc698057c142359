"""Suppressed epochs repeat the row before; what was not heard of, left or began anew is a gap."""

from hypothesis import given
from hypothesis import strategies as st

from headgate.core.quota.usage.usage import NOTHING, Usage
from headgate.quota.usage.series import limits_of, series_of, total_of
from headgate.quota.usage.view import Report


def row(epoch, value=None, *, life=1, seq=None, kind=0):
    """A report of `value`, or a heartbeat."""
    group, usage = (0, NOTHING) if value is None else (1, Usage((value, 0)))
    return Report(epoch, 7, life, epoch if seq is None else seq, group, 0, kind, usage, 0, 0)


def test_a_row_holds_until_the_next_as_far_as_heartbeats_reach():
    assert [None, 5, 5, 8, 8, None] == series_of([row(2, 5), row(3), row(4, 8), row(5)], 0, 1, 6)


def test_a_row_before_the_first_epoch_says_what_held_there():
    assert [5, 5] == series_of([row(1, 5), row(9)], 0, 8, 9)


def test_of_two_rows_of_an_epoch_the_later_cut_counts():
    assert [7] == series_of([row(2, 7, seq=3), row(2, 5, seq=2, kind=1)], 0, 2, 2)


def test_a_leave_and_a_new_life_end_what_was_said():
    left = [row(1, 5), row(2, 0, kind=2), row(3), row(4, 6), row(5, kind=2)]
    again = [row(1, 5), row(3, life=2, seq=1), row(4, 6, life=2, seq=2), row(4, 9, life=1)]

    assert [5, None, None, 6, None] == series_of(left, 0, 1, 5)
    assert [5, 5, None, 6] == series_of(again, 0, 1, 4)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30), st.integers(0, 10), st.randoms(use_true_random=False))
def test_leaving_out_rows_that_repeat_the_last_one_changes_nothing(values, before, random):
    rows = [row(epoch) for epoch in range(len(values))]
    rows += [row(i, value) for i, value in enumerate(values) if not i or values[i - 1] != value]
    random.shuffle(rows)
    before = min(before, len(values) - 1)

    assert values[before:] == series_of(rows, 0, before, len(values) - 1)


def test_a_total_sums_what_is_known():
    assert [3, 2, None] == total_of([[1, None, None], [2, 2, None]])
    assert [] == total_of([])


def test_a_limit_is_that_of_the_newest_report_or_change_also_where_nothing_is_used():
    reports = [
        Report(epoch, 7, 1, epoch, 1, 0, 0, Usage((9, 0), limit=(limit, None)), 0, 0)
        for epoch, limit in ((2, 40), (5, 6))
    ]

    assert [None, 40, 40, 7, 6, 8] == limits_of(reports, [(4, 7), (6, 8)], 0, 1, 6)
    assert [None, None, None, None] == limits_of([*reports, row(3)], [(4, None)], 1, 2, 5)
