"""Connections that have come to rest are forgotten, and no table shows it."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from headgate.connections import kept
from headgate.connections.state import VERSION, decode_state, encode_state
from headgate.connections.step import follow
from headgate.core.numbers import HOUR_NS
from headgate.throttle.schemas import MARKS
from unit.connections.test_follow import BROKER, BUFFER, T0, T1, TOPIC, named, row

SILENT_NS = 3 * HOUR_NS


def followed(*batches, silent_ns=SILENT_NS):
    """Rows of both tables after each batch, with the state stored in between, and how many connections it has then."""
    state, told, sizes = {}, [], []
    for rows in batches:
        step = follow(state, pa.Table.from_pylist(rows, MARKS), silent_ns)
        state = decode_state(VERSION, encode_state(state))
        told.append([table.to_pylist() for table in step])
        sizes.append(len(named(state)))
    return told, sizes


def held(at_hours, connection="c", topic=T0):
    """Its producer is marked for a second."""
    at_ns = at_hours * HOUR_NS
    mark = row(at_ns, "mark", TOPIC, connection=connection, topic=topic, seq=1)
    return [mark, row(at_ns + 1, "unmark", TOPIC, connection=connection, topic=topic)]


@pytest.mark.parametrize(("cut", "expected"), [(False, [3]), (True, [1, 1, 3])])
def test_a_connection_begins_anew_after_a_long_silence_whether_it_was_forgotten_or_not(cut, expected):
    batches = [held(0) + held(3), held(10, "d"), held(11) + held(8, "e")]
    told, sizes = followed(*(batches if cut else [[one for rows in batches for one in rows]]))

    paused = [(one["connection"], one["paused"]) for connections, _ in told for one in connections if one["auto_read"]]
    assert [("c", 1), ("c", 1), ("c", 2), ("d", 1), ("e", 1)] == sorted(paused)
    assert expected == sizes


def test_what_is_held_or_attached_stays():
    first = [
        row(0, "mark", BUFFER, connection="held"),
        *(row(0, "attach", connection="attached", topic=T0), row(1, "open", connection="attached")),
        row(0, "open", connection="free"),
    ]
    told, sizes = followed(first, held(100), [row(101 * HOUR_NS, "unmark", BUFFER, connection="held")])

    assert [3, 3, 3] == sizes  # `c` instead of `free`
    assert 101 * HOUR_NS == told[2][0][0]["paused_ns"]


def test_a_connection_is_there_for_rows_that_come_late_by_less_than_the_silence():
    told, sizes = followed(held(0), held(5, "d"), held(3))

    assert [1, 2, 2] == sizes
    assert [2, 2] == [one["paused"] for one in told[2][0]]


@st.composite
def late_batches(draw):
    """Rows of half hours, each less than the silence behind those before it, cut into batches."""
    actions = st.sampled_from(["held", "held", "mark", "unmark", "open", "close", "attach"])
    rows = []
    for _ in range(draw(st.integers(1, 20))):
        at_ns, action = draw(st.integers(0, 40)) * HOUR_NS // 2, draw(actions)
        type_ = draw(st.sampled_from([TOPIC, BUFFER, BROKER]))
        connection, topic = draw(st.sampled_from("ccd")), draw(st.sampled_from([T0, T1]))
        what = {"connection": connection, "topic": topic, "broker": draw(st.sampled_from(["b", "b", "b2"]))}
        rows.append(row(at_ns, "mark" if action == "held" else action, type_, **what))
        if action == "held":
            rows.append(row(at_ns + 1, "unmark", type_, **what))
    order = sorted(rows, key=lambda one: one["at_ns"] + draw(st.integers(0, 5)) * HOUR_NS // 2)
    cuts = sorted({0, len(rows), *draw(st.lists(st.integers(0, len(rows)), max_size=8))})
    return [order[begin:end] for begin, end in pairwise(cuts)]


@settings(max_examples=examples(300))
@given(late_batches())
def test_forgetting_changes_no_table(batches):
    forgot, sizes = followed(*batches)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kept, "_are_silent", lambda rows, _: np.zeros(len(rows), np.bool_))
        kept_all, larger = followed(*batches)

    assert kept_all == forgot
    assert all(one <= other for one, other in zip(sizes, larger, strict=True))
