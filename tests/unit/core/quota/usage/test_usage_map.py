"""The usage map: every reason to drop a row, everything that removes one (resource-groups 7.1, 7.2)."""

import pytest

from headgate.core.quota.rates import RATE_MAX
from headgate.core.quota.usage.usage import Usage
from headgate.core.quota.usage.usage_map import MapParameters, Member, UsageMap
from headgate.errors import InvalidArgument, StateError
from unit.core.quota.rows import AT_MS, KEY, heartbeat, idle, known, leave, leave_all, reader, received, row


def reports_reader(**parameters):
    return reader(members=(), members_listed=False, **parameters)


@pytest.mark.parametrize(
    "wrong",
    [
        {"broker_id": None},
        {"broker_id": -1},
        {"broker_id": "1"},
        {"incarnation": True},
        {"incarnation": None},
        {"seq": 1.0},
        {"seq": -1},
        {"epoch": None},
        {"epoch": -9},
        {"published_ms": None},
        {"published_ms": "now"},
        {"group_id": None},
        {"group_id": -7},
        {"group_id": True},
        {"traffic_class": 2},
        {"traffic_class": None},
        {"traffic_class": "publish"},
        {"kind": 3},
        {"kind": None},
        {"admitted": None},
        {"admitted": (1,)},
        {"admitted": (None, 1)},
        {"admitted": (1, -1)},
        {"admitted": (1, 2.5)},
        {"offered": (-1, None)},
        {"offered": (None, True)},
        {"offered": 5},
        {"limit": (None, "10")},
        {"limit": (None, -1)},
    ],
)
def test_values_that_cannot_be_what_they_stand_for_are_invalid(wrong):
    usage_map = reader()

    assert ["invalid"] == received(usage_map, row(**wrong))
    assert ({}, {"invalid": 1}) == (usage_map.entries(), usage_map.dropped)


@pytest.mark.parametrize("at_ms", [None, -1, 1.5, True])
def test_a_row_read_at_no_time_is_invalid(at_ms):
    assert ["invalid"] == received(reader(), row(), at_ms=at_ms)


@pytest.mark.parametrize("form", [heartbeat, leave, leave_all])
def test_heartbeats_and_leaves_need_no_values(form):
    assert [None] == received(reader(), form(admitted=None, offered=(-1, None), limit=None, throttled=None))


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"epoch": 11}, None),
        ({"epoch": 12}, "future"),
        ({"published_ms": AT_MS - 2000}, None),
        ({"published_ms": AT_MS - 2001}, "stale"),
        ({"published_ms": AT_MS + 10**9}, None),
        ({"group_id": 8}, "unknown_group"),
        ({"broker_id": 3}, "not_member"),
        ({"broker_id": 2}, "old_incarnation"),
        ({"seq": 5}, "duplicate"),
        ({"seq": 4}, "reordered"),
        ({"seq": 4, "traffic_class": 1}, None),
        ({"seq": 4, "incarnation": 2}, None),
    ],
)
def test_the_first_rule_that_matches_drops_a_row_and_is_counted(values, reason):
    usage_map = reader(groups=[7])
    usage_map.join(2, Member(5), 0)
    received(usage_map, row(seq=5))

    assert [reason] == received(usage_map, row(**({"seq": 6} | values)))
    assert ({} if reason is None else {reason: 1}) == usage_map.dropped


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"admitted": None, "epoch": 99}, "invalid"),
        ({"epoch": 99, "published_ms": 0}, "future"),
        ({"published_ms": 0, "group_id": 8}, "stale"),
        ({"group_id": 8, "broker_id": 3}, "unknown_group"),
        ({"broker_id": 3, "incarnation": 0}, "not_member"),
        ({"incarnation": 0, "seq": 5}, "old_incarnation"),
    ],
)
def test_rules_are_asked_in_the_order_of_the_table(values, reason):
    usage_map = reader(groups=[7])
    received(usage_map, row(seq=5))

    assert [reason] == received(usage_map, row(**values))


@pytest.mark.parametrize(
    ("form", "reasons"),
    [
        (heartbeat, {"future": 1, "stale": 1, "not_member": 1, "old_incarnation": 1}),
        (leave_all, {"future": 1, "stale": 1, "not_member": 1, "old_incarnation": 1}),
        (leave, {"future": 1, "stale": 1, "not_member": 1, "old_incarnation": 1, "unknown_group": 1}),
    ],
)
def test_rules_hold_for_heartbeats_and_leaves_but_those_of_a_group_only_where_they_name_one(form, reasons):
    usage_map = reader(groups=[] if form is not leave else [7])
    received(
        usage_map,
        form(epoch=12),
        form(published_ms=0),
        form(broker_id=3),
        form(incarnation=0),
        *([form(group_id=9)] if form is leave else []),
    )

    assert reasons == usage_map.dropped


