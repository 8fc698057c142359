"""Members: the id of a name stays, every life is newer than the last, and writers at once lose nothing."""

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from headgate.core.quota.usage.usage_map import Member
from headgate.errors import TableError
from headgate.quota.tables.delta import opened
from headgate.quota.tables.rg_members import MemberRow, MemberTable, members_up
from headgate.quota.tables.schemas import RG_MEMBERS
from unit.quota.places import tables


@pytest.fixture
def members(tmp_path):
    return tables(tmp_path).members


def test_brokers_that_join_are_up_each_with_its_own_id(members):
    joined = members.join({"b-1": 2, "b-0": 1}, 1000)

    assert {
        "b-0": MemberRow(0, "b-0", 1000, 1, "up", 1),
        "b-1": MemberRow(1, "b-1", 1000, 2, "up", 1),
    } == joined
    assert {0: Member(1000, 1), 1: Member(1000, 2)} == members_up(members.read())


@pytest.mark.parametrize(("clock_ms", "incarnation"), [(2000, 2000), (1000, 1001), (5, 1001)])
def test_a_restart_keeps_the_id_and_begins_a_newer_life(members, clock_ms, incarnation):
    members.join({"a": 1, "b": 1}, 1000)

    again = members.join({"b": 5}, clock_ms)["b"]
    assert (1, incarnation, 5) == (again.broker_id, again.incarnation, again.weight)
    assert Member(incarnation, 5) == members_up(members.read())[1]


@pytest.mark.parametrize(("end", "state"), [("leave", "left"), ("lose", "lost")])
def test_a_broker_that_left_or_was_lost_is_no_member(members, end, state):
    members.join({"a": 1, "b": 1}, 1000)
    getattr(members, end)({0: 1000})

    assert {1: Member(1000, 1)} == members_up(members.read())
    assert MemberRow(0, "a", 1000, 1, state, 2) == members.read()[0]


def test_who_began_another_life_is_not_taken_for_lost(members):
    members.join({"a": 1}, 1000)
    members.join({"a": 1}, 2000)
    assert [] == members.lose({0: 1000, 7: 1})

    assert {0: Member(2000, 1)} == members_up(members.read())


def test_members_that_nobody_changed_are_not_read_again(members):
    members.join({"a": 1}, 1000)

    assert members.read() is members.read()


def test_brokers_that_join_at_once_get_different_ids(tmp_path):
    tables(tmp_path)

    def join(name):
        return MemberTable(opened(f"{tmp_path}/rg_members", RG_MEMBERS, None)).join({name: 1}, 1000)[name]

    with ThreadPoolExecutor(4) as pool:
        joined = list(pool.map(join, "abcd"))

    assert {0, 1, 2, 3} == {row.broker_id for row in joined}
    assert {1, 2, 3, 4} == {row.version for row in joined}


@pytest.mark.parametrize(
    ("column", "value", "allowed"),
    [
        ("weight", 0, "1 to 1000"),
        ("weight", 1001, "1 to 1000"),
        ("incarnation", -1, "0 and above"),
        ("state", "gone", "up, lost, left"),
    ],
)
def test_a_row_that_people_wrote_wrongly_is_told(tmp_path, members, column, value, allowed):
    row = {"broker_id": 0, "name": "b-0", "incarnation": 5, "weight": 1, "state": "up", "version": 1}
    table = opened(f"{tmp_path}/rg_members", RG_MEMBERS, None)
    table.append_pinned(pa.Table.from_pylist([row | {column: value}], RG_MEMBERS.schema))

    with pytest.raises(
        TableError, match=f"^rg_members has a row for the broker 'b-0' .* with {column} .*, allowed: {allowed}; delete"
    ):
        members.read()
