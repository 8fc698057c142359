"""What limiters say, line by line."""

import json
from typing import Any

import pytest

from headgate.core.protocol.broker import inputs
from headgate.core.protocol.broker.inputs import Input, Trip
from headgate.core.protocol.broker.outputs import Cause, Command, CommandKind, ReadsResumed
from headgate.core.protocol.reasons import Reason
from headgate.errors import InvalidArgument
from headgate.gate.control_rows import Told, Unmarked, Unopened, event_line, event_row, row_of, told
from headgate.gate.events import Event, Joined, Left, Paused
from headgate.gate.producers import ProducerName, Producers

BUCKETS = [{"balance": -5, "rate": 10}]
NAMED = {"topic": "t", "producer": "p"}
TOPIC, GROUP, BROKER = "TOPIC_PUBLISH_RATE", "GROUP_QUOTA", "BROKER_PUBLISH_RATE"


def producers_of(connection: str) -> Producers:
    """Of `c`: 7, which is `p` on `t`, and 8, which has no name there."""
    producers = Producers()
    if connection == "c":
        producers.add(7, ProducerName("t", "p"))
        producers.add(8, ProducerName("t", ""))
    return producers


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (NAMED | {"kind": "publish"}, inputs.Publish(9, 7)),
        ({"kind": "publish", "topic": "t"}, inputs.Publish(9, 8)),
        ({"kind": "publish", "topic": "u"}, inputs.Publish(9, None)),  # type: ignore[arg-type]
        (
            NAMED | {"kind": "mark", "trips": [{"reason": TOPIC, "ordinal": 2, "buckets": BUCKETS}]},
            inputs.Mark(9, 7, [Trip(0, 2, [(-5, 10)])]),
        ),
        (NAMED | {"kind": "mark", "trigger": False}, inputs.Mark(9, 7, [], trigger=False)),
        (NAMED | {"kind": "quote", "reason": GROUP, "buckets": BUCKETS}, inputs.Quote(9, 7, 1, [(-5, 10)])),
        (NAMED | {"kind": "unmark", "reason": GROUP, "ordinal": 2}, inputs.Unmark(9, 7, 1, 2)),
        (NAMED | {"kind": "condition_set", "reason": BROKER, "ordinal": 1}, inputs.ConditionSet(9, 4, 1, 7)),
        ({"kind": "condition_set", "reason": BROKER, "ordinal": 1}, inputs.ConditionSet(9, 4, 1, None)),
        ({"kind": "condition_clear", "reason": BROKER, "ordinal": 1}, inputs.ConditionClear(9, 4, 1)),
        (NAMED | {"kind": "close_producer"}, inputs.CloseProducer(9, 7)),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else "",
)
def test_a_line_is_an_input_at_the_gates_time(row: dict[str, Any], expected: Input) -> None:
    said = told(row_of(json.dumps(row | {"connection": "c"}).encode()), producers_of)
    assert isinstance(said, Told)
    assert (said.connection, said.make(9)) == ("c", expected)


def test_an_unmark_that_names_no_producer_is_for_all() -> None:
    row = {"kind": "unmark", "connection": "c", "reason": GROUP, "ordinal": 2}
    assert told(row, producers_of) == Unmarked("c", Reason.ResourceGroupProduceQuotaExceeded, 2)
    with pytest.raises(InvalidArgument, match="topic: got None"):
        told(row | {"producer": "p"}, producers_of)


def test_a_condition_that_names_a_producer_which_is_not_open_is_none_of_the_whole_connection() -> None:
    row = {"kind": "condition_set", "connection": "c", "topic": "u", "reason": BROKER, "ordinal": 1}
    assert told(row, producers_of) == Unopened("c")


def test_a_producer_opens_with_its_number_and_its_name() -> None:
    row = NAMED | {"kind": "open", "connection": "d", "producer_id": 1}
    assert told(row, producers_of) == ("d", 1, ("t", "p"))


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (Joined(1, supports=True), {"event": "joined", "at_ms": 1, "supports_throttle": True}),
        (Left(1), {"event": "left", "at_ms": 1}),
        (
            Paused(1, Cause.NO_RECEIPT, Reason.TopicProduceQuotaExceeded, ProducerName("t", "p")),
            NAMED | {"event": "reads_paused", "at_ms": 1, "cause": "no_receipt", "reason": TOPIC},
        ),
        (
            Paused(1, Cause.CONDITION, Reason.BrokerProduceQuotaExceeded),
            {"event": "reads_paused", "at_ms": 1, "cause": "condition", "reason": BROKER},
        ),
        (ReadsResumed(9, 8), {"event": "reads_resumed", "at_ms": 9, "off_ms": 8}),
    ],
    ids=lambda value: value["event"] if isinstance(value, dict) else "",
)
def test_an_event_is_a_row_with_names(event: Event, expected: dict[str, Any]) -> None:
    assert event_row("c", event) == expected | {"connection": "c"}