def test_a_dropped_row_has_no_other_effect():
    usage_map = reader()
    received(usage_map, row(seq=3))
    before = usage_map.state()

    received(usage_map, row(seq=3, epoch=10), row(seq=9, epoch=99), row(seq=9, incarnation=0), row(broker_id=9))

    assert {**before, "dropped": usage_map.state()["dropped"]} == usage_map.state()


def test_values_are_at_most_the_largest_rate_and_offered_at_least_admitted():
    usage_map = reader()
    received(usage_map, row(admitted=(10, 2**60), offered=(4, None), limit=(2**60, 0), throttled=(True, None)))

    assert Usage((10, RATE_MAX), (10, None), (RATE_MAX, 0), (True, False)) == usage_map.entries()[KEY][1].usage


def test_heartbeats_only_raise_the_covered_epoch():
    usage_map = reader()
    received(usage_map, row(seq=5), heartbeat(epoch=9, seq=5), heartbeat(epoch=8, seq=4), heartbeat(epoch=9, seq=5))

    assert ({KEY: {1: 5}}, {}) == (known(usage_map), usage_map.dropped)
    assert 9 == usage_map.members()[1].covered_epoch


def test_an_idle_row_removes_the_entry_and_its_seq_is_remembered():
    usage_map = reader()

    assert [None, None, "reordered", "duplicate", None] == received(
        usage_map, row(seq=1), idle(seq=3), row(seq=2), row(seq=3), row(seq=4, broker_id=2)
    )
    assert {KEY: {2: 4}} == known(usage_map)


def test_a_leave_removes_one_group_and_class():
    usage_map = reader()

    assert [None, None, None, "reordered"] == received(
        usage_map, row(seq=1), row(seq=1, traffic_class=1), leave(seq=3), row(seq=2)
    )
    assert {(7, 1): {1: 1}} == known(usage_map)


@pytest.mark.parametrize("group_id", [0, None])
def test_a_leave_all_removes_what_was_sent_before_it(group_id):
    usage_map = reader()

    assert [None, None, None, None, None, "duplicate", "reordered", "reordered", "duplicate", None] == received(
        usage_map,
        row(seq=1),
        row(seq=5, group_id=8),
        row(seq=1, broker_id=2),
        leave_all(seq=4, group_id=group_id),
        row(seq=6, group_id=9),
        leave_all(seq=4),
        leave_all(seq=3),
        row(seq=3, group_id=10),
        row(seq=4, group_id=10),
        row(seq=7),
    )
    assert {(8, 0): {1: 5}, (9, 0): {1: 6}, KEY: {1: 7, 2: 1}} == known(usage_map)


def test_a_leave_all_is_compared_with_leave_alls_alone():
    usage_map = reader()

    assert [None, None] == received(usage_map, row(seq=9), leave_all(seq=2))
    assert {KEY: {1: 9}} == known(usage_map)


def test_a_lost_member_is_removed_at_once_and_its_rows_are_dropped_until_it_is_up_again():
    usage_map = reader()
    received(usage_map, row(seq=4), row(broker_id=2), heartbeat())
    usage_map.lose(1, AT_MS)

    assert ["not_member", "not_member"] == received(usage_map, row(seq=5), heartbeat())
    assert {KEY: {2: 1}} == known(usage_map)

    usage_map.join(1, Member(1), AT_MS)

    assert ["duplicate", None] == received(usage_map, row(seq=4), row(seq=5))
    assert {KEY: {1: 5, 2: 1}} == known(usage_map)
    assert usage_map.members()[1].covered_epoch is None


def test_a_member_that_joined_with_a_higher_incarnation_begins_with_nothing():
    usage_map = reader()
    received(usage_map, row(seq=4), heartbeat())
    usage_map.join(1, Member(2), AT_MS)

    assert {} == known(usage_map)
    assert ["old_incarnation", None] == received(usage_map, row(seq=5), row(seq=1, incarnation=2))


@pytest.mark.parametrize("form", [row, idle, leave, leave_all, heartbeat])
def test_a_higher_incarnation_removes_everything_of_the_older_one(form):
    usage_map = reader()
    received(usage_map, row(seq=9, group_id=8), row(seq=9, traffic_class=1), heartbeat(epoch=9))
    received(usage_map, form(seq=2, incarnation=2, epoch=10))

    assert {KEY: {1: 2}} if form is row else {} == known(usage_map)
    assert [None] == received(usage_map, row(seq=1, incarnation=2, group_id=5)) or form is leave_all


def test_a_member_stays_with_the_highest_incarnation_seen():
    usage_map = reader()
    received(usage_map, row(incarnation=3))
    usage_map.join(1, Member(2), AT_MS)

    assert ["old_incarnation"] == received(usage_map, row(seq=2, incarnation=2))
    assert {KEY: {1: 1}} == known(usage_map)


