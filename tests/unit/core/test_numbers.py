"""Saturation and argument checks (rate-limiters 1)."""

import pytest

from headgate.core.numbers import MAX, MIN, at_least, flag, int64, sat
from headgate.errors import InvalidArgument


@pytest.mark.parametrize(
    ("value", "expected"), [(MAX, MAX), (MAX + 1, MAX), (10**40, MAX), (MIN, MIN), (MIN - 1, MIN), (0, 0), (-7, -7)]
)
def test_sat_clamps_to_64_bits(value, expected):
    assert sat(value) == expected


@pytest.mark.parametrize("value", [MAX, MIN, 0, -1])
def test_int64_returns_integers_of_64_bits(value):
    assert int64(value, "n") == value


@pytest.mark.parametrize("value", [MAX + 1, MIN - 1, True, False, 1.0, "1", None, [1]])
def test_int64_refuses_everything_else_by_name(value):
    with pytest.raises(InvalidArgument, match=r"^n: got "):
        int64(value, "n")


@pytest.mark.parametrize("value", [1, MAX + 1, True, None])
def test_at_least_refuses_what_is_below_or_no_integer(value):
    with pytest.raises(InvalidArgument, match=r"^n: got .* from 2 to "):
        at_least(2, value, "n")


@pytest.mark.parametrize("value", [0, 1, None, "true"])
def test_flag_refuses_what_stands_for_a_boolean(value):
    with pytest.raises(InvalidArgument, match="allowed are true and false"):
        flag(value, "dynamic")
