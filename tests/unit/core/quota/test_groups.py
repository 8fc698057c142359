"""Groups: rates of which null and 0 are never exchanged, names, shards (resource-groups 1, 2, 13)."""

import pytest

from headgate.core.quota.groups import (
    RATE_FIELDS,
    UNLIMITED,
    ResourceGroup,
    initial_shard,
    is_group_name,
    rate_of_rest,
    rest_of_rate,
    stricter,
)
from headgate.core.quota.rates import RATE_MAX
from headgate.core.quota.usage.usage import NOTHING, Usage


@pytest.mark.parametrize(("rest", "rate"), [(-1, None), (None, None), (0, 0), (1, 1), (2**63 - 1, 2**63 - 1)])
def test_minus_one_and_null_are_not_limited_and_0_blocks(rest, rate):
    assert rate == rate_of_rest(rest)


@pytest.mark.parametrize(("rate", "rest"), [(None, -1), (0, 0), (7, 7)])
def test_rest_writes_not_limited_as_minus_one(rate, rest):
    assert rest == rest_of_rate(rate)


def test_rates_are_returned_class_by_class_messages_before_bytes():
    assert [
        ("publishRateInMsgs", 2**31 - 1),
        ("publishRateInBytes", 2**63 - 1),
        ("dispatchRateInMsgs", 2**31 - 1),
        ("dispatchRateInBytes", 2**63 - 1),
    ] == [(field.name, field.largest) for field in RATE_FIELDS]


def test_a_quota_is_what_was_sent_up_to_the_largest_rate():
    group = ResourceGroup(1, "gold", (5, 2**63 - 1, None, 0))

    assert [5, RATE_MAX, None, 0] == [
        group.quota(traffic_class, dimension) for traffic_class in (0, 1) for dimension in (0, 1)
    ]
    assert [(5, RATE_MAX), (None, 0)] == [group.quotas(0), group.quotas(1)]


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ((None, None), (None, None), (None, None)),
        ((100, None), (250, 9000), (100, 9000)),
        ((None, 5000), (10, 0), (10, 0)),
        ((0, 7), (None, 7), (0, 7)),
        ((2**60, None), (None, 2**60), (RATE_MAX, RATE_MAX)),
    ],
)
def test_the_stricter_limit_wins_in_each_dimension_and_null_is_no_bound(one, other, expected):
    assert expected == stricter(one, other)
    assert expected == stricter(other, one)


@pytest.mark.parametrize("name", ["a", "-=:._", "Gold-1", "x" * 250, "_"])
def test_names_are_up_to_250_of_a_few_characters(name):
    assert is_group_name(name)


@pytest.mark.parametrize("name", ["", "x" * 251, "a b", "a/b", "ä", "a%20b", "a\n", None, 7])
def test_other_names_are_refused(name):
    assert not is_group_name(name)


def test_a_shard_depends_on_the_name_alone_and_names_are_spread():
    shards = [initial_shard(f"group-{number}", 64) for number in range(6400)]

    assert [33, 43, 27] == [initial_shard(name, 64) for name in ("gold", "silver", "bronze")]
    assert set(range(64)) == set(shards)
    assert max(shards.count(shard) for shard in range(64)) < 160


@pytest.mark.parametrize(
    ("usage", "idle"),
    [
        (NOTHING, True),
        (Usage((0, 0), (0, None)), True),
        (Usage((0, 0), limit=(0, 100)), True),
        (Usage((0, 1)), False),
        (Usage((0, 0), (None, 1)), False),
        (Usage((0, 0), throttled=(False, True)), False),
    ],
)
def test_usage_is_idle_with_nothing_admitted_offered_or_throttled_whatever_the_limit(usage, idle):
    assert idle is usage.idle


def test_demand_is_what_was_offered_or_where_that_is_hidden_what_passed():
    assert (20, 7) == Usage((10, 7), (20, None)).demand
    assert UNLIMITED == NOTHING.offered
    assert Usage((1, 2), (3, None), (None, 0), (True, False)) == Usage.of_plain(
        Usage((1, 2), (3, None), (None, 0), (True, False)).plain()
    )
