"""The log of a job of one broker says who shares the quotas, and names who never used any."""

import pytest

from headgate.core.quota.usage.broker_usage import BrokerUsage
from headgate.quota.member_log import SHOWN_NAMES, UNUSED_AFTER_MS, MemberLog
from headgate.quota.tables.rg_members import MemberRow


@pytest.fixture
def told(caplog):
    """The lines since the last call."""

    def lines():
        found = [record.getMessage() for record in caplog.records]
        caplog.clear()
        return found

    return lines


def listed(**states):
    """Rows of rg_members by name: a state, or a state and an incarnation."""
    rows = {}
    for id_, (name, said) in enumerate(states.items()):
        state, incarnation = said if isinstance(said, tuple) else (said, 1)
        rows[id_] = MemberRow(id_, name.replace("_", "-"), incarnation, 1, state, 1)
    return rows


def heard(rows, *used):
    """What was heard of those that are up. used: names of those that had traffic of a group."""
    members = {}
    for id_, row in rows.items():
        if row.state == "up":
            members[id_] = BrokerUsage(row.incarnation, 0)
            if row.name in used:
                members[id_].history((1, 0))
    return members


def test_members_are_named_at_the_start_and_at_each_change_alone(told):
    log = MemberLog("b1")
    steps = [
        listed(b1="up"),
        listed(b1="up"),
        listed(b1="up", b2="up", b3="up"),
        listed(b1="up", b2="up", b3=("up", 2)),
        listed(b1="up", b2="left", b3="lost"),
    ]
    lines = []
    for rows in steps:
        log.take(rows, heard(rows, "b1", "b2", "b3"), (), 0)
        lines.append(told())

    alone = "quotas are shared by 1 member, b1 (this job), which has all of them until jobs of other brokers join"
    three = "quotas are shared by 3 members: b1 (this job), b2, b3"
    assert [
        [f"{alone}: they need the same --output"],
        [],
        [f"b2 has joined; b3 has joined; {three}"],
        [f"b3 has started anew; {three}"],
        [f"b2 has left; b3 is lost; {alone}: they need the same --output"],
    ] == lines


def test_of_many_members_the_first_are_named(told):
    rows = listed(**{f"b{number:03}": "up" for number in range(SHOWN_NAMES + 7)})
    MemberLog("b000").take(rows, heard(rows, *[row.name for row in rows.values()]), (), 0)

    assert told()[0].endswith(", b018, b019 and 7 more")


def test_a_member_without_any_traffic_for_a_minute_is_named_once_in_each_life_with_what_may_be_meant(told):
    log = MemberLog("broker-a")
    lines = []
    for at_ms, life in (
        (5000, 1),
        (UNUSED_AFTER_MS + 4999, 1),
        (UNUSED_AFTER_MS + 5000, 1),
        (900_000, 1),
        (900_001, 2),
    ):
        rows = listed(broker_a="up", brokr_c=("up", life))
        log.take(rows, heard(rows, "broker-a"), {"broker-a", "broker-c"}, at_ms)
        lines.append([line for line in told() if "reported" in line])

    line = (
        "brokr-c is a member and has reported no traffic of any group in 60 s; the brokers in this job's input are "
        "broker-a, broker-c. If brokr-c is a slip, stop its job and start it with --broker broker-c"
    )
    assert [[], [], [line], [], []] == lines


MEANT = "If b2 is a slip, stop its job and start it with the --broker that is meant"
UNUSED = "b2 (this job) is a member and has reported no traffic of any group in 60 s"


@pytest.mark.parametrize(
    ("in_input", "expected"),
    [
        ({"b2"}, UNUSED),
        (set(), UNUSED),
        ({"kafka"}, f"{UNUSED}; the brokers in this job's input are kafka. {MEANT}"),
    ],
    ids=["it has rows, of no group", "nothing came", "nothing like it came"],
)
def test_who_has_rows_of_no_group_is_no_slip(told, in_input, expected):
    log, rows = MemberLog("b2"), listed(b2="up")
    for at_ms in (0, UNUSED_AFTER_MS):
        log.take(rows, heard(rows), in_input, at_ms)

    assert expected == told()[-1]
