"""Rows that the source left equal in (event_time, seq) act in an order of their own, not in that of their arrival."""

from itertools import permutations

import pyarrow as pa
import pytest

from headgate.throttle.array_form import run_arrays
from headgate.throttle.form import Rules
from headgate.throttle.limits.changes import Attachment, Limit
from headgate.throttle.readable_form import run_readable
from headgate.throttle.schemas import EVENTS
from headgate.throttle.state import DomainState
from headgate.throttle.step import advance

AT_US = 1_767_268_800_000_000
ROWS = [
    (AT_US, 0, "b", "persistent://t/n/x", producer, "c", messages, 0)
    for producer, messages in (("p", 9), ("q", 4), ("q", 5))
]
CHANGES = [Limit(AT_US, 0, None, "group", "g", rate, 0) for rate in (5, 7)]


def step(rows, changes, form):
    domain = DomainState("b", pending=list(changes))
    domain.in_force.groups["g"] = (10, 0)
    domain.in_force.apply(Attachment(0, 0, None, "tenant", "t", group_name="g"))
    events = pa.table([list(column) for column in zip(*rows, strict=True)], schema=EVENTS)
    output = advance(domain, {"events": events}, AT_US + 5_000_000, Rules(), form, finish=True)
    return output.of("marks").to_pylist(), output.of("topic_usage").to_pylist()


@pytest.mark.parametrize("form", [run_arrays, run_readable])
def test_the_order_of_arrival_does_not_show(form) -> None:
    expected = step(ROWS, CHANGES, form)
    assert expected[0]
    for rows in permutations(ROWS):
        for changes in permutations(CHANGES):
            assert expected == step(rows, changes, form)
