"""A limiter's connection, whose reader and whose time the test moves."""

import json
from typing import Any

import pytest

from headgate.core.protocol.broker.broker_metrics import BrokerMetrics
from headgate.core.protocol.broker.inputs import Trip
from headgate.core.protocol.broker.outputs import BadInput
from headgate.core.protocol.counters import Counters
from headgate.core.protocol.settings import BrokerSettings
from headgate.gate.control import Control, ControlLimits, Port
from headgate.gate.machine_feed import MachineFeed
from unit.gate.driven import HandClock, Told

HIGH_BYTES = 65_536
UNREAD = "headgate.gate.control.ended.count{why=does not read}"
SILENT = "headgate.gate.control.ended.count{why=silent}"
CLIENTS = [f"{number:04} {'c' * 1000}" for number in range(500)]
SAID = (
    "closed a limiter's connection, 127.0.0.1 port 41234: it read nothing for 30 s of what waits;"
    " a limiter has to read all the time"
)
ASK = b'{"kind": "connections"}\n'
SUBSCRIBE = b'{"kind": "subscribe"}\n'


class Socket:
    """A transport whose other end takes what the test says."""

    def __init__(self) -> None:
        self.waiting = bytearray()
        self.most_bytes = 0
        self.is_closed = self.is_aborted = self.is_paused = False
        self.protocol: Control

    def set_write_buffer_limits(self, high: int) -> None:
        self._high_bytes, self._is_full = high, False

    def get_write_buffer_size(self) -> int:
        return len(self.waiting)

    def write(self, written: bytes) -> None:
        self.waiting += written
        self.most_bytes = max(self.most_bytes, len(self.waiting))
        if len(self.waiting) > self._high_bytes and not self._is_full:
            self._is_full = True
            self.protocol.pause_writing()

    def taken(self, most: int) -> bytes:
        taken = bytes(self.waiting[:most])
        del self.waiting[:most]
        if self._is_full and len(self.waiting) <= self._high_bytes // 4:
            self._is_full = False
            self.protocol.resume_writing()
        return taken

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True

    def abort(self) -> None:
        self.is_closed = self.is_aborted = True

    def get_extra_info(self, _: str) -> tuple[str, int]:
        return ("127.0.0.1", 41234)


class SlowFeed(MachineFeed):
    """An unmark of all producers takes a millisecond."""

    clock: HandClock
    unmarked = 0

    def unmark_all(self, connection: str, reason: int, ordinal: int) -> BadInput | None:
        self.unmarked += 1
        self.clock.jump_to(self.clock.now_ms() + 1)
        return super().unmark_all(connection, reason, ordinal)


class Driven:
    """A limiter's connection to a gate with these clients."""

    def __init__(self, limits: ControlLimits, clients: list[str], token: bytes | None = None) -> None:
        self.clock, self.counters, self.said, self.socket = HandClock(), Counters(), [], Socket()
        self.feed = SlowFeed(BrokerSettings(), self.clock, BrokerMetrics())
        self.feed.clock = self.clock
        self.seats = {name: self.join(name) for name in clients}
        port = Port(self.feed, self.counters, self.clock, token, limits, self.said.append)
        self.socket.protocol = self.control = Control(port)
        self.control.connection_made(self.socket)  # type: ignore[arg-type]

    def join(self, name: str) -> Any:
        """A client without the protocol, so that each hold pauses its reads."""
        seat = self.feed.join(name, Told(), supports=False)
        self.feed.open(name, 1, "t")
        return seat

    def hold(self, name: str, ordinal: int = 1) -> None:
        assert self.feed.mark(name, 1, [Trip(0, ordinal, [(-1, 100)])]) is None

    def release(self, name: str, ordinal: int = 1) -> None:
        assert self.feed.unmark(name, 1, 0, ordinal) is None

    def taken(self, most: int = 2**30) -> bytes:
        """What the limiter reads, after all that is due at once was done."""
        self.clock.pass_to(self.clock.now_ms())
        return self.socket.taken(most)

    def drained(self) -> list[dict[str, Any]]:
        """All lines, read by and by."""
        heard = bytearray()
        while taken := self.taken(50_000):
            heard += taken
        return [json.loads(line) for line in heard.splitlines()]

    @property
    def unread(self) -> int:
        return self.counters.values().get(UNREAD, 0)


