"""The port on which limiters drive the machines: JSON lines in, one JSON line back for each, and events."""

import asyncio
import hmac
import socket
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

from headgate.core.numbers import SECOND_MS
from headgate.core.protocol.counters import Counters
from headgate.errors import InvalidArgument
from headgate.gate.control_rows import (
    Opened,
    Told,
    Unmarked,
    Unopened,
    connection_of,
    event_line,
    line_of,
    probe_row,
    row_of,
    told,
)
from headgate.gate.events import Event
from headgate.gate.feed import GateClock, Timer
from headgate.gate.machine_feed import MachineFeed

ENDED = "headgate.gate.control.ended.count"
_WRITE_BYTES = 65_536
"""Answers are written together up to here; while more than that waits to be read, no line is answered."""
_OK: Mapping[str, Any] = {"ok": True}
_OK_LINE = b'{"ok": true}\n'


@dataclass(frozen=True, slots=True)
class ControlLimits:
    """What limiters may take of the port.

    connections: at once. line_bytes: of a line. turn_ms: for lines of one connection, until clients and other limiters
    have their turn; the line that is being answered then is the last. unread_ms: without taking a byte, where more than
    64 KiB wait, or anything before the connection closes. waiting_bytes: of events that wait to be read, apart from one
    answer; 2,000 clients that pause at once, with names of 1,024 bytes, bring 6 MiB. wrong_lines: in wrong_lines_ms.
    token_ms: until the token is shown. silent_ms: without a byte while it is read, unless it subscribed.
    """

    connections: int = 100
    line_bytes: int = 65_536
    turn_ms: int = 2
    unread_ms: int = 30_000
    waiting_bytes: int = 2**23
    wrong_lines: int = 100
    wrong_lines_ms: int = 10_000
    token_ms: int = 3_000
    silent_ms: int = 600_000


@dataclass(frozen=True, slots=True)
class Port:
    """What the connections of limiters share. token: what the first line has to show, as {"token": ...}; None: nothing.

    say: hears of those that are ended and cannot be told. open_: those that are open.
    """

    feed: MachineFeed
    counters: Counters
    clock: GateClock
    token: bytes | None = field(repr=False)
    limits: ControlLimits
    say: Callable[[str], None]
    open_: set["Control"] = field(default_factory=set)


