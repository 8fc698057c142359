"""The gate's socket: it takes in whom it may, and ends with all of them."""

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from headgate.core.numbers import SECOND_MS
from headgate.core.protocol.counters import Counters
from headgate.gate.admission import Admission, Refusal
from headgate.gate.connection import ENDED, LINGER_MS, ClientConnection, Host
from headgate.gate.feed import Feed, GateClock
from headgate.gate.refusals import Refusals
from headgate.gate.session import Rules, refusal
from headgate.gate.settings import GateSettings
from headgate.hosts import BREATH_S, listening, take_in
from headgate.wire.pulsar_commands import ServerError

REFUSED = "headgate.gate.connection.refused.count"
SOCKET_BUFFER_BYTES = 65_536
"""What the system keeps for a client in each direction; it takes twice as much for its own book-keeping."""
KEEP_ALIVE = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 4, "TCP_USER_TIMEOUT": 30_000}
"""A client that does not answer for 30 s has vanished: seconds, seconds, probes, ms. Linux has all of them."""


class Gate:
    """Clients have nothing in common but the event loop and the bounds of Admission, and none of them waits for
    another. Whom these keep out is refused before TLS begins, or at CONNECT.

    Files of certificate and token are read, and the port is bound, when it is made: `address` is where it listens.
    Arguments: `say`, hears of connections that are refused, as Refusals says it.
    Raises EndpointError if nothing can listen there, ConfError for files that cannot be used.
    """

    def __init__(
        self, settings: GateSettings, feed: Feed, clock: GateClock, counters: Counters, say: Callable[[str], None]
    ) -> None:
        self._settings = settings
        self._refusals = Refusals(clock, say)
        self._admission = Admission(
            connections=settings.max_connections,
            handshakes=settings.max_handshakes,
            handshakes_per_address=settings.max_handshakes_per_address,
        )
        self._tls = settings.tls()
        rules = Rules(
            max_frame_bytes=settings.max_frame_bytes,
            handshake_timeout_ms=settings.handshake_timeout_ms,
            idle_timeout_ms=settings.idle_timeout_ms,
            token=settings.token(),
        )
        self._host = Host(rules, feed, clock, counters, settings.write_buffer_bytes)
        self._listener = listening(settings.host, settings.port, buffer_bytes=SOCKET_BUFFER_BYTES)
        self.address: tuple[str, int] = self._listener.getsockname()[:2]
        self._connections: set[ClientConnection] = set()
        self._arriving: set[asyncio.Task[None]] = set()

    @property
    def connections(self) -> int:
        """How many there are."""
        return len(self._connections)

    async def serve(self, stop: asyncio.Event) -> None:
        """Take clients in until `stop` is set; then end all of them, each having LINGER_MS to read what it was sent.

        Raises what the feed raises.
        """
        accepting, fed, stopped = (
            asyncio.ensure_future(one)
            for one in (take_in(self._listener, self._came), self._host.feed.run(), stop.wait())
        )
        try:
            done, _ = await asyncio.wait((accepting, fed, stopped), return_when=asyncio.FIRST_COMPLETED)
        finally:
            await _cancelled(accepting, stopped)
            self._listener.close()
            self._refusals.end()
            await self._end_all()
            await _cancelled(fed)
        for task in done:
            task.result()

    def _came(self, client: socket.socket, address: str) -> None:
        refused = self._admission.arrive(client, address)
        if refused is None:
            self._take_in(client, address)
        else:
            self._refuse(client, self._refused(address, refused))

    def _refuse(self, client: socket.socket, text: str) -> None:
        with client, suppress(OSError):
            client.setblocking(False)
            if self._tls is None:
                client.send(refusal(ServerError.TOO_MANY_REQUESTS, text))

    def _admit(self, client: socket.socket, address: str) -> str | None:
        refused = self._admission.join(client)
        return None if refused is None else self._refused(address, refused)

    def _refused(self, address: str, why: Refusal) -> str:
        """Count and report it. What the client is told."""
        limit = f"--{why.replace('_', '-')} {getattr(self._settings, why)}"
        self._host.counters.add(REFUSED, (("why", why),))
        self._refusals.add(address, limit)
        return f"no more places: {limit} is reached"

    def _take_in(self, client: socket.socket, address: str) -> None:
        try:
            _watch_over(client)
        except OSError:  # it has gone already
            self._admission.leave(client)
            client.close()
            return
        admit = partial(self._admit, client, address)
        connection = ClientConnection(self._host, admit, lambda: self._gone(client, connection))
        self._connections.add(connection)
        arriving = asyncio.ensure_future(self._shake_hands(client, connection))
        self._arriving.add(arriving)
        arriving.add_done_callback(self._arriving.discard)

    async def _shake_hands(self, client: socket.socket, connection: ClientConnection) -> None:
        timeout_s = self._settings.handshake_timeout_ms / SECOND_MS if self._tls is not None else None
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: connection,
                client,
                ssl=self._tls,
                ssl_handshake_timeout=timeout_s,
                ssl_shutdown_timeout=None if self._tls is None else LINGER_MS / SECOND_MS,
            )
        except OSError as error:  # of TLS, too, and of its timeout
            error.__traceback__ = None  # else it would keep TLS's buffers until the collector comes
            self._host.counters.add(ENDED, (("why", "no TLS handshake in time"),))
            self._gone(client, connection)
            client.close()
        except asyncio.CancelledError:
            self._gone(client, connection)
            client.close()
            raise

    def _gone(self, client: socket.socket, connection: ClientConnection) -> None:
        self._admission.leave(client)
        self._connections.discard(connection)

    async def _end_all(self) -> None:
        for arriving in self._arriving:
            arriving.cancel()
        for connection in list(self._connections):
            connection.end("the gate stopped")
        for _ in range(2 * LINGER_MS // 100):
            if not self._connections:
                return
            await asyncio.sleep(BREATH_S)
        for connection in list(self._connections):
            connection.abort()
        await asyncio.sleep(0)


async def _cancelled(*tasks: asyncio.Future[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _watch_over(client: socket.socket) -> None:
    """Have the system end a connection whose client has vanished without a word, also while nothing is read from it."""
    client.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEP_ALIVE.items():
        if hasattr(socket, name):
            client.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
