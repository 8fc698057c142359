"""What a topic wants: more than it got if it was held, else what it got and a margin."""

import pytest

from headgate.core.clusters.demand import SECOND_US, Look, demand


def look(count, limit=None, *, seconds=5, throttled=None, spare=2):
    return Look(seconds * SECOND_US, count, limit, throttled, spare)


@pytest.mark.parametrize(
    ("window", "wants"),
    [
        ([], 0),
        ([look(0)], 2),
        ([look(500)], 117),
        ([look(501)], 118),  # 115.23 and 2, rounded up
        ([look(500), look(50)], 117),
        ([look(1000, 1000)], 232),
        ([look(4249, 1000)], 980),
        ([look(4250, 1000)], None),
        ([look(4250, 1000), look(0, 1000)], None),
        ([look(100, 1000, throttled=1)], None),
        ([look(100, 1000, throttled=0)], 25),
        ([look(9999, throttled=7)], 2302),
    ],
)
def test_demand_is_unbounded_of_who_is_held_and_else_what_came_and_a_margin(window, wants):
    assert demand(window) == wants
