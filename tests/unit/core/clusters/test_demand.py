"""What a topic wants: more than it got if it was held, else the mean of what it got."""

import pytest

from headgate.core.clusters.demand import SECOND_US, Look, demand


def look(count, limit=None, *, seconds=5):
    return Look(seconds * SECOND_US, count, limit)


@pytest.mark.parametrize(
    ("window", "wants"),
    [
        ([], 0),
        ([look(0)], 0),
        ([look(500)], 100),
        ([look(501)], 101),  # rounded up
        ([look(500), look(50)], 55),
        ([look(500), look(50, seconds=50)], 10),
        ([look(1000, 1000)], 200),
        ([look(4749, 1000)], 950),
        ([look(4750, 1000)], None),
        ([look(4750, 1000), look(0, 1000)], None),
    ],
)
def test_demand_is_unbounded_of_who_is_held_and_else_what_came(window, wants):
    assert demand(window) == wants