def test_commands_are_heard_by_clients_alone() -> None:
    command = Command(1, 1, 7, "t", Reason.TopicProduceQuotaExceeded, 10, CommandKind.START)
    assert event_row("c", command) is None


def test_names_of_1024_bytes_are_allowed_and_longer_ones_are_not() -> None:
    row = {"kind": "open", "connection": "c", "topic": "é" * 512, "producer_id": 1}
    assert told(row, producers_of) == ("c", 1, ("é" * 512, ""))
    with pytest.raises(InvalidArgument, match=r"producer: got .* of 1025 bytes; allowed: .* up to 1024 bytes"):
        told(row | {"producer": "p" * 1025}, producers_of)


@pytest.mark.parametrize(
    "row",
    [
        {"kind": "x" * 60_000},
        {"kind": "publish", "connection": ["x" * 60_000]},
        {"kind": "open", "connection": "c", "topic": "t", "producer_id": "x" * 60_000},
        {"kind": "unmark", "connection": "c", "topic": "t", "reason": "x" * 60_000},
        {"kind": "mark", "connection": "c", "topic": "t", "trips": ["x" * 60_000]},
        {"kind": "mark", "connection": "c", "topic": "t", "trigger": "x" * 60_000},
        {"kind": "publish", "connection": "c", "topic": "t", "x" * 60_000: 1},
        {"kind": "publish", "connection": "c", "topic": "x" * 60_000},
    ],
    ids=lambda row: list(row)[-1][:20],
)
def test_an_error_shows_the_first_100_characters_of_a_value(row: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument, match=r"got \[?'x{98,99}\.\.\.") as refused:
        told(row, producers_of)
    assert len(str(refused.value)) < 500


def test_an_event_is_written_once_for_all_who_hear_it() -> None:
    event = Joined(1, supports=True)
    assert event_line("c", event) is event_line("c", event)
    assert json.loads(event_line("c", event) or b"") == event_row("c", event)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", "no JSON"),
        ("\xff", "no JSON"),
        ("[" * 100_000, "no JSON"),
        ("[]", "got a list"),
        ('{"connection": "c"}', "kind: got None"),
        ('{"kind": "receipt", "connection": "c"}', "kind: got 'receipt'"),
        ('{"kind": "publish"}', "connection: got None"),
        ('{"kind": "publish", "connection": "c", "topic": "t", "producer": 1}', "producer: got 1"),
        ('{"kind": "publish", "connection": "c"}', "topic: got None"),
        ('{"kind": "publish", "connection": "c", "topics": "t"}', "did you mean topic?"),
        ('{"kind": "publish", "connection": "c", "topic": "t", "producer_id": 1}', "got 'producer_id'"),
        ('{"kind": "unmark", "connection": "c", "topic": "t", "reason": 0}', "reason: got 0; allowed are TOPIC_PUBL"),
        ('{"kind": "unmark", "connection": "c", "topic": "t", "reason": []}', "reason: got []; allowed"),
        ('{"kind": "publish", "connection": "c", "topic": "t", "at_ms": 1}', "leave it out"),
        ('{"kind": "mark", "connection": "c", "topic": "t", "trips": 1}', "trips: got 1"),
        ('{"kind": "mark", "connection": "c", "topic": "t", "trips": [1]}', "a list of objects"),
        (
            '{"kind": "quote", "connection": "c", "topic": "t", "reason": "GROUP_QUOTA", "buckets": [[1, 2]]}',
            "buckets: got",
        ),
        ('{"kind": "open", "connection": "c", "topic": "t", "producer_id": []}', "producer_id: got []"),
        ('{"kind": "mark", "connection": "c", "topic": "t", "trips": [{"n": 1}]}', "trips: got 'n'"),
        (
            '{"kind": "mark", "connection": "c", "topic": "t", "trigger": "false"}',
            "trigger: got 'false'; allowed: true",
        ),
        ('{"kind": "mark", "connection": "c", "topic": "t", "trigger": 0}', "trigger: got 0"),
        ('{"kind": "publish", "connection": "\\ud800"}', "connection: got .* which UTF-8 cannot encode"),
        ('{"kind": "publish", "connection": "c", "topic": "\\ud800"}', "topic: got .* which UTF-8 cannot encode"),
        (
            '{"kind": "publish", "connection": "c", "topic": "t", "producer": "x\\udfff"}',
            "producer: got .* which UTF-8 cannot encode",
        ),
    ],
    ids=str,
)
def test_what_is_no_input_is_refused_in_words(line: str, words: str) -> None:
    with pytest.raises(InvalidArgument, match=words.replace("[", r"\[")):
        told(row_of(line.encode("latin-1")), producers_of)
