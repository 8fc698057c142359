"""Conditions of connections and IO threads, step by step (rate-limiters 10)."""

import pytest

from headgate.conformance.oracles.connection_conditions import ConnectionConditions
from headgate.core.connections.connection_limits import ConditionLimits
from headgate.core.connections.connection_rules import Connection, ConnectionRules, IoThread
from headgate.core.numbers import MAX
from headgate.core.publish.throttle_tracker import ThrottleType
from headgate.errors import InvalidArgument

SECOND = 1_000_000_000
MS = 1_000_000
MIB = 1_048_576
REQUESTS, THREAD, _, _, _, BUFFER, COOLDOWN = ThrottleType
COOLING = {"pause_if_unwritable": True, "cooldown_ms": 1000, "cooldown_permits": 2, "cooldown_period_ms": 100}


def conditions_of(**limits):
    return ConnectionConditions({"a": 0, "b": 0, "c": 1}, created_ns=0, limits=ConditionLimits(**limits))


def test_pending_requests_mark_at_the_limit_and_unmark_at_half_of_it():
    conditions = conditions_of(max_pending_publish_requests=4)
    up = [conditions.start("a", 0, 0) for _ in range(5)]
    down = [conditions.finish("a", 0, 0) for _ in range(5)]

    assert up == [[], [], [], [REQUESTS], [REQUESTS]]
    assert down == [[REQUESTS], [REQUESTS], [], [], []]


def test_a_limit_of_one_request_unmarks_at_none():
    conditions = conditions_of(max_pending_publish_requests=1)

    assert (conditions.start("a", 0, 0), conditions.finish("a", 0, 0)) == ([REQUESTS], [])


def test_bytes_above_the_thread_limit_hold_every_connection_of_the_thread():
    conditions = conditions_of(max_publish_buffer_mib=2, io_threads=2)

    assert conditions.start("a", MIB, 0) == []
    assert conditions.start("a", 1, 0) == [THREAD]
    assert [conditions.throttled(name, 0) for name in "abc"] == [[THREAD], [THREAD], []]
    assert conditions.join("d", 0, 0) == []
    assert conditions.start("d", 5, 0) == []
    conditions.finish("d", 5, 0)
    assert conditions.finish("a", 1, 0) == [THREAD]
    conditions.start("b", 0, 0)
    assert conditions.finish("a", MIB, 0) == []
    assert [conditions.throttled(name, 0) for name in "abcd"] == [[], [], [], []]


def test_the_limit_divides_the_buffer_among_the_threads():
    assert ConditionLimits(max_publish_buffer_mib=1, io_threads=3).thread_limit_bytes == MIB // 3
    assert ConditionLimits(max_publish_buffer_mib=0, io_threads=3).thread_limit_bytes is None


def test_an_unwritable_buffer_holds_reads_until_it_is_writable():
    conditions = conditions_of(**COOLING)

    assert conditions.writable("a", False, 0) == [BUFFER]
    assert conditions.writable("a", False, 0) == [BUFFER]
    assert conditions.auto_read("a", 0) is False
    assert conditions.writable("a", True, 0) == []
    assert conditions.metrics("a", 0) == {"paused": 1, "resumed": 1, "throttled_connections": 0}


def test_commands_in_a_cooldown_take_permits_of_a_window():
    conditions = conditions_of(**COOLING)
    conditions.advance(SECOND)
    conditions.writable("a", True, SECOND)
    steps = [
        (SECOND, "PING", []),
        (SECOND, "SEND", []),
        (SECOND, "SEND", []),
        (SECOND, "PONG", []),
        (SECOND + 1, "SEND", [COOLDOWN]),
        (SECOND + 100 * MS, "SEND", [COOLDOWN]),
        (SECOND + 100 * MS + 1, "SEND", []),
        (SECOND + 100 * MS + 1, "SEND", []),
        (SECOND + 100 * MS + 1, "SEND", [COOLDOWN]),
        (SECOND + 100 * MS + 2, "PING", [COOLDOWN]),
        (SECOND + 200 * MS + 1, "PING", []),
        (3 * SECOND, "SEND", []),
        (3 * SECOND, "SEND", []),
        (3 * SECOND, "SEND", []),
    ]
    for now_ns, command, marked in steps:
        assert conditions.command("a", command, now_ns) == marked


