"""The order in which rows are fed (throttle-protocol 7.1)."""

import random

from headgate.protocol.feeding import in_order
from headgate.protocol.schemas import ROWS
from unit.protocol.runs import given

IN_ORDER = [
    given("connect", None, event_id="z"),
    given("close", 1, event_id="z"),
    given("connect", 2, event_id="z"),
    given("open", 2, producer_id=1, event_id="y"),
    given("open", 2, producer_id=2, event_id="x"),
    given("publish", 2, producer_id=2, event_id="a"),
    given("publish", 2, producer_id=2, event_id="b"),
    given("mark", 2, producer_id=0, event_id="z"),
    given("mark", 2, producer_id=1, event_id="a"),
    given("mark", 2, producer_id=1, event_id="b"),
    given("receipt", 2, event_id="z"),
    given("receipt", 2, request_id=9, event_id="z"),
    given("receipt", 2, request_id=10, event_id="a"),
    given("quote", 2, producer_id=1, event_id="z"),
    given("condition_set", 2, ordinal=8, event_id="z"),
    given("condition_set", 2, ordinal=9, event_id="a"),
    given("condition_set", 2, producer_id=0, ordinal=1, event_id="a"),
    given("unmark", 2, at_ns=2_000_001, producer_id=2, ordinal=1, event_id="z"),
    given("unmark", 2, at_ns=2_000_002, event_id="z"),
    given("unmark", 2, at_ns=2_000_002, producer_id=1, ordinal=9, event_id="a"),
    given("unmark", 2, producer_id=1, ordinal=1, event_id="z"),
    given("unmark", 2, producer_id=1, ordinal=2, event_id="a"),
    given("condition_clear", 2, ordinal=1, event_id="z"),
    given("close_producer", 2, producer_id=1, event_id="z"),
    given("close", 2, event_id="z"),
    given("sneeze", 2, event_id="a"),
    given("connect", 3, event_id="a"),
]


def test_rows_are_fed_by_time_rank_nanoseconds_producer_number_and_event_id():
    rows = [dict.fromkeys(ROWS.names) | row for row in IN_ORDER]

    assert in_order(random.Random(1).sample(rows, len(rows))) == rows
