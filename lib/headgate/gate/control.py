"""The port on which limiters drive the machines: JSON lines in, one JSON line back for each."""

import asyncio
import hmac
import json
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

from headgate.core.protocol.counters import Counters
from headgate.errors import InvalidArgument
from headgate.gate.control_rows import Opened, event_row, probe_row, row_of, told
from headgate.gate.events import Event
from headgate.gate.machine_feed import MachineFeed

MAX_LINE_BYTES = 65_536
MAX_WAITING_BYTES = 2**20


class Control(asyncio.Protocol):
    """A limiter's connection: its lines act in their order, each when it is read.

    A line is answered with {"ok": true}, with what it asked for, or with {"error": ...}, and changes nothing then. A
    line above MAX_LINE_BYTES, and answers and events that nobody reads, end the connection.

    Arguments: `token`, what the first line has to show, as {"token": ...}; None: nothing. `open_`: where connections
    are while they are open.
    """

    def __init__(
        self, feed: MachineFeed, counters: Counters, token: bytes | None, open_: set[asyncio.Transport]
    ) -> None:
        self._feed = feed
        self._counters = counters
        self._token = token
        self._kept = b""
        self._open = open_
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._open.add(self._transport)
        self._transport.set_write_buffer_limits(high=MAX_WAITING_BYTES)

    def data_received(self, data: bytes) -> None:
        *lines, self._kept = (self._kept + data).split(b"\n")
        answers = [self._answer(line) for line in lines if line.strip()]
        if max(map(len, (self._kept, *lines))) > MAX_LINE_BYTES:
            answers.append({"error": f"a line of more than {MAX_LINE_BYTES} bytes"})
            self._write(answers)
            self._close()
        else:
            self._write(answers)

    def connection_lost(self, _: Exception | None) -> None:
        self._feed.unlisten(self._heard)
        if self._transport is not None:
            self._open.discard(self._transport)

    def pause_writing(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _write(self, answers: list[Mapping[str, Any]]) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(b"".join(_line(answer) for answer in answers))

    def _close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def _answer(self, line: bytes) -> Mapping[str, Any]:
        try:
            row = row_of(line)
            if self._token is not None:
                return self._shown(row)
            return self._asked(row)
        except InvalidArgument as error:
            return {"error": str(error)}

    def _shown(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        shown = row.get("token")
        if not isinstance(shown, str) or not hmac.compare_digest(shown.encode(), self._token or b""):
            return {"error": 'the first line has to be {"token": ...} with the token of the gate'}
        self._token = None
        return _OK

    def _asked(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        match row:
            case {"kind": "counts"}:
                return self._feed.metrics.values() | self._counters.values()
            case {"kind": "connections"}:
                return {"connections": self._feed.names()}
            case {"kind": "probe", "connection": str(connection)}:
                view = self._feed.view(connection)
                known = self._feed.producers(connection)
                return {"error": "unknown_connection"} if view is None else probe_row(view, known)
            case {"kind": "subscribe"}:
                self._feed.listen(self._heard)
                return _OK
        said = told(row, self._feed.producers)
        if isinstance(said, Opened):
            refused = self._feed.open(said.connection, said.producer_id, *said.name)
        else:
            refused = self._feed.tell(*said)
        return _OK if refused is None else {"error": str(refused)}

    def _heard(self, connection: str, event: Event) -> None:
        row = event_row(connection, event, self._feed.producers(connection))
        if row is not None:
            self._write([row])


_OK: Mapping[str, Any] = {"ok": True}
_OK_LINE = b'{"ok": true}\n'


def _line(answer: Mapping[str, Any]) -> bytes:
    return _OK_LINE if answer is _OK else json.dumps(answer).encode() + b"\n"


@asynccontextmanager
async def control_on(
    listener: socket.socket, feed: MachineFeed, counters: Counters, token: bytes | None
) -> AsyncIterator[None]:
    """Limiters are let in while the block runs."""
    opened: set[asyncio.Transport] = set()
    server = await asyncio.get_running_loop().create_server(
        lambda: Control(feed, counters, token, opened), sock=listener
    )
    try:
        yield
    finally:
        server.close()
        for transport in list(opened):
            transport.abort()
        await asyncio.sleep(0)
