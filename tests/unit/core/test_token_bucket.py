"""The token bucket, step by step (rate-limiters 2)."""

import pytest

from headgate.core.numbers import MAX, MIN
from headgate.core.token_bucket import TokenBucket
from headgate.errors import InvalidArgument, StateError

SECOND = 1_000_000_000
MS = 1_000_000


def state_of(bucket):
    return bucket.balance, bucket.last_ns, bucket.remainder_ns


def test_defaults_are_one_second_a_full_bucket_and_sixteen_milliseconds():
    bucket = TokenBucket(10, created_ns=5)

    assert bucket.state() == {
        "rate": 10,
        "period_ns": SECOND,
        "capacity": 10,
        "resolution_ns": 16 * MS,
        "max_debt": None,
        "dynamic": False,
        "balance": 10,
        "last_ns": 5,
        "remainder_ns": 0,
    }


@pytest.mark.parametrize(
    ("now_ns", "new", "last_ns", "remainder_ns"),
    [
        (-SECOND, 0, 0, 0),
        (0, 0, 0, 0),
        (16 * MS, 0, 0, 0),
        (16 * MS + 1, 16, 16 * MS + 1, 1),
        (17 * MS, 17, 17 * MS, 0),
        (17 * MS + 999_999, 17, 17 * MS + 999_999, 999_999),
        (3_600 * SECOND, 3_600_000, 3_600 * SECOND, 0),
    ],
)
def test_a_fast_bucket_refills_after_strictly_more_than_the_resolution(now_ns, new, last_ns, remainder_ns):
    bucket = TokenBucket(1000, created_ns=0)

    assert bucket.refill(now_ns) == new
    assert (bucket.last_ns, bucket.remainder_ns) == (last_ns, remainder_ns)


@pytest.mark.parametrize(("now_ns", "new"), [(333_333_332, 0), (333_333_333, 0), (333_333_334, 1), (666_666_667, 2)])
def test_a_slow_bucket_refills_at_the_nanosecond_of_its_token(now_ns, new):
    assert TokenBucket(3, created_ns=0).refill(now_ns) == new


def test_an_early_look_at_a_slow_bucket_loses_nothing():
    bucket = TokenBucket(3, capacity=3, initial=0, created_ns=0)
    steps = [
        (333_333_333, 0, (0, 333_333_333, 333_333_333)),
        (333_333_334, 1, (1, 333_333_334, 1)),
        (SECOND, 3, (3, SECOND, 1)),
    ]
    for now_ns, balance, state in steps:
        assert bucket.balance_at(now_ns) == balance
        assert state_of(bucket) == state


def test_the_cap_comes_before_the_own_cost_and_after_earlier_consumption():
    bucket = TokenBucket(10, created_ns=0)
    bucket.consume(4)

    assert bucket.take(3, SECOND) == 7
    assert bucket.take(20, 2 * SECOND) == -10


def test_an_initial_surplus_stays_until_a_refill_adds_tokens():
    bucket = TokenBucket(10, capacity=5, initial=50, created_ns=0)

    assert [bucket.balance_at(0), bucket.balance_at(99_999_999), bucket.balance_at(100 * MS)] == [50, 50, 5]


def test_a_step_back_adds_nothing_and_still_charges():
    bucket = TokenBucket(10, initial=0, capacity=100, created_ns=100 * SECOND)

    assert not bucket.consume_check(3, 40 * SECOND)
    assert state_of(bucket) == (-3, 100 * SECOND, 0)
    assert bucket.balance_at(101 * SECOND) == 7


def test_zero_is_a_legal_amount():
    bucket = TokenBucket(10, initial=0, created_ns=0)
    bucket.consume(0)
    bucket.refund(0)

    assert not bucket.consume_check(0, 0)
    assert bucket.pause_ns(0, 0) == 0


def test_max_debt_forgives_the_excess():
    bucket = TokenBucket(10, max_debt=15, created_ns=0)
    bucket.consume(1_000)

    assert bucket.balance == -15
    assert bucket.take(1_000, SECOND) == -15
    assert TokenBucket(10, initial=0, max_debt=0, created_ns=0).take(5, 0) == 0


@pytest.mark.parametrize(
    ("capacity", "balance", "need", "pause_ns"),
    [
        (1000, 0, None, 10 * MS),
        (1000, 9, None, 1 * MS),
        (1000, 10, None, 0),
        (199, 0, None, 1 * MS),
        (1000, 0, 0, 0),
        (1000, 0, 5000, 5 * SECOND),
        (1000, 7, 7, 0),
    ],
)
def test_pause_aims_at_one_percent_of_the_capacity_or_at_the_need(capacity, balance, need, pause_ns):
    bucket = TokenBucket(1000, capacity=capacity, initial=balance, created_ns=0)

    assert bucket.pause_ns(0, need) == pause_ns