@pytest.mark.parametrize("limits", [{"pause_if_unwritable": False}, {**COOLING, "cooldown_ms": 0}])
def test_without_a_cooldown_commands_are_free(limits):
    conditions = conditions_of(**limits)
    conditions.writable("a", True, 0)

    assert [conditions.command("a", "SEND", 0) for _ in range(9)] == [[]] * 9


def test_a_closed_connection_is_counted_but_not_read():
    conditions = conditions_of(max_pending_publish_requests=1)
    conditions.start("a", 0, 0)

    assert conditions.close("a", 0) == [REQUESTS]
    assert conditions.finish("a", 0, 0) == []
    assert conditions.auto_read("a", 0) is False


def test_a_cooldown_hold_at_the_end_of_time_never_ends():
    conditions = conditions_of(**{**COOLING, "cooldown_permits": 1})
    conditions.writable("a", True, MAX)
    conditions.command("a", "SEND", MAX)
    conditions.command("a", "SEND", MAX)
    conditions.advance(MAX)

    assert conditions.throttled("a", MAX) == [COOLDOWN]


@pytest.mark.parametrize(
    "limits",
    [
        {"max_publish_buffer_mib": 1},
        {"max_publish_buffer_mib": 1, "io_threads": 0},
        {"max_pending_publish_requests": MAX + 1},
        {"pause_if_unwritable": 1},
        {**COOLING, "cooldown_permits": 0},
        {**COOLING, "cooldown_period_ms": 0},
        {"cooldown_permits": None},
    ],
)
def test_limits_out_of_range_are_refused(limits):
    with pytest.raises(InvalidArgument):
        ConditionLimits(**limits)


def test_permits_do_not_matter_without_a_cooldown():
    assert not ConditionLimits(cooldown_permits=0, cooldown_period_ms=0).cools_down
    assert not ConditionLimits(**{**COOLING, "cooldown_ms": -1, "cooldown_permits": 0}).cools_down


@pytest.mark.parametrize(
    "operation",
    [
        lambda conditions: conditions.start("x", 1, 0),
        lambda conditions: conditions.start("a", -1, 0),
        lambda conditions: conditions.finish("b", 0, 0),
        lambda conditions: conditions.finish("a", 8, 0),
        lambda conditions: conditions.finish("a", -1, 0),
        lambda conditions: conditions.writable("a", 1, 0),
        lambda conditions: conditions.command("a", None, 0),
        lambda conditions: conditions.join("a", 1, 0),
        lambda conditions: conditions.join("d", None, 0),
        lambda conditions: conditions.close("x", 0),
        lambda conditions: conditions.throttled("x", 0),
        lambda conditions: conditions.auto_read("x", 0),
    ],
)
def test_a_refused_operation_changes_nothing(operation):
    conditions = conditions_of(**COOLING)
    conditions.start("a", 7, 0)
    before = conditions.state()

    with pytest.raises(InvalidArgument):
        operation(conditions)
    assert conditions.state() == before


def rules_of(limits, connections):
    """Rules on connections of one thread, and the list of (at_ns, connection, type, marks) that they tell."""
    told = []

    def tell(at_ns, connection, type_, *, marks):
        told.append((at_ns, connection.name, type_, marks))

    return ConnectionRules(limits, tell, lambda _: connections), told


def connections_of(thread, *names):
    return [Connection(name, place, thread, 0, 2) for place, name in enumerate(names)]


def test_marks_of_all_connections_of_a_thread_are_told_as_they_happen_dropped_ones_are_not():
    a, b = connections = connections_of(IoThread(0), "a", "b")
    rules, told = rules_of(ConditionLimits(max_publish_buffer_mib=1, io_threads=1), connections)
    rules.start(a, MIB + 1, 5)
    rules.start(b, MIB, 6)
    rules.finish(a, 2 * MIB, 7)

    assert told == [(5, "a", THREAD, True), (5, "b", THREAD, True), (7, "a", THREAD, False), (7, "b", THREAD, False)]