def test_answers_of_any_size_reach_a_limiter_that_reads_and_one_waits_at_a_time() -> None:
    driven = Driven(ControlLimits(), CLIENTS)
    driven.control.data_received(ASK * 60)
    assert driven.socket.is_paused

    answers = driven.drained()
    assert answers == [{"connections": CLIENTS}] * 60
    assert driven.socket.most_bytes < HIGH_BYTES + len(json.dumps(answers[0])) + 2
    assert (driven.unread, driven.socket.is_paused) == (0, False)


@pytest.mark.parametrize(("taken_bytes", "is_ended"), [(1, False), (0, True)])
def test_a_limiter_is_ended_if_it_takes_nothing_for_30_s_and_not_if_it_is_slow(
    taken_bytes: int, is_ended: bool
) -> None:
    driven = Driven(ControlLimits(), CLIENTS)
    driven.control.data_received(ASK)
    for second in range(0, 300, 20):
        driven.clock.pass_to(second * 1000)
        driven.taken(taken_bytes)

    assert (driven.socket.is_closed, driven.unread) == (is_ended, is_ended)
    assert driven.said == [SAID] * is_ended


@pytest.mark.parametrize(("taken_bytes", "is_ended"), [(1, False), (0, True)])
@pytest.mark.parametrize("left_bytes", [100_000, 10_000], ids=["many wait", "some wait"])
def test_a_limiter_that_has_ended_its_lines_has_as_much_time_to_read(
    left_bytes: int, taken_bytes: int, is_ended: bool
) -> None:
    driven = Driven(ControlLimits(), CLIENTS)
    driven.control.data_received(ASK)
    driven.taken(len(driven.socket.waiting) - left_bytes)
    driven.control.eof_received()
    driven.taken(left_bytes - 10_000)
    for second in range(0, 300, 20):
        driven.clock.pass_to(second * 1000)
        driven.taken(taken_bytes)

    assert (driven.socket.is_closed, driven.socket.is_aborted, driven.unread) == (True, is_ended, is_ended)
    assert driven.said == [SAID] * is_ended
    driven.control.connection_lost(None)
    assert driven.clock.waiting == 0


def test_a_limiter_that_is_ended_and_does_not_read_why_is_counted_once() -> None:
    driven = Driven(ControlLimits(wrong_lines=0), [])
    driven.control.data_received(b"no JSON\n")
    driven.clock.pass_to(29_999)
    assert (driven.socket.is_closed, driven.socket.is_aborted) == (True, False)
    driven.clock.pass_to(30_000)

    assert (driven.socket.is_aborted, driven.said) == (True, [])
    assert driven.counters.values() == {"headgate.gate.control.ended.count{why=wrong lines}": 1}


def test_a_limiter_is_not_silent_while_answers_wait_but_once_it_has_read_them_and_says_nothing() -> None:
    """It reads 3 answers of half a megabyte slowly for 1,190 s, of which silence takes 600 s at most, then the rest."""
    driven = Driven(ControlLimits(), CLIENTS)
    driven.control.data_received(ASK * 3)
    for second in range(0, 1200, 10):
        driven.clock.pass_to(second * 1000)
        driven.taken(500)
    assert (driven.socket.is_closed, driven.socket.is_paused) == (False, True)

    while driven.taken():
        pass
    driven.clock.pass_to(1_789_999)
    assert not driven.socket.is_closed
    driven.clock.pass_to(1_790_000)
    assert (driven.socket.is_closed, driven.counters.values()) == (True, {SILENT: 1})
    assert driven.drained() == [{"error": "nothing came for 600000 ms"}]


@pytest.mark.parametrize(
    ("waiting", "later"), [(b"\n" * 10, b""), (b"", b"\n")], ids=["lines that wait", "lines that come"]
)
def test_nothing_but_the_token_gives_more_time_to_show_it(waiting: bytes, later: bytes) -> None:
    driven = Driven(ControlLimits(turn_ms=0), [], token=b"s3cret")
    driven.clock.jump_to(2999)
    driven.control.data_received(waiting + later)
    driven.clock.jump_to(3000)
    driven.clock.pass_to(3000)

    assert (driven.socket.is_closed, driven.counters.values()) == (True, {SILENT: 1})
    assert driven.drained() == [{"error": "no token came for 3000 ms"}]


