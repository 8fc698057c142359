"""Marks of connections, step by step: when they are read, whom that concerns, and what batches do not change."""

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from headgate.arrow.blocks import decode
from headgate.connections.key_operator import FIXED_SLOTS, pack_marks
from headgate.connections.state import VERSION, decode_state, encode_state
from headgate.connections.step import follow
from headgate.core.publish.throttle_tracker import ThrottleType
from headgate.errors import StateError
from headgate.keyed.slots import slot_keys
from headgate.throttle.form import Rules
from headgate.throttle.schemas import HELD_NS, MARKS
from unit.throttle.domains import (
    changes_block,
    connection_limit,
    connections_block,
    events_block,
    limit,
    step_through,
    tick_block,
)
from unit.throttle.drawn import quick, traffic
from unit.throttle.rows import SECOND_US, TOPICS
from unit.throttle.test_connections import LIMITS, conduct

REQUESTS, THREAD, TOPIC, GROUP, BROKER, BUFFER, COOLDOWN = map(str, ThrottleType)
SECOND = 1_000_000_000
T0, T1 = TOPICS[:2]


def row(at_ns, action, type_=None, *, connection="c", topic=None, seq=None, broker="b", scope=None, limiter=None):
    """A row of MARKS."""
    place = {"at_ns": at_ns, "event_time": at_ns // 1000, "broker": broker, "connection": connection, "topic": topic}
    return place | {"action": action, "type": type_, "seq": seq, "scope": scope, "limiter": limiter, "producer": None}


def followed(*batches):
    """Rows of both tables after batches, with the state stored in between, and that state."""
    state, connections, topics = {}, [], []
    for rows in batches:
        told = follow(state, pa.Table.from_pylist(rows, MARKS))
        state = decode_state(VERSION, encode_state(state))
        connections += told.connections.to_pylist()
        topics += told.topics.to_pylist()
    return connections, topics, state


def brief(connections):
    return [(row["at_ns"], row["connection"], row["auto_read"], row["cause"], row["paused_ns"]) for row in connections]


def summed(topics):
    """Counts by second, connection and topic."""
    sums = Counter()
    for row in topics:
        place = row["event_time"].timestamp(), row["connection"], row["topic"]
        sums.update({(*place, name): row[name] for name in ("rate_limited", "rate_limited_by_quotas", "marked")})
    return +sums


def named(state):
    """What is kept of each connection; its topics without an order."""
    return {
        (broker, name): (
            kept.numbers[place].tolist(),
            set(kept.topic.filter(pa.array(kept.topic_connection == place)).to_pylist()),
        )
        for broker, kept in state.items()
        for place, name in enumerate(kept.name.to_pylist())
    }


def test_a_topic_that_is_throttled_pauses_its_connection_and_all_topics_on_it():
    connections, topics, _ = followed(
        [
            row(0, "attach", topic=T0, seq=1),
            row(5, "attach", topic=T1, seq=2),
            row(10, "mark", TOPIC, topic=T0, seq=3, scope="topic", limiter=T0),
            row(10 + SECOND, "unmark", TOPIC, topic=T0, scope="topic", limiter=T0),
        ]
    )

    paused, resumed = connections
    assert {
        "at_ns": 10,
        "broker": "b",
        "connection": "c",
        "auto_read": False,
        "cause": TOPIC,
        "scope": "topic",
        "limiter": T0,
        "paused": 1,
        "resumed": 0,
        "throttled_connections": 0,
        "paused_ns": None,
    } | dict.fromkeys(HELD_NS.values()) == {name: paused[name] for name in paused if name != "event_time"}
    assert (True, 1, 1, SECOND, SECOND, 0) == tuple(
        resumed[name] for name in ("auto_read", "paused", "resumed", "paused_ns", "topic_rate_ns", "cooldown_ns")
    )
    names = ("topic", "rate_limited", "rate_limited_by_quotas", "marked")
    assert [(T0, 1, 1, 1), (T1, 1, 1, 0)] == [tuple(row[name] for name in names) for row in topics]


def test_types_that_overlap_hold_one_pause():
    rows = [
        *(row(10, "mark", TOPIC, topic=T0, seq=1), row(20, "mark", BUFFER, seq=2)),
        *(row(30, "unmark", TOPIC, topic=T0), row(45, "unmark", BUFFER, seq=4)),
    ]
    connections, _, _ = followed(rows)

    assert [(10, "c", False, TOPIC, None), (45, "c", True, BUFFER, 35)] == brief(connections)
    assert (20, 25) == (connections[1]["topic_rate_ns"], connections[1]["outbound_buffer_ns"])


def test_rows_of_one_instant_act_in_the_order_of_seq_after_what_time_did():
    rows = [
        *(row(10, "unmark", BUFFER, seq=2), row(10, "mark", BUFFER, seq=1)),
        *(
            row(20, "mark", TOPIC, topic=T0, seq=3),
            row(20, "unmark", TOPIC, topic=T0),
            row(15, "mark", TOPIC, topic=T0),
        ),
    ]

    assert [
        *((10, "c", False, BUFFER, None), (10, "c", True, BUFFER, 0)),
        *((15, "c", False, TOPIC, None), (20, "c", True, TOPIC, 5), (20, "c", False, TOPIC, None)),
    ] == brief(followed(rows)[0])


def test_connections_of_one_name_on_two_brokers_are_two():
    rows = [row(10, "mark", BUFFER), row(11, "mark", BUFFER, broker="b2"), row(12, "unmark", BUFFER)]

    assert [("b", 10), ("b", 12), ("b2", 11)] == [(row["broker"], row["at_ns"]) for row in followed(rows)[0]]


def test_a_connection_that_is_closed_is_forgotten_when_nothing_marks_it():
    first = [row(10, "mark", TOPIC, topic=T0), row(11, "close", seq=1), row(11, "mark", BUFFER, connection="d")]
    connections, _, state = followed(first, [row(20, "unmark", TOPIC, topic=T0), row(21, "close", connection="e")])

    assert [(10, "c", False, TOPIC, None), (11, "d", False, BUFFER, None), (11, "c", None, "close", 1)] == brief(
        connections
    )
    assert (["d"], 0) == (state["b"].name.to_pylist(), len(state["b"].topic))
    assert (
        {}
        == followed(
            first,
            [row(20, "unmark", TOPIC, topic=T0), row(20, "close", connection="d")],
            [row(21, "unmark", BUFFER, connection="d")],
        )[2]
    )


def test_a_connection_that_opens_again_after_it_was_forgotten_begins_anew_also_in_the_same_batch():
    rows = [
        *(row(1, "attach", topic=T0), row(2, "close", seq=1), row(3, "open", seq=2)),
        *(row(4, "attach", topic=T1), row(5, "mark", BUFFER), row(6, "unmark", BUFFER)),
    ]
    for batches in ([rows], [[entry] for entry in rows], [rows[:1], rows[1:]]):
        connections, topics, state = followed(*batches)
        assert [T1] == [counted["topic"] for counted in topics] == state["b"].topic.to_pylist()
        assert [1, 1] == [entry["paused"] for entry in connections]


def test_topics_of_those_that_stay_stay_theirs():
    rows = [row(1, "attach", topic=topic, connection=name) for name, topic in (("a", T0), ("c", T1), ("d", T0))]
    _, topics, _ = followed(
        rows,
        [row(2, "close", connection="a"), row(2, "attach", topic=T1, connection="d")],
        [row(3, "mark", BUFFER, connection="d"), row(3, "mark", BUFFER)],
    )

    assert [("c", T1), ("d", T0), ("d", T1)] == [(row["connection"], row["topic"]) for row in topics]


def test_a_connection_that_is_closed_while_paused_tells_how_long_it_was_not_read():
    rows = [
        *(row(SECOND, "mark", TOPIC, topic=T0, seq=1, scope="topic", limiter=T0), row(20 * SECOND, "close", seq=2)),
        *(row(22 * SECOND, "open", seq=3), row(25 * SECOND, "unmark", TOPIC, topic=T0)),
    ]
    connections, topics, _ = followed(rows)

    assert [None, 19 * SECOND, None, 3 * SECOND] == [entry["paused_ns"] for entry in connections]
    closed = connections[1]
    names = ("auto_read", "cause", "scope", "limiter", "paused", "resumed", "topic_rate_ns", "cooldown_ns")
    assert (None, "close", None, None, 1, 0, 19 * SECOND, 0) == tuple(closed[name] for name in names)
    assert [1, 22] == [counted["event_time"].timestamp() for counted in topics if counted["rate_limited"]]


def test_a_connection_that_opens_again_while_marked_is_paused_by_what_marks_it():
    rows = [row(10, "mark", TOPIC, topic=T0), row(11, "close", seq=1), row(12, "open", seq=2)]

    assert (12, "c", False, TOPIC, None) == brief(followed(rows)[0])[-1]


def test_another_version_is_refused():
    with pytest.raises(StateError, match="has version 0, this headgate reads version 1"):
        decode_state(0, b"")


@settings(quick, max_examples=examples(60))
@given(st.data(), traffic(topics=TOPICS[:3]), conduct(wrong=True))
def test_batches_of_both_queries_change_nothing(data, publishes, rows):
    """Marks of a throttle job, each batch of it in one or several of this query."""
    rows = [row | {"connection": f"connection-{i % 2}", "seq": 1000 + i} for i, row in enumerate(rows)]
    changes = [limit("default", messages=3), limit("broker", messages=40), connection_limit(**LIMITS)]
    until_us = 100 * SECOND_US
    rules = Rules(whole_brokers=True, connection_topics=True)
    end = [tick_block(until_us)]
    marks = step_through([[changes_block(changes), events_block(publishes), connections_block(rows)], end], rules).marks
    whole = followed(marks)
    places = sorted(data.draw(st.lists(st.integers(0, len(marks)), max_size=5)))
    marks.sort(key=lambda row: (row["at_ns"], -1 if row["seq"] is None else row["seq"]))
    split = followed(*(marks[begin:end] for begin, end in zip([0, *places], [*places, len(marks)], strict=True)))

    assert sorted(map(str, whole[0])) == sorted(map(str, split[0]))
    assert summed(whole[1]) == summed(split[1])
    assert named(whole[2]) == named(split[2])


@quick
@given(st.lists(st.tuples(st.sampled_from(["b1", "b2"]), st.integers(0, 50)), min_size=1))
def test_every_row_goes_to_the_slot_of_its_connection(places):
    rows = [
        row(at, "mark", BUFFER, broker=broker, connection=f"c{number}") for at, (broker, number) in enumerate(places)
    ]
    batches = [pa.RecordBatch.from_pylist(part, MARKS) for part in (rows, rows[::2])]
    packed = [entry for batch in pack_marks(iter(batches)) for entry in batch.to_pylist()]
    slots, seen = {}, []
    for entry in packed:
        for one in decode(entry["block"]).to_pylist():
            seen.append(one["at_ns"])
            slots.setdefault((one["broker"], one["connection"]), set()).add(entry["key"])

    assert sorted([*range(len(rows)), *range(0, len(rows), 2)]) == sorted(seen)
    assert {1} == {len(keys) for keys in slots.values()}
    assert len({key for keys in slots.values() for key in keys}) <= FIXED_SLOTS


def test_a_connection_has_the_slot_that_checkpoints_know_it_by():
    (batch,) = pack_marks(pa.Table.from_pylist([row(1, "mark", BUFFER)], MARKS).to_batches())

    assert [slot_keys(FIXED_SLOTS)[28]] == batch["key"].to_pylist()