def test_holds_of_cooldowns_end_at_their_time_in_the_order_of_connections():
    a, b = connections = connections_of(IoThread(0), "a", "b")
    rules, told = rules_of(ConditionLimits(**COOLING), connections)
    for connection in (b, a):
        rules.writable(connection, True, 1)
        for _ in range(3):
            rules.command(connection, "SEND", 1)
    rules.run_due(100 * MS)
    assert [entry[1:] for entry in told] == [("b", COOLDOWN, True), ("a", COOLDOWN, True)]
    rules.run_due(100 * MS + 1)
    assert told[2:] == [(100 * MS + 1, "a", COOLDOWN, False), (100 * MS + 1, "b", COOLDOWN, False)]


@pytest.mark.parametrize(
    ("limits", "unmarked"),
    [
        pytest.param({**COOLING, "max_pending_publish_requests": 9}, ["a"], id="at half of it or below"),
        pytest.param({**COOLING, "max_pending_publish_requests": 3}, [], id="above half of it: the next crossing"),
        pytest.param({**COOLING, "max_pending_publish_requests": 0}, ["a"], id="off"),
        pytest.param({"max_pending_publish_requests": 2}, ["b", "c"], id="off, of the buffer: the cooldown, too"),
        pytest.param(
            {**COOLING, "cooldown_ms": 0, "max_pending_publish_requests": 2}, ["c"], id="off, of the cooldown"
        ),
    ],
)
def test_other_limits_unmark_what_is_off_or_has_no_crossing_left_and_mark_nothing(limits, unmarked):
    a, b, c = connections = connections_of(IoThread(0), "a", "b", "c")
    rules, told = rules_of(ConditionLimits(**COOLING, max_pending_publish_requests=2), connections)
    rules.start(a, 0, 0)
    rules.start(a, 0, 0)
    rules.writable(b, False, 0)
    rules.writable(c, True, 0)
    for _ in range(3):
        rules.command(c, "SEND", 0)
    before = len(told)
    rules.update(ConditionLimits(**limits), connections, [a.thread], 9)

    assert (before, [(9, name, False) for name in unmarked]) == (3, [(at, name, on) for at, name, _, on in told[3:]])
    rules.run_due(SECOND)
    assert ["c"] * ("c" not in unmarked) == [name for _, name, _, _ in told[3 + len(unmarked) :]]


@pytest.mark.parametrize(
    ("limits", "let_in"),
    [
        pytest.param({"cooldown_permits": 3}, 3, id="other permits"),
        pytest.param({"cooldown_period_ms": 50}, 2, id="another period"),
        pytest.param({"max_pending_publish_requests": 9, "cooldown_ms": 100}, 1, id="neither: the window goes on"),
    ],
)
def test_another_window_of_cooldowns_begins_with_all_of_its_permits(limits, let_in):
    (a,) = connections = connections_of(IoThread(0), "a")
    rules, told = rules_of(ConditionLimits(**COOLING), connections)
    rules.writable(a, True, 0)
    rules.command(a, "SEND", 1)
    rules.update(ConditionLimits(**COOLING | limits), connections, [a.thread], 2)
    for _ in range(let_in):
        rules.command(a, "SEND", 3)

    assert [] == told
    rules.command(a, "SEND", 4)
    assert [(4, "a", COOLDOWN, True)] == told


@pytest.mark.parametrize(("mib", "cleared"), [(0, True), (3, True), (2, False)])
def test_a_thread_limit_that_is_off_or_twice_what_is_in_flight_clears_the_thread(mib, cleared):
    a, b = connections = connections_of(IoThread(0), "a", "b")
    rules, told = rules_of(ConditionLimits(max_publish_buffer_mib=1, io_threads=1), connections)
    rules.start(a, MIB + 1, 0)
    rules.update(ConditionLimits(max_publish_buffer_mib=mib, io_threads=1), connections, [b.thread], 1)

    assert ([(1, "a", THREAD, False), (1, "b", THREAD, False)] if cleared else []) == told[2:]
    assert cleared is not a.thread.flagged
