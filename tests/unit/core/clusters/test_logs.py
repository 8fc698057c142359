"""What came to Kafka's partitions, from their ends and sizes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.core.clusters.counters import NOTHING, Increase, Reading
from headgate.core.clusters.logs import Log, Logs
from headgate.errors import InvalidArgument

P0, P1 = ("t-partition-0", "in"), ("t-partition-1", "in")


def log(end, size, first=0, topic_id="x"):
    return Log(topic_id, first, end, size)


def came(increases):
    return {(one.broker, one.topic): tuple(one.came[:2]) for one in increases if one.total != NOTHING}


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        (log(10, 1000), log(15, 1600), (5, 600)),
        (log(10, 1000), log(15, 900, first=5), (5, 450)),  # oldest segment deleted: 5 of 10 messages of 90 B
        (log(10, 1000), log(15, 1600, first=14), (5, 600)),  # messages deleted, and their segment is still there
        (log(10, 1000), log(15, 900), (5, 300)),  # compacted: 5 of 15 of 60 B
        (log(10, 1000), log(4, 500, topic_id="y"), (4, 500)),  # made anew
        (log(10, 1000), log(4, 500, first=2, topic_id="y"), (4, 500)),
        (log(10, 1000), log(10_000, 900, first=9999), (9990, 900)),  # messages deleted, but not the segment of the last
        (log(10, 1000, topic_id=None), log(4, 500, topic_id=None), (4, 500)),  # made anew; older brokers give no ids
        (log(10, 1000), log(10, 400, first=6), None),
        (log(10, 1000), log(10, 1500), (0, 500)),  # the size is asked for after the end
        (log(10, 1000), log(8, 800), None),  # an answer that was late
        (log(10, 1000), log(12, 0, first=12), (2, 0)),
    ],
)
def test_what_came_between_two_looks(before, now, expected):
    logs = Logs()
    logs.look(1, "b", {P0: before})
    found = logs.look(2, "b", {P0: now})
    assert came(found) == ({} if expected is None else {("b", P0[0]): expected})
    assert all((one.from_us, one.at_us) == (1, 2) for one in found)


def test_the_first_look_at_a_broker_is_where_counting_begins():
    first = Logs().look(7, "b", {P0: log(10, 1000), P1: None})
    assert first == [Increase(7, 7, "b", *P0, NOTHING, Reading(10, 1000))]


def test_a_partition_that_was_there_before_is_not_new_wherever_it_turns_up():
    logs = Logs()
    logs.look(1, "a", {P0: None})  # its broker does not answer
    assert came(logs.look(2, "a", {P0: log(10, 1000)})) == {("a", P0[0]): (0, 0)}
    assert came(logs.look(3, "a", {P0: log(11, 1100)})) == {("a", P0[0]): (1, 100)}


def test_a_partition_that_is_new_is_counted_from_its_first_message():
    logs = Logs()
    logs.look(1, "a", {})
    logs.look(2, "b", {P1: None})
    assert logs.look(3, "a", {P0: log(10, 1000)}) == [Increase(1, 3, "a", *P0, Reading(10, 1000), Reading(10, 1000))]


def test_a_partition_that_moves_is_counted_once_and_leaves_its_broker():
    logs = Logs()
    logs.look(1, "a", {P0: log(10, 1000)})
    logs.look(1, "b", {P0: None})
    moved = logs.look(3, "b", {P0: log(15, 1500)})
    total = Reading(15, 1500)
    assert moved == [
        Increase(3, 3, "a", *P0, NOTHING, NOTHING),
        Increase(1, 3, "b", *P0, Reading(5, 500), total),
    ]
    assert logs.look(4, "a", {P0: None}) == []


def test_the_log_of_another_broker_may_be_larger():
    logs = Logs()
    logs.look(1, "a", {P0: log(10, 1000, first=8)})  # its oldest segment is deleted already
    logs.look(1, "b", {P0: None})
    moved = logs.look(2, "b", {P0: log(11, 9900)})
    assert came(moved) == {("b", P0[0]): (1, 900)}


def test_after_a_restart_bytes_are_no_more_than_the_log_has():
    told = Logs().look(1, "a", {P0: log(10, 1000)})
    found = Logs(told, {"a": 1}).look(2, "a", {P0: log(9_000_000_000, 1 << 30, first=8_999_999_999)})
    assert came(found) == {("a", P0[0]): (8_999_999_990, 1 << 30)}


def test_one_that_stands_still_is_told_where_it_moves_and_nowhere_else():
    logs = Logs()
    logs.look(1, "a", {P0: log(10, 1000)})
    logs.look(1, "b", {P0: None})
    assert logs.look(2, "a", {P0: log(10, 1000)}) == []
    assert [one.broker for one in logs.look(3, "b", {P0: log(10, 1000)})] == ["a", "b"]


def test_one_that_is_deleted_leaves():
    logs = Logs()
    logs.look(1, "a", {P0: log(10, 1000)})
    assert logs.look(2, "a", {}) == [Increase(2, 2, "a", *P0, NOTHING, NOTHING)]
    assert logs.look(3, "a", {}) == []


def test_one_that_is_back_goes_on():
    logs = Logs()
    logs.look(1, "a", {P0: log(10, 1000)})
    logs.look(2, "a", {})
    back = Increase(1, 3, "a", *P0, Reading(2, 200), Reading(12, 1200))
    assert logs.look(3, "a", {P0: log(12, 1200)}) == [back]


def test_it_goes_on_from_the_table():
    told = Logs().look(1, "a", {P0: log(10, 1000), P1: log(7, 70)})
    logs = Logs(told, {"a": 5})
    found = logs.look(9, "a", {P0: log(15, 1500), P1: log(3, 30)})
    assert came(found) == {("a", P0[0]): (5, 500), ("a", P1[0]): (3, 30)}
    assert {one.from_us for one in found} == {5}
    assert found[0].total == Reading(15, 1500)


def test_what_has_left_a_broker_before_a_restart_is_where_it_came_to():
    logs = Logs()
    told = [*logs.look(1, "a", {P0: log(10, 1000)}), *logs.look(1, "b", {P0: None})]
    told += logs.look(2, "b", {P0: log(12, 1200)})
    again = Logs(told, {"a": 2, "b": 2})
    assert came(again.look(3, "b", {P0: log(13, 1300)})) == {("b", P0[0]): (1, 100)}
    assert again.look(3, "a", {P0: None}) == []


def test_one_that_was_gone_before_a_restart_is_not_new():
    logs = Logs()
    told = logs.look(1, "a", {P0: log(10, 1000)}) + logs.look(2, "a", {})
    newest = {(one.broker, one.topic): one for one in told}
    assert came(Logs(newest.values(), {"a": 2}).look(3, "a", {P0: log(11, 1100)})) == {("a", P0[0]): (0, 0)}


def test_a_look_ends_after_the_one_before():
    logs = Logs()
    logs.look(2, "a", {})
    with pytest.raises(InvalidArgument, match="at_us"):
        logs.look(2, "a", {})


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.integers(0, 20), st.integers(0, 5), st.booleans(), st.booleans()),
        max_size=20,
    )
)
def test_messages_add_up_however_a_partition_moves_and_a_collector_restarts(steps):
    logs, end, first, told, leader = Logs(), 7, 0, [], "a"
    looked = {}
    for at_us, (moves_to, appended, deleted, is_restart, other_first) in enumerate([("a", 0, 0, False, False), *steps]):
        leader, end, first = moves_to, end + appended, min(first + deleted, end)
        if is_restart:
            newest = {(one.broker, one.topic): one for one in told}
            logs = Logs(newest.values(), looked)
        for broker in "ba" if other_first else "ab":
            told += logs.look(at_us, broker, {P0: log(end, 10 * (end - first), first) if broker == leader else None})
            looked[broker] = at_us
    assert sum(one.came.messages for one in told) == end - 7
    size = sum(one.came.bytes for one in told)
    assert size <= 10 * (end - 7)
    assert size == 10 * (end - 7) or first
