"""What an allocation accepts, in which order it refuses, and its other forms: coupled, divided, trees."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.conformance.oracles.allocation_tree import Node, allocate_tree
from headgate.core.quota.allocation.allocation import (
    Division,
    Profile,
    allocate,
    allocate_coupled,
    divide,
    pulsar_limit,
)
from headgate.core.quota.rates import RATE_MAX
from headgate.errors import BadAllocation, CoreError, InvalidArgument


def code_of(call):
    with pytest.raises(BadAllocation) as refused:
        call()
    return refused.value.code


@pytest.mark.parametrize(
    ("quota", "values", "weights", "ids", "code"),
    [
        (100, [5, 1.0], None, None, "bad_value"),
        (100, [5, True], None, None, "bad_value"),
        (100, [5, "1"], None, None, "bad_value"),
        (100, [5, -1], None, None, "negative_usage"),
        (100, [-1, 1.5], None, None, "negative_usage"),
        (100, [1.5, -1], None, None, "bad_value"),
        (-1, [5, -1], None, None, "negative_usage"),
        (None, [-1], None, None, "negative_usage"),
        (1.5, [5], None, None, "bad_value"),
        (False, [5], None, None, "bad_value"),
        ("7", [5], [0], None, "bad_value"),
        (-1, [5, 1], [0, 1], [4, 4], "bad_quota"),
        (-1, [], None, None, "bad_quota"),
        (100, [5, 1], [1, 0], [4, 4], "bad_weight"),
        (100, [5, 1], [1, 1001], None, "bad_weight"),
        (100, [5, 1], [1, 1.0], None, "bad_weight"),
        (100, [5, 1], [1, True], None, "bad_weight"),
        (100, [5, 1], [1, None], None, "bad_weight"),
        (None, [5, 1], [1, 0], None, "bad_weight"),
        (100, [5, 1], [1], [4, 4], "duplicate_broker"),
        (100, [5, 1, 2], None, [4, 4], "duplicate_broker"),
        (100, [5, 1], [1], None, "bad_value"),
        (100, [5, 1], None, [1, 2, 3], "bad_value"),
        (100, [5], None, ["a"], "bad_value"),
        (100, [], [1], None, "bad_value"),
    ],
)
@pytest.mark.parametrize("profile", Profile)
def test_the_first_mistake_in_the_order_of_the_specification_is_raised(profile, quota, values, weights, ids, code):
    assert code == code_of(lambda: allocate(profile, quota, values, weights, ids))


@pytest.mark.parametrize("profile", Profile)
def test_null_is_unbounded_demand_but_no_usage(profile):
    if profile is Profile.MAX_MIN:
        assert [5, 95] == allocate(profile, 100, [5, None])
    else:
        assert code_of(lambda: allocate(profile, 100, [5, None])) == "bad_value"


@pytest.mark.parametrize(
    ("own", "usage", "quota", "code"),
    [
        (-1, [0], 0, "negative_usage"),
        (-1, [1.5], -1, "negative_usage"),
        (1.5, [-1], -1, "bad_value"),
        (1, [-1, 5], None, "negative_usage"),
        (1, [None], 5, "bad_value"),
        (1, [1], -5, "bad_quota"),
    ],
)
def test_own_usage_is_checked_before_the_map(own, usage, quota, code):
    assert code == code_of(lambda: pulsar_limit(quota, own, usage))


def test_an_unknown_profile_or_division_is_an_invalid_argument():
    with pytest.raises(InvalidArgument, match="max_min, pulsar"):
        allocate("fair", 1, [1])
    with pytest.raises(InvalidArgument, match="max_min, even, proportional"):
        divide("odd", 1, [1])


def test_a_refused_allocation_is_an_error_of_the_core():
    assert issubclass(BadAllocation, CoreError)


@given(st.sampled_from(Profile), st.lists(st.integers(0, 10**6), max_size=5))
def test_no_brokers_is_empty_and_no_quota_is_null_for_all(profile, values):
    assert [] == allocate(profile, 10, [])
    assert [None] * len(values) == allocate(profile, None, values)


@given(st.lists(st.none() | st.integers(0, RATE_MAX), min_size=1, max_size=5))
def test_a_quota_of_zero_gives_zero_alone(demands):
    assert [0] * len(demands) == allocate(Profile.MAX_MIN, 0, demands)


def test_rates_above_the_largest_count_as_the_largest():
    assert [RATE_MAX] == allocate(Profile.MAX_MIN, 2**63, [1])
    assert allocate(Profile.PULSAR, 2**60, [2**70, 5]) == allocate(Profile.PULSAR, RATE_MAX, [RATE_MAX, 5])


@given(st.sampled_from(Profile), st.integers(0, 1000), st.lists(st.integers(0, 1000), max_size=6))
def test_equal_inputs_give_equal_limits(profile, quota, values):
    given_values = list(values)

    assert allocate(profile, quota, values) == allocate(profile, quota, given_values)
    assert given_values == values


@pytest.mark.parametrize(
    ("quotas", "demands", "limits"),
    [
        ((1000, 100_000), ([900, 900], [900_000, 9000]), ([96, 904], [95_000, 5000])),
        ((100, None), ([80, 80], [8000, 8000]), ([50, 50], [None, None])),
        ((None, None), ([80], [8000]), ([None], [None])),
        ((100, 1000), ([None, 50], [None, 500]), ([50, 50], [500, 500])),
        ((100, 1000), ([0, 200], [900, 900]), ([0, 100], [550, 450])),
        ((0, 1000), ([10, 0], [100, 100]), ([0, 0], [450, 550])),
    ],
)
def test_a_broker_bound_in_one_dimension_hands_back_the_other(quotas, demands, limits):
    assert limits == allocate_coupled(quotas, demands)


@given(
    st.tuples(st.integers(0, RATE_MAX), st.integers(0, RATE_MAX)),
    st.lists(st.tuples(*[st.none() | st.integers(0, RATE_MAX)] * 2), min_size=1, max_size=5),
)
def test_coupled_limits_sum_to_both_quotas(quotas, demands):
    messages, of_bytes = allocate_coupled(quotas, tuple(list(column) for column in zip(*demands, strict=True)))

    assert quotas == (sum(messages), sum(of_bytes))


@pytest.mark.parametrize(
    ("quotas", "demands", "weights", "code"),
    [
        ((-1, 5), ([1], [-1]), None, "negative_usage"),
        ((5, -1), ([1], [1]), [0], "bad_quota"),
        ((5, 5), ([1], [1]), [0], "bad_weight"),
        ((5, 5), ([1], [1, 2]), None, "bad_value"),
    ],
)
def test_coupled_input_is_checked_as_a_whole(quotas, demands, weights, code):
    assert code == code_of(lambda: allocate_coupled(quotas, demands, weights))


@pytest.mark.parametrize(
    ("division", "limit", "values", "limits"),
    [
        (Division.EVEN, 10, [5, 0, 9], [4, 3, 3]),
        (Division.PROPORTIONAL, 100, [1, 1, 4], [17, 17, 66]),
        (Division.PROPORTIONAL, 100, [0, 0, 0], [34, 33, 33]),
        (Division.MAX_MIN, 100, [10, None], [10, 90]),
        (Division.EVEN, None, [1, 2], [None, None]),
        (Division.PROPORTIONAL, 0, [1, 2], [0, 0]),
    ],
)
def test_divisions_of_a_limit(division, limit, values, limits):
    assert limits == divide(division, limit, values)


def test_even_division_does_not_look_at_weights():
    assert [5, 5] == divide(Division.EVEN, 10, [0, 0], [1, 9])


SHARDS = (
    Node(1, children=(Node(1, demand=10), Node(2, demand=80))),
    Node(2, children=(Node(1, demand=30), Node(2, demand=30))),
)


def test_each_part_is_the_quota_of_what_is_below():
    assert {(1, 1): 10, (1, 2): 40, (2, 1): 25, (2, 2): 25} == allocate_tree(100, SHARDS)
    assert {(1, 1): 25, (1, 2): 25, (2, 1): 25, (2, 2): 25} == allocate_tree(100, SHARDS, Division.EVEN)
    assert {(1, 1): 7, (1, 2): 53, (2, 1): 20, (2, 2): 20} == allocate_tree(100, SHARDS, Division.PROPORTIONAL)


def test_an_unbounded_leaf_makes_all_above_it_unbounded():
    tree = [Node(1, children=(Node(1, demand=None), Node(2, demand=1))), Node(2, demand=900)]

    assert {(1, 1): 499, (1, 2): 1, (2,): 500} == allocate_tree(1000, tree)


@pytest.mark.parametrize(("limit", "leaf"), [(None, None), (0, 0)])
@pytest.mark.parametrize("division", Division)
def test_null_and_zero_reach_the_leaves_unchanged(division, limit, leaf):
    assert {leaf} == set(allocate_tree(limit, SHARDS, division).values())


leaves = st.builds(Node, st.just(0), st.integers(1, 1000), st.none() | st.integers(0, 10**9))


def numbered(children):
    return tuple(Node(id_, child.weight, child.demand, child.children) for id_, child in enumerate(children))


trees = st.recursive(
    leaves,
    lambda nodes: st.builds(
        lambda weight, children: Node(0, weight, children=numbered(children)),
        st.integers(1, 1000),
        st.lists(nodes, min_size=1, max_size=4),
    ),
    max_leaves=12,
)


@given(st.integers(0, RATE_MAX), st.lists(trees, min_size=1, max_size=4), st.sampled_from(["max_min", "even"]))
def test_leaves_of_a_tree_sum_to_the_quota(limit, children, division):
    assert limit == sum(allocate_tree(limit, numbered(children), division).values())


@pytest.mark.parametrize(
    ("limit", "children", "code"),
    [
        (-1, [Node(1, 0, demand=5), Node(1, children=(Node(1, demand=-1),))], "negative_usage"),
        (-1, [Node(1, 0, demand=5), Node(1)], "bad_quota"),
        (1, [Node(1, 1, demand=5), Node(1, children=(Node(1, 1001),))], "bad_weight"),
        (1, [Node(1), Node(2, children=(Node(1), Node(1)))], "duplicate_broker"),
        (1, [Node(1), Node(1)], "duplicate_broker"),
        (1.5, [Node(1)], "bad_value"),
    ],
)
def test_a_tree_is_checked_as_a_whole(limit, children, code):
    assert code == code_of(lambda: allocate_tree(limit, children))


def test_unbounded_demand_has_no_proportion():
    assert code_of(lambda: allocate_tree(10, [Node(1, demand=None)], Division.PROPORTIONAL)) == "bad_value"
