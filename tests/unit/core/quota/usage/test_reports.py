"""When usage is reported: rates, every rule of the table, early cuts, the released test (resource-groups 6)."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from headgate.core.quota.rates import RATE_MAX
from headgate.core.quota.usage.reports import (
    Measured,
    ReportParameters,
    admitted_rate,
    decide_at_close,
    decide_early,
    decide_released,
    moved,
    offered_rate,
)
from headgate.core.quota.usage.usage import Usage
from headgate.errors import InvalidArgument

DEFAULT = ReportParameters()
PULSAR = ReportParameters(rule="pulsar")
BUSY = {"admitted": (100, 10_000), "offered": (100, 10_000), "limit": (200, None)}
IDLE = Measured(Usage((0, 0), (0, 0), (200, None)))


def measured(version=0, **changes):
    return Measured(Usage(**(BUSY | changes)), version)


@pytest.mark.parametrize(
    ("count", "epoch_ms", "rate"),
    [(0, 1000, 0), (1, 1000, 1), (1, 60_000, 1), (61, 60_000, 2), (7, 250, 28), (1, 3, 334), (2**60, 1, RATE_MAX)],
)
def test_an_admitted_rate_is_rounded_up_so_that_some_traffic_is_never_none(count, epoch_ms, rate):
    assert rate == admitted_rate(count, epoch_ms)


@pytest.mark.parametrize(
    ("count", "last_quarter", "epoch_ms", "rate"),
    [
        (0, 0, 1000, 0),
        (100, 25, 1000, 100),
        (100, 26, 1000, 104),
        (100, 100, 1000, 400),
        (1, 0, 60_000, 1),
        (1, 1, 7, 572),
    ],
)
def test_an_offered_rate_is_that_of_the_epoch_or_of_its_last_quarter_where_that_is_more(
    count, last_quarter, epoch_ms, rate
):
    assert rate == offered_rate(count, last_quarter, epoch_ms)


@pytest.mark.parametrize("wrong", [lambda: admitted_rate(-1, 1000), lambda: offered_rate(0, -1, 1000)])
def test_a_negative_count_is_an_error_of_the_caller(wrong):
    with pytest.raises(InvalidArgument):
        wrong()


@pytest.mark.parametrize(
    ("value", "last", "percent", "expected"),
    [
        (None, None, 5, False),
        (None, 0, 5, True),
        (0, None, 5, True),
        (0, 0, 5, False),
        (1, 0, 5, True),
        (105, 100, 5, False),
        (106, 100, 5, True),
        (95, 100, 5, False),
        (94, 100, 5, True),
        (100, 100, 0, False),
        (101, 100, 0, True),
        (RATE_MAX, RATE_MAX - 1, 0, True),
    ],
)
def test_a_value_moved_if_it_differs_by_more_than_the_percentage_of_the_last_one(value, last, percent, expected):
    assert expected is moved(value, last, percent)


@pytest.mark.parametrize(
    ("current", "last", "rounds", "reason"),
    [
        (measured(), None, 0, "first"),
        (measured(), IDLE, 99, "first"),
        (IDLE, None, 99, None),
        (IDLE, IDLE, 99, None),
        (IDLE, measured(), 1, "zero"),
        (measured(2), measured(1), 0, "config"),
        (measured(1), measured(2), 0, "config"),
        (measured(throttled=(True, False)), measured(), 0, "throttled"),
        (measured(throttled=(True, True)), measured(throttled=(True, False)), 0, "throttled"),
        (measured(throttled=(False, True)), measured(throttled=(True, False)), 0, "throttled"),
        (measured(), measured(), 4, None),
        (measured(), measured(), 5, "mandatory"),
        (measured(throttled=(False, False)), measured(throttled=(True, False)), 1, "cleared"),
        (measured(throttled=(True, False)), measured(throttled=(True, True)), 1, "cleared"),
        (measured(throttled=(False, False)), measured(throttled=(True, False)), 5, "mandatory"),
        (measured(admitted=(106, 10_000)), measured(), 1, "change"),
        (measured(admitted=(100, 9_499)), measured(), 1, "change"),
        (measured(offered=(100, 10_501)), measured(), 1, "change"),
        (measured(offered=(None, 10_000)), measured(), 1, "change"),
        (measured(limit=(211, None)), measured(), 1, "change"),
        (measured(limit=(200, 0)), measured(), 1, "change"),
        (measured(limit=(None, None)), measured(), 1, "change"),
        (measured((0), admitted=(105, 9_500), offered=(95, 10_500), limit=(190, None)), measured(), 4, None),
    ],
)
def test_at_the_close_the_first_rule_that_matches_decides(current, last, rounds, reason):
    assert reason == decide_at_close(DEFAULT, current, last, rounds)


@pytest.mark.parametrize(
    ("current", "last", "reason"),
    [(measured(), measured(), "leave"), (IDLE, IDLE, "leave"), (IDLE, measured(), "leave"), (measured(), None, None)],
)
def test_who_leaves_says_so_if_anything_was_ever_said(current, last, reason):
    assert reason == decide_at_close(DEFAULT, current, last, 1, leaving=True)
    assert reason == decide_early(DEFAULT, current, last, 0, leaving=True)


@pytest.mark.parametrize(
    ("suppress_rounds", "rounds", "reason"), [(0, 0, "every"), (1, 0, None), (1, 1, "mandatory"), (-1, 10**9, None)]
)
def test_rounds_without_a_row_are_bounded_by_r_0_is_every_round_and_below_0_never(suppress_rounds, rounds, reason):
    parameters = ReportParameters(suppress_rounds=suppress_rounds)

    assert reason == decide_at_close(parameters, measured(), measured(), rounds)


def test_idle_usage_is_not_repeated_even_when_every_round_is_reported():
    assert decide_at_close(ReportParameters(suppress_rounds=0), IDLE, IDLE, 5) is None


@pytest.mark.parametrize(
    ("current", "last", "since_ms", "reason"),
    [
        (measured(), None, 0, "first"),
        (measured(), IDLE, 99, None),
        (measured(), IDLE, 100, "first"),
        (IDLE, measured(), 99, None),
        (IDLE, measured(), 100, "zero"),
        (IDLE, IDLE, 10**9, None),
        (IDLE, None, 10**9, None),
        (measured(1), measured(), 100, "config"),
        (measured(throttled=(False, True)), measured(), 100, "throttled"),
        (measured(), measured(throttled=(False, True)), 10**9, None),
        (measured(limit=(None, 5)), measured(), 10**9, None),
        (measured(offered=(110, 10_000)), measured(), 100, None),
        (measured(offered=(111, 10_000)), measured(), 100, "change"),
        (measured(offered=(100, 8_999)), measured(), 100, "change"),
        (measured(offered=(100, 8_999)), measured(), 99, None),
        (measured(admitted=(200, 10_000)), measured(), 100, None),
        (measured(admitted=(200, 10_000), offered=(None, None)), measured(offered=(None, None)), 100, "change"),
        (measured(admitted=(100, 10_000), offered=(None, None)), measured(), 100, None),
    ],
)
def test_inside_an_epoch_urgent_rules_and_a_change_of_demand_decide_after_the_least_interval(
    current, last, since_ms, reason
):
    assert reason == decide_early(DEFAULT, current, last, since_ms)


@pytest.mark.parametrize(
    ("counts", "last", "elapsed_ms", "parameters", "reason"),
    [
        ((0, 0), None, 0, PULSAR, "mandatory"),
        ((0, 0), (100, 1000), 299_999, PULSAR, None),
        ((0, 0), (100, 1000), 300_000, PULSAR, "mandatory"),
        ((100, 1050), (100, 1000), 0, PULSAR, None),
        ((100, 1051), (100, 1000), 0, PULSAR, "change"),
        ((94, 1000), (100, 1000), 0, PULSAR, "change"),
        ((1, 0), (0, 0), 0, PULSAR, "change"),
        ((0, 0), (0, 0), 0, ReportParameters(rule="pulsar", suppress_rounds=0), "every"),
        ((0, 0), None, 10**12, ReportParameters(rule="pulsar", suppress_rounds=-1), None),
        ((1, 0), None, 10**12, ReportParameters(rule="pulsar", suppress_rounds=-1), "change"),
        ((100, 1000), (100, 1000), 0, ReportParameters(rule="pulsar", tolerance_percent=0), "change"),
        ((100, 0), (100, 0), 0, ReportParameters(rule="pulsar", tolerance_percent=-3), "change"),
        ((0, 0), (100, 0), 0, ReportParameters(rule="pulsar", tolerance_percent=0), None),
    ],
)
def test_the_released_rule_compares_counts_of_periods(counts, last, elapsed_ms, parameters, reason):
    assert reason == decide_released(parameters, counts, last, elapsed_ms, 60_000)


numbers = st.one_of(st.integers(1, 3000), st.integers(1, 2**63 - 1))


@settings(max_examples=examples(300))
@given(numbers, numbers, st.integers(1, 200))
def test_the_released_drift_is_that_of_single_precision(count, last, tolerance_percent):
    difference = np.float32(abs(count - last))
    drift = np.float32(difference * np.float32(100)) / np.float32(last)

    reason = decide_released(
        ReportParameters(rule="pulsar", suppress_rounds=-1, tolerance_percent=tolerance_percent),
        (count, 0),
        (last, 0),
        0,
        60_000,
    )
    assert bool(drift > np.float32(tolerance_percent)) is (reason == "change")


@pytest.mark.parametrize(
    "wrong",
    [
        {"rule": "other"},
        {"suppress_rounds": 1.5},
        {"tolerance_percent": None},
        {"event_min_interval_ms": 0},
        {"event_change_percent": "10"},
    ],
)
def test_parameters_are_checked(wrong):
    with pytest.raises(InvalidArgument):
        ReportParameters(**wrong)
