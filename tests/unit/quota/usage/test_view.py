"""Who uses what of a quota: reports hold until something ends them, and what throttles is told from what suffers."""

import pytest

from headgate.core.quota.attachments import AttachedTo
from headgate.core.quota.config_tables import Attachment, ConfigTables
from headgate.core.quota.evaluation.step_parameters import CellLimit, Reason
from headgate.core.quota.groups import ResourceGroup
from headgate.core.quota.usage.usage import NOTHING, Usage
from headgate.quota.tables.rg_limits import LimitRow
from headgate.quota.tables.rg_members import MemberRow
from headgate.quota.usage.view import Report, brokers_of, cells_of, in_force

GOLD = ResourceGroup(1, "gold", (1000, None, None, 0), version=1)
CONFIG = ConfigTables.of([GOLD], [Attachment(AttachedTo.TENANT, "acme", "gold", 2)])
BUSY = Usage((10, 100), (12, 90), (20, None), (True, False))


def report(broker=7, epoch=5, *, life=1, seq=5, group=1, usage=BUSY, kind=0, traffic_class=0, version=2):
    return Report(epoch, broker, life, seq, group, traffic_class, kind, usage, 3, version)


def heartbeat(broker=7, epoch=5, **values):
    return report(broker, epoch, group=0, usage=NOTHING, **values)


def member(broker=7, state="up", life=1):
    return MemberRow(broker, f"b-{broker}", life, 1, state, 1)


def held(*reports, members=(), states_known=True):
    brokers = brokers_of(
        reports, {row.broker_id: row for row in members}, 9, silent_rounds=8, states_known=states_known
    )
    return [(row.broker_id, row.group_id, row.traffic_class) for row in in_force(reports, brokers, 9)]


@pytest.mark.parametrize(
    ("reports", "expected"),
    [
        ([report(), heartbeat(epoch=9)], [(7, 1, 0)]),
        ([report(kind=2, usage=NOTHING)], []),
        ([report(seq=5), heartbeat(seq=6, kind=2)], []),
        ([report(seq=5), heartbeat(epoch=9, seq=6, kind=2)], [(7, 1, 0)]),
        ([report(seq=7), heartbeat(seq=6, kind=2)], [(7, 1, 0)]),
        ([report(seq=5), heartbeat(seq=6, kind=2), heartbeat(seq=7)], []),
        ([report(life=1), heartbeat(life=2, seq=1)], []),
        ([report(life=2, seq=1), heartbeat(life=1, seq=6, kind=2)], [(7, 1, 0)]),
        ([report(traffic_class=5)], []),
        ([report(2), report(1, traffic_class=1), report(1)], [(1, 1, 0), (2, 1, 0), (1, 1, 1)]),
    ],
    ids=[
        "suppressed",
        "leave",
        "leave-all",
        "leaves-in-this-epoch",
        "after",
        "before",
        "new-life",
        "old-leave",
        "no-class",
        "order",
    ],
)
def test_a_report_holds_until_a_leave_or_a_newer_life(reports, expected):
    assert expected == held(*reports)


@pytest.mark.parametrize(
    ("row", "states_known", "expected"),
    [
        (member(), True, 1),
        (member(state="lost"), True, 0),
        (member(state="left"), True, 0),
        (member(life=2), True, 0),
        (member(state="left", life=2), False, 1),
    ],
)
def test_what_is_no_member_any_more_uses_nothing_where_its_state_is_known(row, states_known, expected):
    assert expected == len(held(report(), members=[row], states_known=states_known))


def test_the_age_is_that_of_the_newest_row_or_heartbeat_of_the_present_life():
    rows = [report(epoch=4), heartbeat(epoch=7), report(8, epoch=9, life=1), heartbeat(8, epoch=3, life=2)]
    brokers = brokers_of(rows, {1: member(1)}, 9, silent_rounds=8)

    assert {1: None, 7: 2, 8: 6} == {broker_id: broker.age for broker_id, broker in brokers.items()}
    assert ["b-1", "broker 7", "broker 8"] == [broker.name for broker in brokers.values()]


def cells(*reports, limits=(), config=CONFIG):
    brokers = brokers_of(reports, {}, 9, silent_rounds=8)
    return cells_of(in_force(reports, brokers, 9), brokers, limits, config, {1: "gold", 4: "gone"})


def test_quotas_are_listed_used_or_not_and_use_without_a_quota_too():
    found = {(cell.group, cell.traffic_class, cell.dimension): cell.quota for cell in cells(report(group=4))}

    expected = {("gold", 0, 0): 1000, ("gold", 1, 1): 0, ("gone", 0, 0): None, ("gone", 0, 1): None}
    assert expected == found


def test_throttled_cells_come_first_then_the_fullest():
    calm = Usage((900, 5))
    config = CONFIG.written(ResourceGroup(2, "half", (10, None, None, None), version=3))
    config = config.written(Attachment(AttachedTo.TENANT, "b", "half", 4))
    order = cells(report(group=2), report(8, group=1, usage=calm), config=config)

    assert [("group 2", 0), ("gold", 0), ("gold", 1)] == [(cell.group, cell.dimension) for cell in order]


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (Usage((10, 0), (12, None)), (12, 12)),
        (Usage((10, 0), (8, None)), (10, 10)),
        (Usage((10, 0)), (10, 10)),
        (Usage((10, 0), throttled=(True, False)), (None, 10)),
    ],
)
def test_demand_is_what_was_offered_or_unbounded_where_that_is_not_seen(usage, expected):
    cell = cells(report(usage=usage))[0]

    assert expected == (cell.demand, cell.demand_at_least)
    assert expected[0] == cell.parts[0].demand


@pytest.mark.parametrize(
    ("offered", "limit", "safe", "reason", "expected"),
    [
        (600, 400, 500, Reason.GATED, "victim"),
        (600, 499, 500, Reason.TARGET, None),
        (600, 700, 500, Reason.TARGET, "burst"),
        (900, 700, 500, Reason.TARGET, None),
        (600, 25, 0, Reason.ENTRY, "victim"),
        (600, 0, 0, Reason.BLOCKED, None),
        (None, 400, 500, Reason.FENCED, "victim"),
        (600, None, None, Reason.UNSET, None),
    ],
)
def test_below_its_part_is_a_victim_and_within_its_limit_a_burst(offered, limit, safe, reason, expected):
    usage = Usage((10, 0), (offered, None), (5, None), (True, False))
    row = LimitRow(5, 7, 1, 0, 0, CellLimit(limit, limit, safe, offered, 0, 0, 1, reason))
    part = cells(report(usage=usage), limits=[row])[0].parts[0]

    assert expected == ("victim" if part.is_victim else "burst" if part.is_burst else None)
    assert limit == part.limit


def test_without_a_row_of_limits_the_report_says_what_was_in_force():
    assert 20 == cells(report())[0].parts[0].limit


@pytest.mark.parametrize(("heard", "silent"), [(9, False), (2, False), (1, True), (None, False)])
def test_a_broker_is_silent_once_it_was_not_heard_of_for_so_many_epochs(heard, silent):
    reports = [] if heard is None else [heartbeat(epoch=heard)]
    brokers = brokers_of(reports, {7: member(7)}, 9, silent_rounds=8)

    assert silent == brokers[7].silent