def test_the_list_of_members_is_followed_as_a_whole():
    usage_map = reader(members=(1, 2))
    received(usage_map, row(), row(broker_id=2))
    usage_map.set_members({2: Member(1, 5), 3: Member(1)}, AT_MS)

    assert {2: (5, 0), 3: (1, 10)} == {
        broker_id: (broker.weight, broker.joined_epoch) for broker_id, broker in usage_map.members().items()
    }
    assert {KEY: {2: 1}} == known(usage_map)


def test_while_a_table_lists_the_members_nothing_expires():
    usage_map = reader()
    received(usage_map, row())
    usage_map.expire(10**12)

    assert {KEY: {1: 1}} == known(usage_map)


def test_without_a_table_whoever_reports_is_a_member_with_the_weight_of_its_rows():
    usage_map = reports_reader()
    usage_map.set_members({9: Member(1)}, AT_MS)
    received(
        usage_map, row(weight=3), heartbeat(broker_id=2), row(broker_id=3, weight=0), row(broker_id=4, weight=None)
    )

    assert {1: 3, 2: 1, 3: 1, 4: 1} == {broker_id: broker.weight for broker_id, broker in usage_map.members().items()}
    usage_map.lose(1, AT_MS)
    assert 4 == len(usage_map.members())


@pytest.mark.parametrize(("suppress_rounds", "expiry_ms"), [(5, 10_000), (1, 2000), (0, 2000), (-1, 2000)])
def test_without_a_table_a_broker_expires_after_its_last_row_or_heartbeat(suppress_rounds, expiry_ms):
    usage_map = reports_reader(suppress_rounds=suppress_rounds, stale_ms=10**6)
    received(usage_map, row(seq=1), row(broker_id=2))
    received(usage_map, heartbeat(), at_ms=AT_MS + 500)
    received(usage_map, row(seq=1), at_ms=AT_MS + 900)

    usage_map.expire(AT_MS + 500 + expiry_ms - 1)
    assert ({KEY: {1: 1}}, [1]) == (known(usage_map), list(usage_map.members()))

    usage_map.expire(AT_MS + 500 + expiry_ms)
    assert ({}, []) == (known(usage_map), list(usage_map.members()))


def test_expiry_comes_before_the_message_and_leaves_seqs_and_incarnations():
    usage_map = reports_reader(stale_ms=10**6)
    received(usage_map, row(seq=4, incarnation=2))

    assert ["old_incarnation", "duplicate"] == received(
        usage_map, row(seq=5), row(seq=4, incarnation=2), at_ms=AT_MS + 10_000
    )
    assert {} == known(usage_map)


def test_without_a_table_a_leave_all_ends_the_membership_at_once_and_a_later_row_begins_one():
    usage_map = reports_reader()
    received(usage_map, row(seq=1), leave_all(seq=3))
    assert [] == list(usage_map.members())

    received(usage_map, heartbeat(seq=2))
    assert [] == list(usage_map.members())

    received(usage_map, heartbeat(seq=4))
    assert [1] == list(usage_map.members())


def test_without_a_table_a_leave_all_that_comes_late_ends_nothing():
    usage_map = reports_reader()
    received(usage_map, row(seq=4), leave_all(seq=3))

    assert ([1], {KEY: {1: 4}}) == (list(usage_map.members()), known(usage_map))


def test_groups_that_are_gone_are_dropped():
    usage_map = reader()
    received(usage_map, row(), row(group_id=8))
    usage_map.set_groups([8, 9])

    assert {(8, 0): {1: 1}} == known(usage_map)
    assert ["unknown_group"] == received(usage_map, row(seq=2))


def test_what_is_kept_of_steady_usage_is_bounded():
    usage_map = reader(stale_ms=10**9)
    for epoch in range(9, 500):
        received(usage_map, row(seq=epoch, epoch=epoch), at_ms=epoch * 1000 + 1100)

    (history,) = usage_map.members()[1].histories.values()
    assert 7 >= len(history._rows)
    assert 495 == history.as_of(495).row.epoch


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: MapParameters(epoch_ms=0),
        lambda: MapParameters(stale_ms=-1),
        lambda: MapParameters(max_staleness_rounds=0),
        lambda: MapParameters(linger_rounds=-1),
        lambda: MapParameters(suppress_rounds=None),
        lambda: reader().join(-1, Member(1), 0),
        lambda: reader().join(1, Member(None), 0),
        lambda: reader().join(1, Member(1, 0), 0),
        lambda: reader().expire(-1),
    ],
)
def test_wrong_arguments_are_refused(wrong):
    with pytest.raises(InvalidArgument):
        wrong()


def test_state_of_other_epochs_or_another_version_is_refused():
    state = reader().state()

    with pytest.raises(StateError, match="epochs of 1000 ms"):
        UsageMap.from_state(state, MapParameters(epoch_ms=500))
    with pytest.raises(StateError, match="unknown"):
        UsageMap.from_state({**state, "more": 1}, MapParameters())
