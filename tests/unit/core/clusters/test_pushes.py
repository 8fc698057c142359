"""A push costs a burst: few, none without a change, up only if somebody wants more, and down soon."""

import pytest

from headgate.core.clusters.demand import SECOND_US
from headgate.core.clusters.pushes import Limit, Pushed, next_push, without_bursts

MINUTE = 60


def pushes(*made):
    """made: (second, messages, bytes)."""
    return [Pushed(int(second * SECOND_US), Limit(*limit)) for second, *limit in made]


@pytest.mark.parametrize(
    ("made", "level", "now_s", "limit"),
    [
        ([], (60, None), 0, (60, None)),
        ([], (0, None), 0, (1, None)),  # 0 would be no limit
        ([(0, 100, None)], (100, None), MINUTE, None),
        ([(0, 100, None)], (93, None), 10, None),  # within the band of the first 20 s
        ([(0, 100, None)], (92, None), 10, (92, None)),
        ([(0, 100, None)], (98, None), 20, None),  # within the band after that
        ([(0, 100, None)], (97, None), 20, (97, None)),
        ([(0, 100, None)], (103, None), 20, (103, None)),
        ([(0, 100, None)], (50, None), 2.9, None),
        ([(0, 100, None)], (50, None), 3, (50, None)),
        ([(0, 100, None)], (120, None), 5.9, None),
        ([(0, 100, None)], (120, None), 6, (120, None)),
        ([(0, 100, None)], (300, None), 6, (200, None)),
        ([(0, 1, None)], (300, None), 6, (2, None)),
        ([(0, 900, None), (9, 100, None)], (100, None), MINUTE, None),
        ([(0, 100, 5000)], (100, 9000), 6, (100, 9000)),
        ([(0, 100, 5000)], (100, 2000), 3, (100, 2000)),
        ([(0, 100, 5000)], (200, 2000), 3, (100, 2000)),  # one that is higher waits longer
    ],
)
def test_what_is_pushed_when(made, level, now_s, limit):
    expected = None if limit is None else Limit(*limit)
    assert next_push(pushes(*made), Limit(*level), Limit(*level), int(now_s * SECOND_US), is_wanted=True) == expected


def test_a_cap_that_nobody_reaches_is_lowered_and_not_raised():
    made = pushes((0, 100, None))
    assert next_push(made, Limit(300), Limit(300), MINUTE * SECOND_US, is_wanted=False) is None
    assert next_push(made, Limit(50), Limit(50), MINUTE * SECOND_US, is_wanted=False) == Limit(50)


@pytest.mark.parametrize(
    ("level", "target", "limit"), [(100, 90, None), (102, 99, None), (97, 90, 90), (120, 102, None), (120, 110, 110)]
)
def test_bursts_lower_what_is_pushed_and_are_no_reason_to_push(level, target, limit):
    expected = None if limit is None else Limit(limit)
    assert next_push(pushes((0, 100, None)), Limit(level), Limit(target), 20 * SECOND_US, is_wanted=True) == expected


@pytest.mark.parametrize(
    ("quota", "bursts", "left"), [(300, 0, 300), (300, 1, 295), (300, 3, 285), (9, 99, 0), (0, 1, 0)]
)
def test_pushes_of_the_last_minute_count_into_the_quota(quota, bursts, left):
    assert without_bursts(quota, bursts) == left