class Control(asyncio.Protocol):
    """A limiter's connection: its lines act in their order, each when its turn comes.

    A line is answered with {"ok": true}, with what it asked for, or with {"error": ...}, and changes nothing then.
    While answers wait to be read, no line is answered and nothing is read, so one answer waits at most, whatever its
    size. Events are written at once; those that say what held at `subscribe` are written as they are read.
    Beyond ControlLimits the connection ends, with an error as its last line unless it does not read; other connections
    do not notice. Whoever reads gets all that was written before the end.
    """

    def __init__(self, port: Port) -> None:
        self._port = port
        self._limits = port.limits
        self._has_shown_token = port.token is None
        self._has_subscribed = False
        self._untold: dict[str, None] | None = None
        """While `subscribe` is being answered: the clients of which nothing was said yet, the next one last."""
        self._kept = b""
        self._lines: deque[bytes] = deque()
        self._next_turn: Timer | None = None
        self._out = bytearray()
        self._written_bytes = 0
        self._answer_bytes = 0
        self._is_full = False
        self._unread: Timer | None = None
        self._is_ended = False
        """By the port; it is counted then."""
        self._heard_ms = port.clock.now_ms()
        self._wrong = 0
        self._wrong_since_ms = self._heard_ms
        self._waiting: Timer | None = None
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=_WRITE_BYTES)
        if len(self._port.open_) >= self._limits.connections:
            self._end("too many connections", f"{self._limits.connections} connections are all that are allowed")
            return
        self._port.open_.add(self)
        self._wait()

    def data_received(self, data: bytes) -> None:
        *lines, self._kept = (self._kept + data).split(b"\n")
        self._lines.extend(lines)
        self._turn()

    def eof_received(self) -> None:
        """It has said all, and all is answered, as it is not read before that. What waits is written as it reads."""
        self._close()

    def connection_lost(self, _: Exception | None) -> None:
        self._port.feed.unlisten(self._heard)
        self._port.open_.discard(self)
        for timer in (self._waiting, self._unread):
            if timer is not None:
                timer.cancel()

    def pause_writing(self) -> None:
        """It does not read as fast as it asks and hears."""
        self._is_full = True
        self._expect_read()

    def resume_writing(self) -> None:
        """It has read; where the connection closes it has to read the rest, too."""
        self._is_full = False
        if self._unread is not None and not self._transport.is_closing():
            self._unread.cancel()
        self._await_turn()

    def abort(self) -> None:
        """Close the connection at once."""
        self._transport.abort()

    def _turn(self) -> None:
        """Answer some lines; nothing is read while others wait, or answers do."""
        if self._next_turn is not None:
            self._next_turn.cancel()
            self._next_turn = None
        end_ms = self._port.clock.now_ms() + self._limits.turn_ms
        while self._can_answer():
            self._answer_next()
            if self._port.clock.now_ms() >= end_ms:
                break
        self._flush()
        if self._transport.is_closing():
            return
        if self._can_answer():
            self._await_turn()
        if self._is_behind():
            self._transport.pause_reading()
        elif len(self._kept) > self._limits.line_bytes:
            self._end_long_line()
        else:
            self._transport.resume_reading()
            if self._has_shown_token:
                self._heard_ms = self._port.clock.now_ms()

    def _has_lines(self) -> bool:
        return bool(self._lines) or self._untold is not None

    def _is_behind(self) -> bool:
        """Lines wait to be answered, or answers to be read."""
        return self._has_lines() or self._is_full

    def _can_answer(self) -> bool:
        return self._has_lines() and not self._is_full and not self._transport.is_closing()

    def _await_turn(self) -> None:
        if self._next_turn is None:
            self._next_turn = self._port.clock.call_at(self._port.clock.now_ms(), self._turn)

    def _answer_next(self) -> None:
        """A line, or the next part of the answer to `subscribe`."""
        if self._untold is None:
            self._take(self._lines.popleft())
        elif self._untold:
            connection, _ = self._untold.popitem()
            for event in self._port.feed.standing(connection):
                self._write(event_line(connection, event) or b"")
        else:
            self._untold = None
            self._say(_OK)

    def _expect_read(self) -> None:
        """End the connection once it has taken nothing for too long of what waits."""
        if self._unread is not None:
            self._unread.cancel()
        due_ms = self._port.clock.now_ms() + self._limits.unread_ms
        self._unread = self._port.clock.call_at(due_ms, partial(self._check_read, self._taken_bytes()))

    def _check_read(self, taken_bytes: int) -> None:
        if self._taken_bytes() == taken_bytes:
            self._end_unread(f"it read nothing for {self._limits.unread_ms / SECOND_MS:g} s of what waits")
        else:
            self._expect_read()

    def _taken_bytes(self) -> int:
        return self._written_bytes - self._transport.get_write_buffer_size()

    def _take(self, line: bytes) -> None:
        if len(line) > self._limits.line_bytes:
            self._end_long_line()
        elif line.strip():
            try:
                row = row_of(line)
                answer = self._asked(row) if self._has_shown_token else self._shown(row)
                if answer is not None:
                    self._say(answer)
            except InvalidArgument as error:
                self._say({"error": str(error)})
                self._count_wrong()

    def _shown(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        shown = row.get("token")
        if not isinstance(shown, str) or not hmac.compare_digest(
            shown.encode("utf-8", "surrogatepass"), self._port.token or b""
        ):
            raise InvalidArgument('the first line has to be {"token": ...} with the token of the gate')
        self._has_shown_token = True
        return _OK

    def _asked(self, row: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The answer; None for one that follows in parts."""
        feed = self._port.feed
        match row:
            case {"kind": "counts"}:
                return feed.metrics.values() | self._port.counters.values()
            case {"kind": "connections"}:
                return {"connections": feed.names()}
            case {"kind": "probe"}:
                connection = connection_of(row)
                view = feed.view(connection)
                return {"error": "unknown_connection"} if view is None else probe_row(view, feed.producers(connection))
            case {"kind": "subscribe"}:
                self._has_subscribed = True
                feed.listen(self._heard)
                self._untold = dict.fromkeys(reversed(feed.names()))
                return None
        refused: str | None
        match told(row, feed.producers):
            case Opened(connection, producer_id, name):
                refused = feed.open(connection, producer_id, *name)
            case Unmarked(connection, reason, ordinal):
                refused = feed.unmark_all(connection, reason, ordinal)
            case Unopened(connection):
                refused = feed.refuse_producer(connection)
            case Told(connection, make):
                refused = feed.tell(connection, make)
        return _OK if refused is None else {"error": str(refused)}

    def _heard(self, connection: str, event: Event) -> None:
        """Write an event; one of a client of which nothing was said yet shows in what is said of it then."""
        if self._untold is not None and connection in self._untold:
            return
        line = event_line(connection, event)
        if line is None:
            return
        self._write(line)
        self._flush()
        if self._transport.get_write_buffer_size() > self._limits.waiting_bytes + self._answer_bytes:
            self._end_unread(f"more than {self._limits.waiting_bytes} bytes of events wait unread")

    def _say(self, row: Mapping[str, Any]) -> None:
        line = _OK_LINE if row is _OK else line_of(row)
        self._answer_bytes = len(line)
        self._write(line)

    def _write(self, line: bytes) -> None:
        self._out += line
        if len(self._out) >= _WRITE_BYTES:
            self._flush()

    def _flush(self) -> None:
        out, self._out = self._out, bytearray()
        if out and not self._transport.is_closing():
            self._written_bytes += len(out)
            self._transport.write(out)

    def _count_wrong(self) -> None:
        now_ms = self._port.clock.now_ms()
        if now_ms - self._wrong_since_ms >= self._limits.wrong_lines_ms:
            self._wrong, self._wrong_since_ms = 0, now_ms
        self._wrong += 1
        if self._wrong > self._limits.wrong_lines:
            most = f"{self._limits.wrong_lines} wrong lines in {self._limits.wrong_lines_ms} ms"
            self._end("wrong lines", f"more than {most}")

    def _end_unread(self, what: str) -> None:
        if not self._is_ended:
            self._is_ended = True
            self._port.counters.add(ENDED, (("why", "does not read"),))
            host, port = self._transport.get_extra_info("peername")[:2]
            peer = f"{host} port {port}"
            self._port.say(f"closed a limiter's connection, {peer}: {what}; a limiter has to read all the time")
        self._transport.abort()

    def _end_long_line(self) -> None:
        self._end("long line", f"a line of more than {self._limits.line_bytes} bytes")

    def _wait(self) -> None:
        """End the connection once it has said nothing for too long. What it says while it is not read nobody knows."""
        if self._transport.is_closing() or self._has_subscribed:
            return
        if self._has_shown_token and self._is_behind():
            self._heard_ms = self._port.clock.now_ms()
        patience_ms = self._limits.silent_ms if self._has_shown_token else self._limits.token_ms
        due_ms = self._heard_ms + patience_ms
        if due_ms <= self._port.clock.now_ms():
            self._end("silent", f"{'nothing' if self._has_shown_token else 'no token'} came for {patience_ms} ms")
        else:
            self._waiting = self._port.clock.call_at(due_ms, self._wait)

    def _end(self, why: str, error: str) -> None:
        self._is_ended = True
        self._port.counters.add(ENDED, (("why", why),))
        self._say({"error": error})
        self._flush()
        self._close()

    def _close(self) -> None:
        """Close the connection once all is written, or nothing is read for too long."""
        self._transport.close()
        self._expect_read()


@asynccontextmanager
async def control_on(listener: socket.socket, port: Port) -> AsyncIterator[None]:
    """Limiters are let in while the block runs."""
    server = await asyncio.get_running_loop().create_server(lambda: Control(port), sock=listener)
    try:
        yield
    finally:
        server.close()
        for control in list(port.open_):
            control.abort()
        await asyncio.sleep(0)
