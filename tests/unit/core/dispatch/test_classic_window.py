"""The classic window, step by step (rate-limiters 7)."""

import pytest

from headgate.core.dispatch.classic_window import ClassicWindow
from headgate.core.numbers import MAX
from headgate.errors import Closed, InvalidArgument

SECOND = 1_000_000_000


def window_of(permits=10, period_ns=SECOND, **options):
    return ClassicWindow(permits, period_ns, created_ns=0, **options)


def test_the_first_try_starts_the_timer():
    window = window_of()
    window.available(5 * SECOND)
    assert window.next_renewal_ns is None

    window.try_acquire(0, 7 * SECOND)
    assert window.next_renewal_ns == 8 * SECOND


def test_normal_mode_takes_all_or_nothing():
    window = window_of(permits=3)

    assert [window.try_acquire(n, 0) for n in (2, 2, 1, 1, 0)] == [True, False, True, False, True]
    assert window.available(SECOND) == 3


def test_dispatch_mode_goes_into_debt_and_repays_a_period_at_a_time():
    window = window_of(dispatch_mode=True)

    assert [window.try_acquire(n, 0) for n in (9, 1, 25)] == [True, False, False]
    assert [window.available(second * SECOND) for second in (1, 2, 3, 4, 5)] == [0, 0, 5, 10, 10]
    window.try_acquire(MAX, 5 * SECOND)
    window.try_acquire(MAX, 5 * SECOND)
    assert window.acquired == MAX


@pytest.mark.parametrize("dispatch_mode", [False, True])
@pytest.mark.parametrize("permit_updater", [None, 0, -3, 4])
def test_missed_renewals_in_closed_form_equal_renewals_one_by_one(dispatch_mode, permit_updater):
    def debtor():
        window = window_of(dispatch_mode=dispatch_mode, permit_updater=permit_updater)
        for _ in range(5):
            window.try_acquire(7, 0)
        return window

    at_once, one_by_one = debtor(), debtor()
    at_once.advance(7 * SECOND + 1)
    for second in range(1, 8):
        one_by_one.advance(second * SECOND)
    one_by_one.advance(7 * SECOND + 1)

    assert at_once.state() == one_by_one.state()
    assert (at_once.renewals, at_once.next_renewal_ns) == (7, 8 * SECOND)


def test_the_updater_counts_from_the_renewal_after_it_was_set():
    window = window_of()
    window.try_acquire(10, 0)
    window.set_updater(4, 0)

    assert (window.available(0), window.available(SECOND)) == (0, 4)
    window.set_updater(None, SECOND)
    assert window.available(9 * SECOND) == 4


def test_a_rate_change_keeps_what_is_acquired_and_restarts_a_started_timer():
    window = window_of()
    window.set_rate(5, 2 * SECOND, 0)
    assert window.next_renewal_ns is None

    window.try_acquire(4, 0)
    window.set_rate(3, 5 * SECOND, SECOND)
    assert (window.available(SECOND), window.next_renewal_ns) == (0, 6 * SECOND)
    assert not window.try_acquire(0, SECOND)


def test_a_late_operation_acts_at_the_highest_time_seen():
    window = window_of()
    window.advance(9 * SECOND)
    window.try_acquire(1, 0)

    assert window.next_renewal_ns == 10 * SECOND


def test_a_renewal_at_the_end_of_time_never_runs():
    window = ClassicWindow(3, MAX, created_ns=0)
    window.try_acquire(3, 5)
    window.advance(MAX)

    assert (window.next_renewal_ns, window.renewals, window.available(MAX)) == (MAX, 0, 0)


def test_a_closed_window_refuses_use_and_may_be_closed_again():
    window = window_of()
    window.close(0)
    window.close(0)
    window.set_updater(5, 0)

    assert window.closed
    for operation in (
        lambda: window.try_acquire(-1, 0),
        lambda: window.available(0),
        lambda: window.set_rate(0, 0, 0),
        lambda: window.give_back(1, 0),
    ):
        with pytest.raises(Closed):
            operation()


def test_give_back_stops_at_nothing_acquired():
    window = window_of()
    window.try_acquire(4, 0)
    window.give_back(3, 0)
    assert window.available(0) == 9
    window.give_back(3, 0)
    assert window.available(0) == 10


@pytest.mark.parametrize(
    "changes",
    [
        {"permits": 0},
        {"period_ns": 0},
        {"created_ns": None},
        {"dispatch_mode": 1},
        {"permit_updater": MAX + 1},
    ],
)
def test_construction_refuses_what_is_out_of_range(changes):
    with pytest.raises(InvalidArgument):
        ClassicWindow(**{"permits": 1, "period_ns": 1, "created_ns": 0, **changes})


@pytest.mark.parametrize(
    "operation",
    [
        lambda window: window.try_acquire(-1, 0),
        lambda window: window.set_rate(5, 0, 0),
        lambda window: window.set_rate(0, 5, 0),
        lambda window: window.set_updater(MAX + 1, 0),
        lambda window: window.give_back(-1, 0),
        lambda window: window.advance(MAX + 1),
    ],
)
def test_a_refused_operation_changes_nothing(operation):
    window = window_of()
    before = window.state()

    with pytest.raises(InvalidArgument):
        operation(window)
    assert window.state() == before
