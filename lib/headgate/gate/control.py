"""The port on which limiters drive the machines: JSON lines in, one JSON line back for each, and events."""

import asyncio
import hmac
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

from headgate.core.protocol.counters import Counters
from headgate.errors import InvalidArgument
from headgate.gate.connection import LINGER_MS
from headgate.gate.control_rows import (
    Opened,
    Told,
    Unmarked,
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
"""Answers are written together up to here."""
_OK: Mapping[str, Any] = {"ok": True}
_OK_LINE = b'{"ok": true}\n'


@dataclass(frozen=True, slots=True)
class ControlLimits:
    """What limiters may take of the port.

    connections: at once. line_bytes: of a line. lines_a_turn: before clients and other limiters have their turn; until
    all are answered nothing more is read of the connection. waiting_bytes: of answers and events that nobody reads;
    2,000 names of 1,024 bytes are half of that. wrong_lines: in wrong_lines_ms. token_ms: until the token is shown.
    silent_ms: without a byte, unless it subscribed.
    """

    connections: int = 100
    line_bytes: int = 65_536
    lines_a_turn: int = 100
    waiting_bytes: int = 2**22
    wrong_lines: int = 100
    wrong_lines_ms: int = 10_000
    token_ms: int = 3_000
    silent_ms: int = 600_000


@dataclass(frozen=True, slots=True)
class Port:
    """What the connections of limiters share. token: what the first line has to show, as {"token": ...}; None: nothing.

    open_: those that are open.
    """

    feed: MachineFeed
    counters: Counters
    clock: GateClock
    token: bytes | None = field(repr=False)
    limits: ControlLimits
    open_: set["Control"] = field(default_factory=set)


class Control(asyncio.Protocol):
    """A limiter's connection: its lines act in their order, each when its turn comes.

    A line is answered with {"ok": true}, with what it asked for, or with {"error": ...}, and changes nothing then.
    Beyond ControlLimits the connection ends, with an error as its last line where it can be read; other connections do
    not notice.
    """

    def __init__(self, port: Port) -> None:
        self._port = port
        self._limits = port.limits
        self._has_shown_token = port.token is None
        self._has_subscribed = False
        self._kept = b""
        self._out = bytearray()
        self._heard_ms = port.clock.now_ms()
        self._wrong = 0
        self._wrong_since_ms = self._heard_ms
        self._waiting: Timer | None = None
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=self._limits.waiting_bytes)
        if len(self._port.open_) >= self._limits.connections:
            self._end("too many connections", f"{self._limits.connections} connections are all that are allowed")
            return
        self._port.open_.add(self)
        self._wait()

    def data_received(self, data: bytes) -> None:
        if self._has_shown_token:
            self._heard_ms = self._port.clock.now_ms()
        self._kept += data
        self._turn()

    def connection_lost(self, _: Exception | None) -> None:
        self._port.feed.unlisten(self._heard)
        self._port.open_.discard(self)
        if self._waiting is not None:
            self._waiting.cancel()

    def pause_writing(self) -> None:
        """More waits to be written than is allowed."""
        if not self._transport.is_closing():
            self._port.counters.add(ENDED, (("why", "does not read"),))
        self._transport.abort()

    def abort(self) -> None:
        """Close the connection at once."""
        self._transport.abort()

    def _turn(self) -> None:
        """Answer some lines; nothing is read while others wait."""
        if self._transport.is_closing():
            return
        *lines, self._kept = self._kept.split(b"\n", self._limits.lines_a_turn)
        for line in lines:
            self._take(line)
            if self._transport.is_closing():
                return
        self._flush()
        if b"\n" in self._kept:
            self._transport.pause_reading()
            self._port.clock.call_at(self._port.clock.now_ms(), self._turn)
        elif len(self._kept) > self._limits.line_bytes:
            self._end_long_line()
        else:
            self._transport.resume_reading()

    def _take(self, line: bytes) -> None:
        if len(line) > self._limits.line_bytes:
            self._end_long_line()
        elif line.strip():
            try:
                row = row_of(line)
                self._say(self._asked(row) if self._has_shown_token else self._shown(row))
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

    def _asked(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
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
                return _OK
        refused: str | None
        match told(row, feed.producers):
            case Opened(connection, producer_id, name):
                refused = feed.open(connection, producer_id, *name)
            case Unmarked(connection, reason, ordinal):
                refused = feed.unmark_all(connection, reason, ordinal)
            case Told(connection, make):
                refused = feed.tell(connection, make)
        return _OK if refused is None else {"error": str(refused)}

    def _heard(self, connection: str, event: Event) -> None:
        line = event_line(connection, event)
        if line is not None:
            self._write(line)
            self._flush()

    def _say(self, row: Mapping[str, Any]) -> None:
        self._write(_OK_LINE if row is _OK else line_of(row))

    def _write(self, line: bytes) -> None:
        self._out += line
        if len(self._out) >= _WRITE_BYTES:
            self._flush()

    def _flush(self) -> None:
        out, self._out = self._out, bytearray()
        if out and not self._transport.is_closing():
            self._transport.write(out)

    def _count_wrong(self) -> None:
        now_ms = self._port.clock.now_ms()
        if now_ms - self._wrong_since_ms >= self._limits.wrong_lines_ms:
            self._wrong, self._wrong_since_ms = 0, now_ms
        self._wrong += 1
        if self._wrong > self._limits.wrong_lines:
            most = f"{self._limits.wrong_lines} wrong lines in {self._limits.wrong_lines_ms} ms"
            self._end("wrong lines", f"more than {most}")

    def _end_long_line(self) -> None:
        self._end("long line", f"a line of more than {self._limits.line_bytes} bytes")

    def _wait(self) -> None:
        """End the connection once it has said nothing for too long."""
        if self._transport.is_closing() or self._has_subscribed:
            return
        patience_ms = self._limits.silent_ms if self._has_shown_token else self._limits.token_ms
        due_ms = self._heard_ms + patience_ms
        if due_ms <= self._port.clock.now_ms():
            self._end("silent", f"{'nothing' if self._has_shown_token else 'no token'} came for {patience_ms} ms")
        else:
            self._waiting = self._port.clock.call_at(due_ms, self._wait)

    def _end(self, why: str, error: str) -> None:
        self._port.counters.add(ENDED, (("why", why),))
        self._say({"error": error})
        self._flush()
        self._transport.close()
        self._port.clock.call_at(self._port.clock.now_ms() + LINGER_MS, self._transport.abort)


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
