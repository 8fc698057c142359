"""A push costs a burst: few, none without a change, up slowly and down soon."""

import pytest

from headgate.core.clusters.pushes import Pushed, next_push, without_bursts


@pytest.mark.parametrize(
    ("pushes", "level", "now_ms", "limit"),
    [
        ([], 60, 0, 60),
        ([], 0, 0, 1),
        ([(0, 100)], 100, 60_000, None),
        ([(0, 100)], 93, 60_000, None),
        ([(0, 100)], 92, 60_000, 92),
        ([(0, 100)], 107, 60_000, None),
        ([(0, 100)], 108, 60_000, 108),
        ([(0, 100)], 50, 2999, None),
        ([(0, 100)], 50, 3000, 50),
        ([(0, 100)], 120, 5999, None),
        ([(0, 100)], 120, 6000, 120),
        ([(0, 100)], 300, 6000, 130),
        ([(0, 1)], 300, 6000, 2),
        ([(0, 900), (9_000, 100)], 100, 60_000, None),
    ],
)
def test_what_is_pushed_when(pushes, level, now_ms, limit):
    assert next_push([Pushed(*push) for push in pushes], level, now_ms) == limit


@pytest.mark.parametrize(("ages_ms", "left"), [((), 300), ((0,), 295), ((0, 10, 59_999), 285), ((60_000,), 300)])
def test_pushes_of_the_last_minute_count_into_the_quota(ages_ms, left):
    assert without_bursts(300, [Pushed(100_000 - age_ms, 50) for age_ms in ages_ms], 100_000) == left
    assert without_bursts(0, [Pushed(0, 50)], 0) == 0