@pytest.mark.parametrize(("balance", "n", "expected"), [(2, 3, 5), (8, 5, 10), (30, 5, 30), (-7, 4, -3)])
def test_refund_stops_at_the_capacity_or_where_the_balance_was(balance, n, expected):
    bucket = TokenBucket(10, initial=30, created_ns=0)
    bucket.consume(30 - balance)
    bucket.refund(n)

    assert bucket.balance == expected


def test_set_rate_changes_rate_capacity_and_period_alone():
    bucket = TokenBucket(10, dynamic=True, created_ns=0)
    bucket.consume(25)
    bucket.set_rate(4, 7, period_ns=2 * SECOND)

    assert (bucket.rate, bucket.capacity, bucket.period_ns) == (4, 4, 2 * SECOND)
    assert state_of(bucket) == (-15, 0, 0)
    bucket.set_rate(1000, 7)
    assert (bucket.rate, bucket.capacity, bucket.period_ns) == (1000, 1000, 2 * SECOND)
    assert bucket.balance_at(SECOND) == 485


def test_reprice_earns_the_old_rate_up_to_now_and_forgives_nothing():
    bucket = TokenBucket(100, initial=0, max_debt=50, created_ns=0)
    bucket.consume(40)
    bucket.reprice(10, 5, SECOND // 10)

    assert (bucket.rate, bucket.capacity, bucket.max_debt) == (10, 10, 5)
    assert state_of(bucket) == (-30, SECOND // 10, 0)


def test_results_saturate_and_never_wrap():
    deep = TokenBucket(1, created_ns=0)
    deep.consume(MAX)
    deep.consume(MAX)

    assert deep.balance == MIN
    assert deep.pause_ns(0) == MAX
    assert TokenBucket(10**9, capacity=MAX, initial=MAX, created_ns=MIN).balance_at(MAX) == MAX
    assert TokenBucket(1, created_ns=MAX).refill_due_ns() == MAX


def test_a_century_at_the_highest_rate_is_exact():
    bucket = TokenBucket(MAX, initial=0, capacity=MAX, period_ns=MAX, created_ns=0)

    assert bucket.balance_at(100 * 365 * 86_400 * SECOND) == 100 * 365 * 86_400 * SECOND


@pytest.mark.parametrize(
    "changes",
    [
        {"rate": 0},
        {"rate": -1},
        {"rate": MAX + 1},
        {"rate": True},
        {"rate": 1.0},
        {"rate": None},
        {"period_ns": 0},
        {"period_ns": None},
        {"capacity": 0},
        {"initial": -1},
        {"resolution_ns": -1},
        {"max_debt": -1},
        {"created_ns": MIN - 1},
        {"created_ns": "0"},
        {"dynamic": True, "capacity": 10},
        {"dynamic": True, "initial": 10},
        {"dynamic": 1},
    ],
)
def test_construction_refuses_what_is_out_of_range(changes):
    with pytest.raises(InvalidArgument):
        TokenBucket(**{"rate": 10, "created_ns": 0, **changes})


@pytest.mark.parametrize(
    "operation",
    [
        lambda bucket: bucket.consume(-1),
        lambda bucket: bucket.consume(MAX + 1),
        lambda bucket: bucket.consume(1.5),
        lambda bucket: bucket.consume(True),
        lambda bucket: bucket.consume_check(-1, 0),
        lambda bucket: bucket.consume_check(0, MAX + 1),
        lambda bucket: bucket.consume_check(5, None),
        lambda bucket: bucket.balance_at(MIN - 1),
        lambda bucket: bucket.pause_ns(0, -1),
        lambda bucket: bucket.refund(-1),
        lambda bucket: bucket.set_rate(0, 0),
        lambda bucket: bucket.set_rate(1, 0, 0),
        lambda bucket: bucket.set_rate(1, MAX + 1),
        lambda bucket: bucket.reprice(0, None, SECOND),
        lambda bucket: bucket.reprice(5, -1, SECOND),
    ],
)
def test_a_refused_operation_changes_nothing(operation):
    bucket = TokenBucket(10, dynamic=True, created_ns=0)
    bucket.consume(5)
    before = bucket.state()

    with pytest.raises(InvalidArgument):
        operation(bucket)
    assert bucket.state() == before


def test_a_fixed_bucket_refuses_a_rate_change():
    with pytest.raises(InvalidArgument, match="not dynamic"):
        TokenBucket(10, created_ns=0).set_rate(20, 0)


@pytest.mark.parametrize("state", [{}, {"rate": 1}, {**TokenBucket(1, created_ns=0).state(), "color": "red"}])
def test_state_of_another_version_is_refused(state):
    with pytest.raises(StateError, match="TokenBucket state: missing"):
        TokenBucket.from_state(state)
