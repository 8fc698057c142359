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


@pytest.mark.parametrize(
    ("amounts", "expected"),
    [
        ([300, 300, 0, 0, 0], None),  # 600 in 5 s, of 100/s
        ([300, 174, 0, 0, 0], 95),
        ([300, 100, 0, 0, 0], 80),
        ([0, 300, 175, 0, 0, 0, 0, 0], None),  # 475 in some 5 s
        ([300, 300], 300),  # not long enough to say
    ],
)
def test_where_brokers_average_only_so_many_looks_together_say_who_is_held(amounts, expected):
    looks = [Look(SECOND_US, amount, 100) for amount in amounts]
    assert demand(looks, 5 * SECOND_US) == expected
