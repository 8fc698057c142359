"""Levels of a domain's dispatches: there from the first dispatch that they limit on (rate-limiters 6)."""

import pytest

from headgate.core.dispatch.dispatch_levels import LazyDispatchLevel, LazyGroupLevel
from headgate.core.dispatch.dispatch_meter import Implementation

SECOND = 1_000_000_000
CLASSIC = Implementation.CLASSIC


def available(level, at_ns=SECOND):
    return None if level.made is None else level.made.available(at_ns)


def test_a_level_that_limits_nothing_lets_all_pass_and_is_not_made():
    level = LazyDispatchLevel((0, 0))
    level.charge((9, 9), 0)

    assert (False, 0, None) == (level.limits, level.missing(0), level.made)


@pytest.mark.parametrize("ask", [lambda level: level.missing(SECOND), lambda level: level.charge((0, 0), SECOND)])
def test_a_level_is_made_full_when_it_is_first_asked_or_charged(ask):
    level = LazyDispatchLevel((10, 100), period_s=3)
    ask(level)

    assert (10, 100) == available(level)
    level.charge((99, 0), SECOND)
    assert (0, 100) == available(level, 4 * SECOND)


@pytest.mark.parametrize(
    ("rates", "charged", "missing"),
    [
        ((10, 100), (9, 99), 0),
        ((10, 100), (10, 99), 1),
        ((10, 100), (9, 100), 2),
        ((10, 100), (10, 100), 3),
        ((0, 100), (10, 99), 0),
        ((10, 0), (9, 100), 0),
    ],
)
@pytest.mark.parametrize("implementation", Implementation)
def test_what_a_read_lacks_are_the_limited_dimensions_that_are_used_up(rates, charged, missing, implementation):
    level = LazyDispatchLevel(rates, implementation=implementation)

    assert 0 == level.charge(charged, 0)
    assert missing == level.missing(0)


def test_what_is_told_before_a_level_is_made_holds_when_it_is():
    level = LazyDispatchLevel((10, 0))
    level.follow((7, 9), 0)
    level.update((20, 0), 0, period_s=2, relative=True)

    assert level.made is None
    assert 0 == level.missing(SECOND)
    assert ((27, -1), 2) == (available(level), level.made.period_s)


@pytest.mark.parametrize(("relative", "left"), [(True, 30), (False, 10)])
def test_averages_count_where_the_level_is_relative_also_once_it_is_made_again(relative, left):
    level = LazyDispatchLevel((10, 0), relative=relative)
    level.charge((10, 0), 0)
    level.follow((20, 0), 0)
    level.update((0, 0), 0, period_s=1, relative=relative)
    assert (False, None) == (level.limits, level.made)

    level.update((10, 0), 0, period_s=1, relative=relative)
    level.missing(0)
    assert (left, -1) == available(level, 0)


@pytest.mark.parametrize(("implementation", "left"), [(CLASSIC, 0), (Implementation.TOKEN_BUCKET, 20)])
def test_a_changed_rate_is_full_but_a_window_keeps_its_debt(implementation, left):
    level = LazyDispatchLevel((10, 0), implementation=implementation)
    level.charge((25, 0), 0)
    level.update((20, 0), 0, period_s=1, relative=False)

    assert (left, -1) == available(level, 0)


def test_debt_is_bounded_as_configured():
    level = LazyDispatchLevel((10, 0), period_s=2, max_debt_ms=500)
    level.charge((99, 0), 0)

    assert -2 == level.made.meters[0].bucket.balance


def test_a_groups_level_is_made_when_it_is_first_asked_with_the_rates_of_then():
    level = LazyGroupLevel((10, 0))
    assert level.made is None
    level.rates = (20, 0)

    assert 0 == level.missing(0)
    assert 1 == level.charge((20, 0), 0)
    assert 1 == level.missing(0)
