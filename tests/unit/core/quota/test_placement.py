"""Groups of the same brokers share a shard, as few groups move as can be, and only where it pays (13.3)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.core.quota.placement import GAIN_PERCENT, moves, rows_read
from headgate.errors import InvalidArgument

LEFT, RIGHT = frozenset([0, 1]), frozenset([2, 3])

active_sets = st.dictionaries(
    st.integers(1, 40), st.frozensets(st.integers(0, 9), min_size=1, max_size=4), min_size=1, max_size=30
)


def after(holders, current, shards):
    return current | moves(holders, current, shards)


def test_every_reader_of_a_shard_reads_all_of_its_rows():
    holders = {1: LEFT, 2: RIGHT}

    assert rows_read(holders, {1: 0, 2: 1}) == 2 * 2 + 2 * 2
    assert rows_read(holders, {1: 0, 2: 0}) == 4 * 4


def test_groups_with_the_same_holders_come_together():
    holders = {1: LEFT, 2: RIGHT, 3: LEFT, 4: RIGHT}
    placed = after(holders, {1: 0, 2: 0, 3: 1, 4: 1}, 2)

    assert placed[1] == placed[3] != placed[2] == placed[4]


def test_most_groups_stay_where_they_are():
    holders = dict.fromkeys(range(1, 6), LEFT) | dict.fromkeys(range(6, 11), RIGHT)
    current = dict.fromkeys(range(1, 6), 7) | dict.fromkeys(range(6, 11), 3) | {1: 3}

    assert moves(holders, current, 8) == {1: 7}


def test_with_more_sets_than_shards_a_set_joins_the_readers_it_has_most_in_common_with():
    holders = {1: frozenset([0, 1, 2]), 2: frozenset([7, 8, 9]), 3: frozenset([0, 1]), 4: frozenset([8, 9])}
    placed = after(holders, {1: 0, 2: 0, 3: 0, 4: 0}, 2)

    assert placed[1] == placed[3] != placed[2] == placed[4]


def test_nothing_moves_for_a_small_gain():
    holders = dict.fromkeys(range(1, 100), LEFT) | {100: RIGHT}
    spread = dict.fromkeys(range(1, 100), 0) | {99: 1, 100: 1}
    spared = rows_read(holders, spread) - rows_read(holders, spread | {99: 0})

    assert 0 < spared * 100 < GAIN_PERCENT * rows_read(holders, spread)
    assert moves(holders, spread, 2) == {}


def test_groups_that_nobody_uses_stay():
    assert moves({1: frozenset(), 2: LEFT}, {1: 5, 2: 0, 3: 9}, 4) == {}


def test_a_shard_beyond_the_last_is_left_where_it_pays():
    holders = {1: LEFT, 2: RIGHT}

    assert moves(holders, {1: 9, 2: 9}, 2) == {1: 0, 2: 1}


@given(active_sets, st.integers(1, 6), st.randoms())
def test_readers_read_less_than_before_or_nothing_moves(holders, shards, random):
    current = {group: random.randrange(shards) for group in holders}
    moved = moves(holders, current, shards)

    assert all(0 <= shard < shards and shard != current[group] for group, shard in moved.items())
    read = rows_read(holders, current | moved)
    assert not moved or read * 100 <= rows_read(holders, current) * (100 - GAIN_PERCENT)


@given(active_sets, st.integers(1, 6), st.randoms())
def test_a_second_placement_moves_nothing(holders, shards, random):
    current = {group: random.randrange(shards) for group in holders}
    placed = after(holders, current, shards)

    assert moves(holders, placed, shards) == {}


@given(active_sets, st.randoms())
def test_the_order_of_groups_does_not_matter(holders, random):
    order = list(holders)
    random.shuffle(order)

    assert moves(holders, dict.fromkeys(order, 0), 3) == moves(
        {g: holders[g] for g in order}, dict.fromkeys(order, 0), 3
    )


@given(active_sets)
def test_with_shards_enough_every_broker_reads_its_own_groups_alone(holders):
    placed = after(holders, dict.fromkeys(holders, 0), len(holders))
    least = sum(len(brokers) ** 2 for brokers in holders.values())

    assert rows_read(holders, placed) * (100 - GAIN_PERCENT) <= least * 100


@pytest.mark.parametrize(
    "wrong",
    [lambda: moves({1: LEFT}, {}, 4), lambda: moves({1: LEFT}, {1: 0}, 0), lambda: moves({1: {-1}}, {1: 0}, 4)],
    ids=["no shard of a group", "no shards", "negative broker"],
)
def test_what_cannot_be_placed_is_refused(wrong):
    with pytest.raises(InvalidArgument):
        wrong()