def test_a_limiter_that_has_shown_the_token_may_be_silent_for_longer() -> None:
    driven = Driven(ControlLimits(), [], token=b"s3cret")
    driven.control.data_received(b'{"token": "s3cret"}\n')
    driven.clock.pass_to(599_999)
    assert not driven.socket.is_closed
    driven.clock.pass_to(600_000)
    assert driven.drained() == [{"ok": True}, {"error": "nothing came for 600000 ms"}]


def test_a_limiter_that_has_subscribed_and_read_all_may_be_idle_for_as_long_as_it_likes() -> None:
    driven = Driven(ControlLimits(), CLIENTS)
    driven.control.data_received(SUBSCRIBE)
    driven.drained()
    driven.clock.pass_to(10_000_000)

    assert not driven.socket.is_closed


def test_events_that_nobody_reads_end_a_connection_at_their_bound_whatever_the_answer_before_them() -> None:
    driven = Driven(ControlLimits(waiting_bytes=100_000), CLIENTS[:300])
    driven.control.data_received(SUBSCRIBE)
    driven.drained()
    driven.control.data_received(ASK)
    answer_bytes = len(driven.socket.waiting)
    assert answer_bytes > 300_000
    for name in CLIENTS[:80]:
        driven.hold(name)
    assert not driven.socket.is_closed
    for name in CLIENTS[80:120]:
        driven.hold(name)

    assert (driven.socket.is_closed, driven.unread) == (True, 1)
    assert len(driven.socket.waiting) < answer_bytes + 102_000
    assert "more than 100000 bytes of events wait unread" in driven.said[0]


def test_subscribe_says_what_holds_as_it_is_read_and_then_answers() -> None:
    """Clients come, go, pause and resume before anything was said of them, and after."""
    driven = Driven(ControlLimits(), CLIENTS)
    for name in CLIENTS[::2]:
        driven.hold(name)
    driven.control.data_received(SUBSCRIBE + ASK)
    assert 0 < driven.socket.most_bytes < HIGH_BYTES + 3000

    for place in (0, -2):
        driven.release(CLIENTS[place])
        driven.hold(CLIENTS[place + 1])
        driven.seats[CLIENTS[place + 3 if place == 0 else -5]].leave()
    driven.join("new")
    driven.seats[CLIENTS[-7]].leave()
    driven.join(CLIENTS[-7])
    driven.hold(CLIENTS[-7])

    there: dict[str, bool] = {}
    heard = driven.drained()
    for row in heard[:-2]:
        match row["event"]:
            case "joined":
                assert row["connection"] not in there
                there[row["connection"]] = True
            case "left":
                del there[row["connection"]]
            case event:
                assert there[row["connection"]] == (event == "reads_paused")
                there[row["connection"]] = event == "reads_resumed"
    assert heard[-2:] == [{"ok": True}, {"connections": driven.feed.names()}]
    assert there == {name: driven.feed.view(name)["reads"] == "on" for name in driven.feed.names()}  # type: ignore[index]


def test_subscribe_is_answered_also_where_all_have_left_meanwhile() -> None:
    driven = Driven(ControlLimits(turn_ms=0), ["a", "b"])
    driven.control.data_received(SUBSCRIBE)
    for seat in driven.seats.values():
        seat.leave()
    assert driven.drained() == [{"ok": True}]


def test_lines_that_take_long_let_others_have_their_turn() -> None:
    driven = Driven(ControlLimits(turn_ms=2), ["c"])
    unmark = b'{"kind": "unmark", "connection": "c", "reason": "TOPIC_PUBLISH_RATE", "ordinal": 1}\n'
    driven.control.data_received(unmark * 10)
    assert (driven.feed.unmarked, driven.socket.is_paused) == (2, True)

    assert driven.drained() == [{"ok": True}] * 10
    assert not driven.socket.is_paused


def test_a_condition_of_a_producer_that_is_not_open_changes_nothing() -> None:
    driven = Driven(ControlLimits(), ["c"])
    row = {"kind": "condition_set", "connection": "c", "topic": "u", "reason": "BROKER_PUBLISH_RATE", "ordinal": 1}
    for connection in ("c", "gone"):
        driven.control.data_received(json.dumps(row | {"connection": connection}).encode() + b"\n")

    assert driven.drained() == [{"error": "unknown_producer"}, {"error": "unknown_connection"}]
    assert driven.feed.view("c")["holds"] == []  # type: ignore[index]
