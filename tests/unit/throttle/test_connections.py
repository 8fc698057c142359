"""Connections in a domain: what marks them and when, what closes and reopens, and what batches do not change."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.arrow.blocks import encode
from headgate.conformance.oracles.connection_conditions import ConnectionConditions
from headgate.core.connections.connection_limits import ConditionLimits
from headgate.core.connections.connection_rules import CONDITIONS
from headgate.keyed.operator import Block
from headgate.rows.kinds import CONNECTION
from headgate.throttle.apart.connection_step import step_connections
from headgate.throttle.form import Rules
from headgate.throttle.ordering import Due
from headgate.trace import TraceSpec, generate_files
from unit.throttle.domains import (
    changes_block,
    connection_limit,
    connections_block,
    events_block,
    limit,
    picture,
    step_through,
    tick_block,
)
from unit.throttle.drawn import cuts, quick
from unit.throttle.rows import BROKER, SECOND_US, START_US, TOPICS, acts, event

REQUESTS, THREAD_BYTES, BUFFER, COOLDOWN = map(str, CONDITIONS)
MS = 1000
MIB = 1_048_576
A, B, C = "connection-a", "connection-b", "connection-c"
LIMITS = {
    "max_pending_publish_requests": 2,
    "max_publish_buffer_mib": 2,
    "io_threads": 2,
    "pause_if_unwritable": True,
    "cooldown_ms": 1000,
    "cooldown_permits": 2,
    "cooldown_period_ms": 100,
}
ALL = connection_limit(**LIMITS)


def did(rows, *changes, until_us=None):
    batches = [[changes_block(changes), connections_block(rows)]]
    return step_through(batches if until_us is None else [*batches, [tick_block(until_us)]], Rules())


def told(outcome):
    """Marks in short: microseconds after the start, connection, action, type."""
    return [(row["at_ns"] / 1000 - START_US, row["connection"], row["action"], row["type"]) for row in outcome.marks]


def start(at_us, connection=A, *, io_thread=0, bytes_=0, seq=0):
    return acts(at_us, "start", connection, io_thread=io_thread, bytes=bytes_, seq=seq)


def finish(at_us, connection=A, *, io_thread=0, bytes_=0, seq=0):
    return acts(at_us, "finish", connection, io_thread=io_thread, bytes=bytes_, seq=seq)


def test_requests_in_flight_mark_at_the_limit_and_unmark_at_half_of_it():
    rows = [start(0), start(1, seq=7), start(2), finish(3), finish(4, seq=8), finish(5)]
    outcome = did(rows, ALL)

    assert [(0, A, "open", None), (1, A, "mark", REQUESTS), (4, A, "unmark", REQUESTS)] == told(outcome)
    mark = outcome.marks[1]
    assert (7, "connection", A, None, None, BROKER) == (
        *(mark["seq"], mark["scope"], mark["limiter"]),
        *(mark["topic"], mark["producer"], mark["broker"]),
    )
    assert 8 == outcome.marks[2]["seq"]


def test_bytes_of_a_thread_mark_all_of_its_connections_and_none_that_joins_later():
    rows = [
        *(start(0, A, bytes_=MIB), start(1, B, bytes_=1), start(2, C, io_thread=1, bytes_=MIB)),
        *(acts(3, "open", "late", io_thread=0), finish(4, A, bytes_=MIB), finish(5, B, bytes_=1)),
    ]
    outcome = did(rows, connection_limit(**LIMITS | {"max_pending_publish_requests": 0}))
    marks = [row for row in outcome.marks if row["type"] is not None]

    assert [(1, A, "mark"), (1, B, "mark"), (4, A, "unmark"), (4, B, "unmark")] == [
        entry[:3] for entry in told(outcome) if entry[3] == THREAD_BYTES
    ]
    assert {("io_thread", "0")} == {(row["scope"], row["limiter"]) for row in marks}


def test_a_full_buffer_marks_until_it_is_writable_and_a_cooldown_ends_by_time_alone():
    rows = [
        *(acts(0, "unwritable"), acts(1, "unwritable"), acts(2, "writable")),
        *(acts(10 + seq, "command", command="SEND", seq=seq) for seq in range(3)),
        acts(20, "command", command="PING"),
    ]
    outcome = did(rows, ALL, until_us=SECOND_US)
    name = "connection-0"

    assert [
        (0, name, "open", None),
        (0, name, "mark", BUFFER),
        (2, name, "unmark", BUFFER),
        (12, name, "mark", COOLDOWN),
        (12 + 100 * MS, name, "unmark", COOLDOWN),
    ] == told(outcome)
    assert [0, 0, 0, 2, None] == [row["seq"] for row in outcome.marks]


def test_a_domain_is_open_while_a_cooldown_holds():
    rows = [acts(0, "writable"), *(acts(1, "command", command="SEND", seq=seq) for seq in range(3))]
    held, ended = (did(rows, ALL, until_us=until_us).state.domains[BROKER] for until_us in (2, SECOND_US))

    assert (True, False) == (held.is_open, ended.is_open)


def test_a_connection_that_closes_is_unmarked_after_its_close():
    outcome = did([acts(0, "open", A, io_thread=0), acts(1, "unwritable", A), acts(2, "close", A, seq=5)], ALL)

    assert [(2, A, "close", None), (2, A, "unmark", BUFFER)] == told(outcome)[2:]
    assert [5, 5] == [row["seq"] for row in outcome.marks[2:]]
    assert {} == picture(outcome.state)[BROKER]["connections"]


def test_a_thread_marks_its_connections_of_earlier_batches_but_none_that_was_forgotten_in_the_same_batch():
    opened = [acts(0, "open", name, io_thread=thread) for name, thread in ((A, 0), (B, 0), (C, 0), ("other", 1))]
    rows = [acts(1, "close", A), start(2, B, bytes_=MIB + 1)]
    outcome = step_through([[changes_block([ALL]), connections_block(opened)], [connections_block(rows)]], Rules())

    assert [(1, A, "close", None), *((2, name, "mark", THREAD_BYTES) for name in (B, C))] == told(outcome)[4:]


def test_a_closed_connection_stays_while_its_requests_are_in_flight_and_its_bytes_count_on_the_thread():
    rows = [
        *(start(0, A, bytes_=MIB), start(1, A), acts(2, "close", A), start(3, B, bytes_=1)),
        *(finish(4, A), finish(5, A, bytes_=MIB), finish(6, A, seq=9)),
    ]
    outcome = did(rows, ALL)

    assert [
        *((0, A, "open", None), (1, A, "mark", REQUESTS), (2, A, "close", None), (3, B, "open", None)),
        *((3, A, "mark", THREAD_BYTES), (3, B, "mark", THREAD_BYTES), (4, A, "unmark", REQUESTS)),
        *((5, A, "unmark", THREAD_BYTES), (5, B, "unmark", THREAD_BYTES)),
    ] == told(outcome)
    assert [f"action: got finish, allowed is another one: connection {A} has no request in flight"] == [
        letter["reason"] for letter in outcome.dead_letters
    ]
    assert {B} == picture(outcome.state)[BROKER]["connections"].keys()


def test_a_name_that_opens_while_it_finishes_goes_on_with_what_is_in_flight():
    rows = [start(0), acts(1, "close", A), acts(2, "open", A, io_thread=0), start(3), finish(4), finish(5)]

    assert [
        *((0, A, "open", None), (1, A, "close", None), (2, A, "open", None)),
        *((3, A, "mark", REQUESTS), (4, A, "unmark", REQUESTS)),
    ] == told(did(rows, ALL))


def test_a_close_of_a_connection_that_is_not_known_is_told_and_one_of_a_closed_one_is_not():
    rows = [acts(0, "close", A), start(1, B), acts(2, "close", B), acts(3, "close", B)]

    assert [(0, A, "close"), (1, B, "open"), (2, B, "close")] == [entry[:3] for entry in told(did(rows, ALL))]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (acts(9, "open", A, io_thread=0), f"action: got open, allowed is what an open connection does: {A} is open"),
        (start(9, io_thread=1), f"io_thread: got 1, allowed is 0, which serves connection {A}"),
        (finish(9, io_thread=1), f"io_thread: got 1, allowed is 0, which serves connection {A}"),
        (finish(9, B), f"action: got finish, allowed is another one: connection {B} has no request in flight"),
        (finish(9, bytes_=8), "bytes: got 8, allowed is a whole number up to 7, which IO thread 0 holds"),
    ],
)
def test_what_cannot_be_is_a_dead_letter_and_changes_nothing(row, reason):
    before = [start(0, bytes_=7)]
    refused, without = did([*before, row], ALL), did(before, ALL, until_us=9)

    assert without.marks == refused.marks
    assert picture(without.state) == picture(refused.state)
    (letter,) = refused.dead_letters
    assert (reason, None, None) == (letter["reason"], letter["source"], letter["offset"])
    had = {name: value for name, value in row.items() if value is not None and name != "event_time_us"}
    assert had | {"kind": "connection", "event_time": row["event_time_us"]} == json.loads(letter["raw"])


def test_a_thread_is_known_from_the_first_row_that_names_it():
    rows = [acts(0, "writable", A), start(1, A, io_thread=1), start(2, A, io_thread=0)]
    outcome = did(rows, ALL)

    assert [(0, A, "open")] == [entry[:3] for entry in told(outcome)]
    assert ["io_thread"] == [letter["reason"].partition(":")[0] for letter in outcome.dead_letters]


def test_without_a_limit_nothing_is_marked():
    rows = [start(0), start(0, seq=1), acts(1, "unwritable", A), acts(2, "writable", A)]

    assert [(0, A, "open", None)] == told(did(rows))


def test_a_limit_switched_off_unmarks_at_its_time_and_before_rows_of_that_instant():
    rows = [acts(0, "unwritable", A), start(0, A, seq=1), start(0, A, seq=2), finish(SECOND_US, A)]
    outcome = did(rows, ALL, connection_limit(at_us=SECOND_US))

    assert [(SECOND_US, A, "unmark", REQUESTS), (SECOND_US, A, "unmark", BUFFER)] == told(outcome)[3:]
    assert [None, None] == [row["seq"] for row in outcome.marks[3:]]


def test_another_limit_marks_at_its_next_crossing():
    rows = [start(at) for at in range(4)] + [start(SECOND_US), start(SECOND_US + 1)]
    higher = connection_limit(**LIMITS | {"max_pending_publish_requests": 6}, at_us=SECOND_US)
    lower = connection_limit(**LIMITS | {"max_pending_publish_requests": 3}, at_us=5)
    first = connection_limit(**LIMITS | {"max_pending_publish_requests": 5})

    assert [(0, "open"), (SECOND_US + 1, "mark")] == [
        (at, action) for at, _, action, _ in told(did(rows, first, lower, higher))
    ]


@pytest.mark.parametrize(
    "before",
    [{}, LIMITS | {"cooldown_permits": 1}, LIMITS | {"cooldown_ms": 0}],
    ids=["none", "one permit", "no cooldown"],
)
def test_a_cooldown_that_comes_into_force_gives_its_own_permits_also_to_connections_that_were_open(before):
    rows = [acts(0, "open", A, io_thread=0), acts(2, "writable", A)]
    rows += [acts(3, "command", A, seq=seq, command="SEND") for seq in range(3)]
    outcome = did(rows, connection_limit(**before), connection_limit(**LIMITS, at_us=1))

    assert [(3, 2, COOLDOWN)] == [
        (row["at_ns"] // 1000 - START_US, row["seq"], row["type"]) for row in outcome.marks if row["action"] == "mark"
    ]


def test_conditions_and_publishes_do_not_know_each_other_and_their_marks_are_in_the_order_of_time():
    changes = [ALL, limit("default", messages=1)]
    publishes = [event(at, TOPICS[0], seq=at) for at in range(4)]
    rows = [start(at, seq=at) for at in range(4)]
    both = step_through([[changes_block(changes), events_block(publishes), connections_block(rows)]], Rules())
    one, other = (
        step_through([[changes_block(changes), block]], Rules())
        for block in (events_block(publishes), connections_block(rows))
    )

    assert sorted(one.marks + other.marks, key=str) == sorted(both.marks, key=str)
    assert sorted(row["at_ns"] for row in both.marks) == [row["at_ns"] for row in both.marks]


def test_a_late_row_acts_at_the_domains_clock():
    batches = [
        [changes_block([ALL]), connections_block([start(0)]), tick_block(SECOND_US)],
        [connections_block([start(9)])],
    ]

    assert (SECOND_US, A, "mark", REQUESTS) == told(step_through(batches, Rules()))[-1]


def test_rows_that_are_held_back_act_in_their_order():
    first = [changes_block([ALL]), connections_block([finish(5, seq=1)])]
    outcome = step_through(
        [first, [connections_block([start(0)])], [tick_block(3 * SECOND_US)]], Rules(hold_back_ms=1000)
    )

    assert ([(0, A, "open", None)], []) == (told(outcome), outcome.dead_letters)


names = st.sampled_from([A, B, C])
THREAD_OF = {A: 0, B: 0, C: 1}
STEPS = [0, 0, 1, 500, 20 * MS, 99 * MS, 100 * MS, 150 * MS, SECOND_US]


@st.composite
def conduct(draw, *, wrong):
    """Rows of three connections in their order. wrong: also such as cannot be."""
    rows, at_us, in_flight = [], 0, []
    for seq in range(draw(st.integers(5, 60))):
        at_us += draw(st.sampled_from(STEPS))
        name, action = draw(names), draw(st.sampled_from(["start", "start", "finish", "finish", "buffer", "command"]))
        thread = {"io_thread": THREAD_OF[name] if not wrong or seq % 7 else 3}
        if wrong and draw(st.integers(0, 9)) == 0:
            rows.append(acts(at_us, draw(st.sampled_from(["open", "close", "close"])), name, seq=seq, **thread))
        elif action == "start":
            size = draw(st.sampled_from([0, 10, MIB // 2, MIB]))
            in_flight.append((name, size))
            rows.append(start(at_us, name, bytes_=size, seq=seq, **thread))
        elif action == "finish" and (in_flight or wrong):
            place = draw(st.integers(0, len(in_flight) - 1)) if in_flight else 0
            name, size = in_flight.pop(place) if in_flight else (name, 1)
            rows.append(finish(at_us, name, bytes_=size, seq=seq, io_thread=THREAD_OF[name]))
        elif action == "buffer":
            rows.append(acts(at_us, draw(st.sampled_from(["writable", "unwritable"])), name, seq=seq))
        else:
            rows.append(acts(at_us, "command", name, seq=seq, command=draw(st.sampled_from(["SEND", "SEND", "PING"]))))
    return rows


@quick
@given(conduct(wrong=False))
def test_marks_are_those_of_the_core(rows):
    """While all are open, and the domain hears of each as the core does."""
    opened = [acts(0, "open", name, io_thread=thread) for name, thread in THREAD_OF.items()]
    rows = [row | {"event_time_us": row["event_time_us"] + 1} for row in rows]
    core = ConnectionConditions(THREAD_OF, created_ns=START_US * 1000, limits=ConditionLimits(**LIMITS))
    held = {name: set() for name in THREAD_OF}
    outcome = did([*opened, *rows], ALL)
    marks = [row for row in outcome.marks if row["type"] is not None]

    for row in rows:
        at_ns, name = row["event_time_us"] * 1000, row["connection"]
        match row["action"]:
            case "start" | "finish":
                getattr(core, row["action"])(name, row["bytes"], at_ns)
            case "command":
                core.command(name, row["command"], at_ns)
            case action:
                core.writable(name, action == "writable", at_ns)
        while marks and (marks[0]["at_ns"], marks[0]["seq"] or -1) <= (at_ns, row["seq"]):
            mark = marks.pop(0)
            assert (mark["type"] in held[mark["connection"]]) is (mark["action"] == "unmark")
            held[mark["connection"]] ^= {mark["type"]}
        assert held == {name: set(core.throttled(name, at_ns)) for name in THREAD_OF}
    assert [] == outcome.dead_letters == marks


@quick
@given(st.data(), conduct(wrong=True))
def test_batches_change_nothing(data, rows):
    changes = [ALL, connection_limit(at_us=SECOND_US), connection_limit(**LIMITS, at_us=SECOND_US + 200 * MS)]
    block, end = changes_block(changes), [tick_block(100 * SECOND_US)]
    whole = step_through([[block, connections_block(rows)], end], Rules())
    split = step_through([[block], *data.draw(cuts(rows, connections_block)), end], Rules())

    assert whole.marks == split.marks
    assert whole.dead_letters == split.dead_letters
    assert picture(whole.state) == picture(split.state)


@quick
@given(conduct(wrong=True))
def test_every_mark_has_its_unmark_once_all_are_closed_and_finished(rows):
    """Nothing stays in the state of a domain then but what rows have left on threads."""
    at_us = rows[-1]["event_time_us"] - START_US
    last = [acts(at_us, "close", name, seq=1000) for name in (A, B, C)]
    finished = [
        finish(at_us, name, io_thread=thread, seq=seq)
        for seq in range(1001, 1061)
        for name, thread in ((A, 0), (A, 3), (B, 0), (B, 3), (C, 1), (C, 3))
    ]
    outcome = did([*rows, *last, *finished], ALL)
    sums = {}
    for row in outcome.marks:
        key = row["connection"], row["type"]
        sums[key] = sums.get(key, 0) + {"mark": 1, "unmark": -1, "open": 0, "close": 0}[row["action"]]

    assert not any(sums.values())
    assert {} == picture(outcome.state)[BROKER]["connections"]


def test_connections_to_which_nothing_happens_are_not_loaded(monkeypatch):
    """Ten thousand open ones: what one of them does costs by what it does."""
    count = 10_000
    opened = [acts(0, "open", f"connection-{i}", io_thread=i % 4) for i in range(count)]
    state = did(opened, ALL).state
    loaded = []
    at = "headgate.throttle.apart.connection_objects.Connections._at"
    monkeypatch.setattr(at, lambda *_: loaded.append(1) or pytest.fail("loaded"))
    told = step_connections(state.domains[BROKER], Due(CONNECTION.schema.empty_table(), [], 10**18))
    kept = int(np.size(state.domains[BROKER].connections.kept["thread"]))
    assert (0, [], count) == (len(told["marks"]), loaded, kept)


def test_a_generated_trace_does_nothing_that_cannot_be():
    spec = TraceSpec(events=6000, files=2, connection_share=0.6)
    rows = pa.concat_tables(generate_files(spec))
    rows = rows.filter(pc.equal(rows["kind"], "connection"))
    rows = rows.append_column("event_time_us", rows["event_time"].cast(pa.int64())).select(CONNECTION.schema.names)
    blocks = [Block("connections", len(rows), encode(rows.cast(CONNECTION.schema)))]
    outcome = step_through([[changes_block([ALL]), *blocks]], Rules())

    assert [] == outcome.dead_letters
    assert {BUFFER, None} <= {row["type"] for row in outcome.marks}
