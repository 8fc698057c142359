"""The view as of an epoch: rows, demand, who is missing, who is active, which epoch (resource-groups 7.3)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.core.quota.evaluation.cell_view import CellMember, CellRow
from headgate.core.quota.evaluation.view import active_members, cell_view, choose_epoch, missing_members, newest_view
from headgate.core.quota.usage.usage_map import Member
from unit.core.quota.rows import KEY, heartbeat, idle, leave, leave_all, reader, received, row

LATER = 100_000


def busy(seq, epoch, **values):
    return row(seq, epoch, **values)


def later_reader(*rows, **parameters):
    usage_map = reader(**{"stale_ms": 10**9} | parameters)
    assert {None} >= set(received(usage_map, *rows, at_ms=LATER))
    return usage_map


def rows_at(usage_map, epoch, dimension=0):
    return {
        member.broker_id: None if member.row is None else (member.row.epoch, member.row.admitted)
        for member in cell_view(usage_map, KEY, dimension, epoch).members
    }


def test_a_view_holds_every_member_with_its_row_at_the_epoch_and_newer_rows_are_not_seen():
    usage_map = later_reader(
        busy(1, 97, limit=(50, None), admitted=(10, 1000)),
        busy(2, 99, admitted=(90, 9000)),
        heartbeat(99, seq=2),
        heartbeat(98, broker_id=2),
    )
    usage_map.join(2, Member(1, 4), LATER)

    assert (
        CellMember(1, 1, 98, missing=False, active=True, row=CellRow(97, 10, 10, 50, idle=False)),
        CellMember(2, 4, 98, missing=False, active=False, row=None),
    ) == cell_view(usage_map, KEY, 0, 98).members
    assert (99, 9000, 9000, None, False) == (
        (found := cell_view(usage_map, KEY, 1, 99).members[0].row).epoch,
        found.admitted,
        found.demand,
        found.limit,
        found.idle,
    )


def test_within_an_epoch_the_largest_seq_counts():
    usage_map = later_reader(busy(1, 99, admitted=(1, 1)), busy(2, 99, admitted=(2, 2)), busy(3, 99, admitted=(3, 3)))

    assert {1: (99, 3), 2: None} == rows_at(usage_map, 99)


def test_epochs_may_come_out_of_order_as_after_an_early_row_before_the_close():
    usage_map = later_reader(busy(1, 98, admitted=(1, 1)), busy(2, 100, admitted=(2, 2)), busy(3, 99, admitted=(3, 3)))

    assert [(98, 1), (99, 3), (100, 2)] == [rows_at(usage_map, epoch)[1] for epoch in (98, 99, 100)]


@pytest.mark.parametrize(
    ("values", "demands"),
    [
        ({"admitted": (10, 1000)}, [10, 1000]),
        ({"admitted": (10, 1000), "offered": (15, None)}, [15, 1000]),
        ({"admitted": (10, 1000), "throttled": (True, False)}, [None, 1000]),
        ({"admitted": (10, 1000), "offered": (15, None), "throttled": (True, True)}, [15, None]),
        ({"admitted": (0, 0), "throttled": (False, True)}, [0, None]),
        ({"admitted": (0, 0), "offered": (0, None)}, [0, 0]),
    ],
)
def test_demand_is_what_was_offered_or_unbounded_where_that_is_hidden_and_something_waited(values, demands):
    usage_map = later_reader(row(1, 99, **values))

    assert demands == [cell_view(usage_map, KEY, dimension, 99).members[0].row.demand for dimension in (0, 1)]


@pytest.mark.parametrize(
    ("rows", "epoch", "covered"),
    [
        ([], 99, -1),
        ([busy(1, 97)], 99, 97),
        ([busy(1, 97), heartbeat(96)], 99, 97),
        ([busy(1, 97), heartbeat(98)], 99, 98),
        ([busy(1, 97), heartbeat(101)], 99, 99),
        ([busy(1, 98)], 97, -1),
        ([busy(1, 97, group_id=8)], 99, -1),
    ],
)
def test_rows_cover_their_epoch_for_their_cell_and_heartbeats_everything_up_to_theirs(rows, epoch, covered):
    assert covered == cell_view(later_reader(*rows), KEY, 0, epoch).members[0].covered_epoch


def test_who_was_never_heard_is_covered_up_to_the_epoch_before_it_joined():
    usage_map = reader(members=())
    usage_map.join(1, Member(1), 42_500)

    assert 41 == cell_view(usage_map, KEY, 0, 99).members[0].covered_epoch


def test_a_member_is_missing_without_a_heartbeat_for_the_epoch_or_later():
    usage_map = later_reader(heartbeat(98, 1), heartbeat(99, 2), busy(1, 100, broker_id=3), members=(1, 2, 3, 4))

    assert [[3, 4], [1, 3, 4], [1, 2, 3, 4]] == [missing_members(usage_map, epoch) for epoch in (98, 99, 100)]


def newcomer(joined, *rows):
    """Brokers 1 and 2 reported up to epoch 99, broker 3 joins in `joined` and sends `rows`."""
    usage_map = later_reader(heartbeat(99, 1), heartbeat(99, 2))
    usage_map.join(3, Member(1), joined * 1000)
    received(usage_map, *rows, at_ms=LATER)
    return usage_map


@pytest.mark.parametrize(
    ("joined", "rows", "missing"),
    [
        (98, [], [[], [3], [3]]),
        (99, [], [[], [], [3]]),
        (100, [], [[], [], []]),
        (100, [busy(1, 100, broker_id=3)], [[], [], []]),
        (100, [heartbeat(97, 3)], [[], [3], [3]]),
        (98, [heartbeat(98, 3)], [[], [], [3]]),
    ],
)
def test_a_member_never_heard_is_missing_from_the_epoch_in_which_it_joined_on_not_before(joined, rows, missing):
    usage_map = newcomer(joined, *rows)

    assert missing == [missing_members(usage_map, epoch) for epoch in (97, 98, 99)]
    assert missing == [
        [member.broker_id for member in cell_view(usage_map, KEY, 0, epoch).members if member.missing]
        for epoch in (97, 98, 99)
    ]


@pytest.mark.parametrize(("joined", "epoch"), [(96, 97), (98, 97), (99, 98), (100, 99), (101, 99)])
def test_nobody_waits_for_reports_of_before_a_member_joined(joined, epoch):
    assert epoch == choose_epoch(newcomer(joined), 1, 100)


def test_a_broker_whose_new_life_is_unheard_is_missing_from_its_restart_on():
    usage_map = newcomer(90, heartbeat(99, 3))
    usage_map.join(3, Member(2), 99_000)

    assert [[], [3]] == [missing_members(usage_map, epoch) for epoch in (98, 99)]


@given(st.dictionaries(st.integers(1, 4), st.integers(90, 101)), st.integers(90, 103), st.integers(98, 102))
def test_who_joins_and_says_nothing_changes_no_view_of_an_epoch_before(covered, joined, current_epoch):
    """Property: neither the epoch chosen nor who is missing, as long as that epoch is older than the newcomer."""
    rows = [heartbeat(upto, broker_id) for broker_id, upto in covered.items()]
    before, after = (later_reader(*rows, members=(1, 2, 3, 4)) for _ in range(2))
    after.join(5, Member(1), joined * 1000)
    chosen = choose_epoch(before, 1, current_epoch)

    if chosen < joined:
        assert (chosen, missing_members(before, chosen)) == (
            choose_epoch(after, 1, current_epoch),
            missing_members(after, chosen),
        )
    else:
        assert max(current_epoch - 3, joined - 1) == choose_epoch(after, 1, current_epoch)


@pytest.mark.parametrize(
    ("covered", "epoch"),
    [
        ({}, 97),
        ({2: 99, 3: 99}, 99),
        ({2: 101, 3: 101}, 99),
        ({2: 98, 3: 99}, 98),
        ({2: 98}, 97),
        ({2: 90, 3: 99}, 97),
        ({1: 1, 2: 99, 3: 99}, 99),
    ],
)
def test_the_epoch_is_the_newest_closed_one_that_all_others_cover_but_not_too_old(covered, epoch):
    usage_map = later_reader(*(heartbeat(upto, broker_id) for broker_id, upto in covered.items()), members=(1, 2, 3))

    assert epoch == choose_epoch(usage_map, 1, 100)


def test_a_broker_alone_takes_the_last_closed_epoch():
    assert 99 == choose_epoch(reader(members=(1,)), 1, 100)


@pytest.mark.parametrize(
    ("rows", "active"),
    [
        ([busy(1, 90), heartbeat(99)], True),
        ([idle(1, 90), heartbeat(99)], False),
        ([heartbeat(99)], False),
        ([busy(1, 80), idle(2, 95), heartbeat(99)], True),
        ([busy(1, 80), idle(2, 94), heartbeat(99)], False),
        ([busy(1, 80), idle(2, 94), heartbeat(98)], True),
        ([busy(1, 80), idle(2, 94)], True),
        ([busy(1, 80), idle(2, 94), idle(3, 97), heartbeat(99)], False),
        ([busy(1, 80), idle(2, 90), busy(3, 96), idle(4, 97), heartbeat(99)], True),
        ([busy(1, 96), idle(2, 96), heartbeat(99)], True),
        ([idle(1, 80), busy(2, 95), idle(3, 95), idle(4, 95), heartbeat(99)], True),
        ([busy(1, 99), leave(2, 99), heartbeat(99)], False),
        ([busy(1, 98), idle(2, 99), leave_all(3, 99), heartbeat(99)], False),
        ([busy(1, 80), idle(2, 95), busy(3, 100), heartbeat(99)], True),
    ],
)
def test_who_uses_the_group_is_active_and_lingers_for_some_epochs_after(rows, active):
    usage_map = later_reader(*rows, linger_rounds=5)

    assert ([1] if active else []) == active_members(usage_map, KEY, 99)


def test_lingering_outlives_the_rows_that_are_kept():
    usage_map = reader()
    for epoch in range(100, 165):
        form = busy if epoch == 100 else idle
        received(
            usage_map,
            form(epoch, epoch, published_ms=epoch * 1000),
            heartbeat(epoch, published_ms=epoch * 1000),
            at_ms=epoch * 1000,
        )

    assert [[1], []] == [active_members(usage_map, KEY, epoch) for epoch in (160, 161)]
    assert 7 >= len(usage_map.members()[1].histories[KEY]._rows)


def test_rows_that_are_kept_reach_back_over_the_staleness_and_two_epochs_more():
    usage_map = reader(max_staleness_rounds=3)
    for epoch in range(50, 101):
        received(usage_map, busy(epoch, epoch, published_ms=LATER), at_ms=epoch * 1000 + 1000)

    assert [96, 97, 98, 99, 100] == [rows_at(usage_map, epoch)[1][0] for epoch in range(96, 101)]


def test_an_extra_evaluation_sees_the_newest_rows_and_is_gated_unless_one_job_sees_everybody():
    usage_map = later_reader(busy(1, 100), heartbeat(98), busy(1, 97, broker_id=2))
    gated, complete = (newest_view(usage_map, KEY, 0, 100, one_job=one_job) for one_job in (False, True))

    assert (True, False) == (gated.raises_gated, complete.raises_gated)
    assert ([True, True], [False, False]) == (
        [member.missing for member in gated.members],
        [member.missing for member in complete.members],
    )
    assert [100, 97] == [member.row.epoch for member in complete.members] == [m.row.epoch for m in gated.members]
    assert [100, 100] == [member.covered_epoch for member in complete.members]
