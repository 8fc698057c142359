"""The first generation's bucket with its defects, and the clock policies (rate-limiters 3.2, 13)."""

import pytest

from headgate.conformance.oracles.clock_policies import HighWaterClock, LeapTolerantClock
from headgate.conformance.oracles.pip322 import Pip322Bucket
from headgate.core.numbers import MAX, MIN
from headgate.errors import InvalidArgument

SECOND = 1_000_000_000
MS = 1_000_000


def test_callers_inside_one_slot_all_pass_on_a_guess():
    bucket = Pip322Bucket(10, created_ns=SECOND)

    assert [bucket.consume_check(9, SECOND + 1) for _ in range(3)] == [True, True, True]
    assert bucket.balance_at(SECOND + 2) == -17


def test_a_step_back_removes_tokens():
    bucket = Pip322Bucket(10, created_ns=10 * SECOND)

    assert bucket.balance_at(9 * SECOND) == 0


def test_construction_is_one_read_and_caps_the_initial_balance():
    bucket = Pip322Bucket(10, initial=70, created_ns=SECOND)

    assert (bucket.tokens, bucket.last_ns, bucket.slot) == (10, SECOND, SECOND // (16 * MS))


def test_a_resolution_of_0_updates_at_every_call():
    bucket = Pip322Bucket(1000, initial=0, resolution_ns=0, created_ns=SECOND)

    assert bucket.consume_check(1, SECOND + 2 * MS)
    assert bucket.pause_ns(SECOND + 2 * MS) == 0
    bucket.consume(3, SECOND + 2 * MS)
    assert bucket.pause_ns(SECOND + 2 * MS) == 3 * MS


@pytest.mark.parametrize(
    "changes", [{"rate": 0}, {"period_ns": 0}, {"capacity": 0}, {"initial": -1}, {"created_ns": 0}]
)
def test_pip322_refuses_what_is_out_of_range(changes):
    with pytest.raises(InvalidArgument):
        Pip322Bucket(**{"rate": 10, "created_ns": 1, **changes})


@pytest.mark.parametrize(("n", "now_ns"), [(-1, 5), (1, 0), (1, -5), (1, MAX + 1)])
def test_a_refused_pip322_operation_changes_nothing(n, now_ns):
    bucket = Pip322Bucket(10, created_ns=1)
    before = bucket.state()

    with pytest.raises(InvalidArgument):
        bucket.consume(n, now_ns)
    assert bucket.state() == before


def test_high_water_returns_the_running_maximum():
    clock = HighWaterClock()

    assert [clock.observe(source_ns) for source_ns in (-5, -9, 3, 2, 3, 4)] == [-5, -5, 3, 3, 3, 4]
    with pytest.raises(InvalidArgument):
        clock.observe(MAX + 1)


@pytest.mark.parametrize(
    ("source_ns", "waited", "now_ns"),
    [
        (100 * MS, False, 100 * MS),
        (98 * MS, True, 100 * MS),
        (98 * MS - 1, True, 101 * MS),
        (98 * MS - 1, False, 100 * MS),
        (MIN, True, 101 * MS),
        (MAX, False, MAX),
    ],
)
def test_leap_tolerant_freezes_for_small_steps_back_and_rebases_for_leaps(source_ns, waited, now_ns):
    clock = LeapTolerantClock(MS)
    clock.update(100 * MS, waited=False)

    assert clock.update(source_ns, waited=waited) == now_ns


def test_leap_tolerant_runs_on_at_the_pace_of_the_source_after_a_leap():
    clock = LeapTolerantClock(MS)
    readings = [(0, True), (-9 * MS, True), (-8 * MS, False), (-5 * MS, False)]

    assert [clock.update(source_ns, waited=waited) for source_ns, waited in readings] == [0, MS, 2 * MS, 5 * MS]


def test_leap_tolerant_refuses_short_intervals_and_readings_that_are_no_integers():
    with pytest.raises(InvalidArgument):
        LeapTolerantClock(MS - 1)
    with pytest.raises(InvalidArgument):
        LeapTolerantClock().update(1.5, waited=True)
    with pytest.raises(InvalidArgument):
        LeapTolerantClock().update(1, waited=1)
