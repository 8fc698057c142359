"""Machines behind connections: what they emit is done at the gate's clock. Waits of 100 ms, buckets of 100 a second."""

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.core.protocol.broker.broker_metrics import BrokerMetrics
from headgate.core.protocol.broker.inputs import CloseProducer, ConditionClear, ConditionSet, Publish, Trip
from headgate.core.protocol.broker.outputs import BadInput
from headgate.core.protocol.reasons import Reason
from headgate.core.protocol.settings import BrokerSettings
from headgate.gate.control_rows import event_row, probe_row
from headgate.gate.events import Event, Heard
from headgate.gate.feed import NameTaken, Seat
from headgate.gate.machine_feed import MachineFeed
from headgate.gate.producers import ProducerName
from headgate.wire import ThrottleProducer
from unit.gate.driven import HandClock, Told

TOPIC, PENDING = Reason.TopicProduceQuotaExceeded, Reason.ConnectionPendingMessagesBreach
START_MS = 1000
RECEIPTS = "headgate.broker.throttle.receipt.count{outcome=%s}"


@dataclass
class Driven:
    """A client `c` with the producers 1 and 2, and all that was emitted."""

    supports: bool = True
    clock: HandClock = field(default_factory=lambda: HandClock(START_MS))
    link: Told = field(default_factory=Told)
    emitted: list[tuple[str, Event]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.feed = MachineFeed(BrokerSettings(), self.clock, BrokerMetrics())
        self.seat: Seat = self.feed.join("c", self.link, supports=self.supports)
        self.feed.listen(self._heard)
        self.emitted.clear()
        for producer in (1, 2):
            self.feed.open("c", producer, f"t{producer}")

    def _heard(self, name: str, output: Event) -> None:
        self.emitted.append((name, output))

    def mark(self, producer: int = 1, ordinal: int = 1, balance: int = -49) -> list[ThrottleProducer | str]:
        """A mark whose pause is 500 ms by default."""
        assert self.feed.mark("c", producer, [Trip(0, ordinal, [(balance, 100)])]) is None
        return self.link.taken()

    def condition(self, *, is_set: bool) -> list[ThrottleProducer | str]:
        made = ConditionSet if is_set else ConditionClear
        assert self.feed.tell("c", lambda at_ms: made(at_ms, PENDING, 1)) is None
        return self.link.taken()

    def at(self, at_ms: int) -> list[ThrottleProducer | str]:
        self.clock.pass_to(START_MS + at_ms)
        return self.link.taken()

    def receipts(self, outcome: str) -> int:
        return self.feed.metrics.values().get(RECEIPTS % outcome, 0)

    def phase(self, producer: int = 1) -> str:
        return self.feed.view("c")["producers"][str(producer)]["state"]


def test_a_mark_sends_a_command_at_once() -> None:
    assert Driven().mark() == [ThrottleProducer(1, 1, TOPIC, 500)]


def test_a_receipt_in_the_last_millisecond_keeps_reads_on() -> None:
    driven = Driven()
    driven.mark()
    driven.at(100)
    driven.seat.answered(1, driven.clock.now_ms())

    assert driven.at(499) == []
    assert driven.phase() == "C"


def test_without_a_receipt_reads_go_off_when_the_last_millisecond_is_over() -> None:
    driven = Driven()
    driven.mark()

    assert driven.at(100) == []
    assert driven.at(101) == ["off"]


def test_a_window_that_ends_while_a_limiter_holds_is_extended() -> None:
    driven = Driven()
    driven.mark()
    driven.seat.answered(1, START_MS)

    assert driven.at(500) == []
    assert driven.at(501) == [ThrottleProducer(2, 1, TOPIC, 100)]  # refilled, but not let go: idle_extension_ms


def test_a_release_turns_reads_on() -> None:
    driven = Driven()
    driven.mark()
    driven.at(101)
    driven.feed.unmark("c", 1, 0, 1)

    assert driven.link.taken() == ["on"]
    assert driven.at(10_000) == []


def test_a_client_without_the_flag_is_told_nothing_and_not_read() -> None:
    assert Driven(supports=False).mark() == ["off"]


def test_notices_come_before_reads_go_off() -> None:
    assert Driven().condition(is_set=True) == [
        ThrottleProducer(1, 1, PENDING, 0),
        ThrottleProducer(2, 2, PENDING, 0),
        "off",
    ]


def test_a_receipt_that_waited_in_the_socket_is_in_time_when_reads_come_on() -> None:
    """Reads go off 60 ms after the command; its receipt is read two seconds later, in the first turn of reading."""
    driven = Driven()
    driven.mark()
    driven.at(60)
    driven.condition(is_set=True)
    driven.at(2000)
    assert driven.condition(is_set=False)[-1:] == ["on"]
    driven.seat.answered(1, driven.clock.now_ms())

    assert driven.receipts("in_time") == 1


def test_a_receipt_that_is_read_late_because_the_gate_was_late_is_in_time() -> None:
    """The gate does nothing for a second. What waited in the socket is read before what is due, as in every turn."""
    driven = Driven()
    driven.mark()
    driven.mark(producer=2)
    driven.clock.jump_to(START_MS + 1000)
    driven.seat.answered(2, START_MS + 1000)
    driven.seat.answered(1, START_MS + 1000)

    assert driven.receipts("in_time") == 2
    assert "off" not in driven.at(1000)


def test_what_a_late_gate_sends_has_its_whole_wait() -> None:
    """The window ended at 500, half a second before the gate could act."""
    driven = Driven()
    driven.mark()
    driven.seat.answered(1, START_MS)
    driven.clock.jump_to(START_MS + 1000)

    assert driven.at(1000) == [ThrottleProducer(2, 1, TOPIC, 100)]
    assert "off" not in driven.at(1099)
    assert "off" in driven.at(1100)


def test_a_limiter_that_is_heard_before_a_socket_makes_no_receipt_late() -> None:
    driven = Driven()
    driven.mark()
    driven.clock.jump_to(START_MS + 400)
    driven.mark(producer=2)
    driven.seat.answered(1, START_MS + 400)

    assert "off" not in driven.at(400)
    assert driven.receipts("in_time") == 1


def test_a_receipt_that_is_read_after_the_gate_acted_is_too_late() -> None:
    driven = Driven()
    driven.mark()
    driven.at(101)
    driven.seat.answered(1, driven.clock.now_ms())

    assert driven.receipts("ignored") == 1


def test_a_receipt_of_the_bytes_that_were_read_already_waits_for_reads() -> None:
    """One chunk of the socket holds two receipts, and something turned reads off in between."""
    driven = Driven()
    driven.mark()
    driven.mark(producer=2)
    driven.seat.answered(1, START_MS)
    driven.condition(is_set=True)
    driven.seat.answered(2, START_MS)

    assert driven.feed.view("c")["queued"] == [2]
    driven.condition(is_set=False)
    assert driven.phase(2) == "C"


def test_a_client_that_leaves_lets_its_name_go_and_nothing_is_due_any_more() -> None:
    driven = Driven()
    driven.mark()
    with pytest.raises(NameTaken):
        driven.feed.join("c", Told(), supports=True)
    driven.seat.leave()

    assert driven.at(10_000) == []
    assert (driven.feed.names(), driven.clock.waiting) == ([], 0)
    driven.feed.join("c", Told(), supports=False)
    assert driven.feed.names() == ["c"]


def test_one_timer_waits_however_many_commands_were_answered() -> None:
    driven = Driven()
    for ordinal in range(1, 50):
        driven.mark(ordinal=ordinal, balance=-49 - ordinal)
        driven.seat.answered(ordinal, driven.clock.now_ms())

    assert driven.clock.waiting == 1


def test_an_unmark_of_all_producers_releases_each_and_what_is_marked_late() -> None:
    driven = Driven(supports=False)
    driven.mark(producer=1, ordinal=5)
    assert driven.feed.unmark_all("c", TOPIC, 9) is None

    assert driven.link.taken() == ["on"]
    assert driven.mark(producer=2, ordinal=8) == []
    assert driven.mark(producer=2, ordinal=10) == ["off"]
    assert driven.feed.unmark_all("c", TOPIC, 0) == BadInput.BAD_ORDINAL
    assert driven.feed.unmark_all("other", TOPIC, 1) == BadInput.UNKNOWN_CONNECTION


def test_an_unmark_of_all_producers_is_checked_also_where_there_are_none() -> None:
    driven = Driven()
    driven.feed.join("none", Told(), supports=True)
    for connection in ("c", "none"):
        assert driven.feed.unmark_all(connection, PENDING, 1) == BadInput.BAD_REASON
        assert driven.feed.unmark_all(connection, TOPIC, "abc") == BadInput.BAD_ORDINAL  # type: ignore[arg-type]
        assert driven.feed.unmark_all(connection, TOPIC, 1) is None
    assert driven.feed.metrics.values()["headgate.input.rejected.count{error=bad_ordinal}"] == 2


def test_what_a_machine_refuses_is_said() -> None:
    driven = Driven()

    assert driven.feed.mark("other", 1, [Trip(0, 1, [(0, 1)])]) == BadInput.UNKNOWN_CONNECTION
    assert driven.feed.mark("c", 3, [Trip(0, 1, [(0, 1)])]) == BadInput.UNKNOWN_PRODUCER
    assert driven.feed.mark("c", 1, []) == BadInput.BAD_REASON
    assert driven.feed.view("other") is None


def test_everything_that_is_emitted_is_heard() -> None:
    driven = Driven()
    driven.mark()
    driven.at(101)

    assert [(name, type(output).__name__) for name, output in driven.emitted] == [
        ("c", "Command"),
        ("c", "Paused"),
    ]


def listen(feed: MachineFeed, heard: Heard) -> None:
    """As the control port does."""
    feed.listen(heard)
    for connection in feed.names():
        for event in feed.standing(connection):
            heard(connection, event)


def test_who_listens_later_hears_first_what_still_holds() -> None:
    driven, heard = Driven(supports=False), []
    driven.mark()
    driven.feed.join("b", Told(), supports=True)
    listen(driven.feed, lambda *event: heard.append(event))
    assert [(name, type(event).__name__) for name, event in heard] == [
        ("b", "Joined"),
        ("c", "Joined"),
        ("c", "Paused"),
    ]
    assert driven.feed.unmark("c", 1, 0, 1) is None
    driven.seat.leave()
    assert [(name, type(event).__name__) for name, event in heard[3:]] == [("c", "ReadsResumed"), ("c", "Left")]


def test_who_listens_twice_hears_once_what_comes_and_nothing_of_a_pause_that_is_over() -> None:
    driven = Driven(supports=False)
    driven.mark()
    driven.feed.unmark("c", 1, 0, 1)
    driven.emitted.clear()
    listen(driven.feed, driven._heard)
    driven.seat.leave()
    assert [type(event).__name__ for _, event in driven.emitted] == ["Joined", "Left"]


def test_who_listens_no_more_hears_nothing() -> None:
    driven = Driven()
    driven.feed.unlisten(driven._heard)
    driven.mark()
    assert driven.emitted == []


def test_names_and_ids_of_producers_belong_together() -> None:
    driven = Driven()
    assert driven.feed.open("c", 1, "t1") is None
    assert driven.feed.open("c", 9, "t1") == BadInput.DUPLICATE_PRODUCER
    assert driven.feed.open("c", 1, "t1", "other") == BadInput.DUPLICATE_PRODUCER
    assert driven.feed.open("c", 9, "t1", "other") is None
    assert driven.feed.producers("c").id_of(ProducerName("t1", "other")) == 9
    assert driven.feed.tell("c", lambda at_ms: CloseProducer(at_ms, 9)) is None
    assert driven.feed.producers("c").id_of(ProducerName("t1", "other")) is None
    assert driven.feed.open("c", 10, "t1", "other") is None
    assert driven.feed.open("d", 1, "t1") == BadInput.UNKNOWN_CONNECTION


def test_a_connection_has_as_many_producers_as_are_allowed_and_room_again_for_one_that_closed() -> None:
    driven = Driven()
    feed = MachineFeed(BrokerSettings(), driven.clock, driven.feed.metrics, max_producers=2)
    for connection in ("c", "d"):
        feed.join(connection, Told(), supports=True)
        assert [feed.open(connection, producer, f"t{producer}") for producer in (1, 2)] == [None, None]
    assert feed.open("c", 3, "t3") == "too_many_producers: 2 of a connection may be open at once; close others"
    assert feed.metrics.values()["headgate.input.rejected.count{error=too_many_producers}"] == 1
    assert feed.producers("c").id_of(ProducerName("t3", "")) is None
    assert feed.open("c", 2, "t2") is None
    assert feed.tell("c", lambda at_ms: CloseProducer(at_ms, 2)) is None
    assert feed.open("c", 3, "t3") is None


turns = st.lists(st.tuples(st.integers(1, 400), st.sampled_from((0, 1, 2)), st.integers(0, 100)), max_size=30)


@given(turns)
def test_a_client_that_answers_in_time_is_always_read_however_late_the_gate_is(
    turns: list[tuple[int, int, int]],
) -> None:
    """Each turn of the gate comes some ms after the last: perhaps a mark, then what has arrived, then what is due."""
    driven, ordinals, arriving = Driven(), {1: 0, 2: 0}, []
    for passed_ms, marked, answer_ms in turns:
        now_ms = driven.clock.now_ms() + passed_ms
        driven.clock.jump_to(now_ms)
        said: list[ThrottleProducer | str] = []
        if marked:
            ordinals[marked] += 1
            said += driven.mark(marked, ordinals[marked], -49 * ordinals[marked])
        for arrived_ms, request_id in arriving:
            if arrived_ms <= now_ms:
                driven.seat.answered(request_id, now_ms)
        arriving = [one for one in arriving if one[0] > now_ms]
        driven.clock.pass_to(now_ms)
        said += driven.link.taken()
        assert "off" not in said
        arriving += [(now_ms + answer_ms, one.request_id) for one in said if isinstance(one, ThrottleProducer)]


def test_a_late_gate_takes_no_publish_for_one_within_a_window_that_is_over() -> None:
    """Producer 1 obeyed; the gate was busy when its window ended, and time is held back for the receipt of 2."""
    driven = Driven()
    driven.mark(producer=1, balance=-25)
    driven.seat.answered(1, driven.clock.now_ms())
    driven.mark(producer=2)
    driven.clock.jump_to(START_MS + 300)
    assert driven.feed.tell("c", lambda at_ms: Publish(at_ms, 1)) is None

    assert driven.link.taken() == []
    assert driven.feed.view("c")["reads"] == "on"


def test_a_producer_that_closed_under_a_pause_it_began_is_still_named_to_who_listens_later() -> None:
    driven, heard = Driven(supports=False), []
    driven.mark(producer=1)
    driven.mark(producer=2)
    assert driven.feed.tell("c", lambda at_ms: CloseProducer(at_ms, 1)) is None
    assert driven.feed.open("c", 1, "another") is None
    listen(driven.feed, lambda name, event: heard.append(event_row(name, event)))

    assert [row["topic"] for row in heard if row["event"] == "reads_paused"] == ["t1"]


steps = st.lists(
    st.tuples(st.sampled_from(("open", "mark", "publish", "close", "condition", "clear", "pass")), st.integers(1, 3))
)


@given(supports=st.booleans(), steps=steps)
def test_whatever_opens_and_closes_who_listens_later_hears_rows(supports: bool, steps: list[tuple[str, int]]) -> None:
    """Producers 1 to 3, whose names go round. The last step may hold the reads, or close who holds them."""
    driven = Driven(supports=supports)
    feed, rows = driven.feed, []
    feed.listen(lambda name, event: rows.append(event_row(name, event)))
    for ordinal, (step, producer) in enumerate(steps, start=1):
        match step:
            case "open":
                feed.open("c", producer, f"t{(producer + ordinal) % 3}")
            case "mark":
                feed.mark("c", producer, [Trip(0, ordinal, [(-49, 100)])])
            case "publish":
                feed.tell("c", lambda at_ms, id_=producer: Publish(at_ms, id_))
            case "close":
                feed.tell("c", lambda at_ms, id_=producer: CloseProducer(at_ms, id_))
            case "condition":
                feed.tell("c", lambda at_ms, id_=producer, n=ordinal: ConditionSet(at_ms, PENDING, n, id_))
            case "clear":
                feed.tell("c", lambda at_ms, n=ordinal: ConditionClear(at_ms, PENDING, n))
            case "pass":
                driven.at(driven.clock.now_ms() - START_MS + 60 * producer)
        later: list[Any] = []
        hear = partial(_keep_row, later)
        listen(feed, hear)
        feed.unlisten(hear)
        view = feed.view("c")
        is_off = any(row["event"] == "reads_paused" for row in later)
        assert is_off == (probe_row(view, feed.producers("c"))["reads"] == "off")


def _keep_row(rows: list[Any], name: str, event: Event) -> None:
    rows.append(event_row(name, event))
