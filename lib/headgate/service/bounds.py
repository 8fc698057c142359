"""How much of `headgate serve` there is at once: connections, and requests that are answered."""

import asyncio
import socket
from collections.abc import Callable, Coroutine
from typing import Any

import uvicorn
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headgate.hosts import take_in
from headgate.service.patience import PatientProtocol

_TOO_MANY = "Too many requests are being answered; ask again later.\n"
_STOPS = "The service stops; ask again later.\n"
_MAY_BE_DONE = "The service stops; whether this was done is not known: look before you repeat it.\n"
_READS = {"GET", "HEAD", "OPTIONS"}


class AtOnce:
    """At most `most` requests are answered at once, also of clients that have gone; further ones get 503."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app, self._most = app, most
        self._under_way = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._under_way >= self._most:
            await PlainTextResponse(_TOO_MANY, 503)(scope, receive, send)
            return
        has_begun = False

        async def noted(message: Message) -> None:
            nonlocal has_begun
            await send(message)
            has_begun = True

        self._under_way += 1
        try:
            await self._app(scope, receive, noted)
        except asyncio.CancelledError:  # the service stops, and uvicorn says what it no longer waits for
            if has_begun:
                while (await receive())["type"] != "http.disconnect":  # BoundedServer sees to that
                    pass
            else:  # a thread may go on with the change
                said = _STOPS if scope["method"] in _READS else _MAY_BE_DONE
                await PlainTextResponse(said, 503)(scope, receive, send)
        finally:
            self._under_way -= 1


class BoundedServer(uvicorn.Server):
    """At most `most` connections are open, those included that have not asked yet; one more is closed at once, before
    TLS, and `refused` is called. TLS has the protocol's PATIENCE_S to begin.

    uvicorn alone takes connections in until no descriptor is left, and gives TLS 60 s.
    The socket that it runs with does not block.
    """

    def __init__(
        self, config: uvicorn.Config, protocol: type[PatientProtocol], most: int, refused: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._protocol, self._most, self._refused = protocol, most, refused
        self._clients: set[socket.socket] = set()
        """All that are open, and some that are closed."""
        self._tasks: set[asyncio.Task[None]] = set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to take connections in. Source: uvicorn.Server"""
        self.servers = []  # of asyncio's own there are none
        for listener in sockets or []:
            self._begin(take_in(listener, self._came))
        self.started = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more in, and end. Source: uvicorn.Server"""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await super().shutdown(sockets)
        await self._break_off()

    async def _break_off(self) -> None:
        """End what uvicorn no longer waits for: what has begun to be answered ends with its connection."""
        tasks = list(self.server_state.tasks)
        for task in tasks:
            task.cancel()  # after a second Ctrl-C uvicorn has not
        for connection in list(self.server_state.connections):
            if isinstance(connection, PatientProtocol):
                connection.break_off()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _begin(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _came(self, client: socket.socket, _: str) -> None:
        if len(self._clients) >= self._most:
            self._clients = {one for one in self._clients if one.fileno() >= 0}
        if len(self._clients) >= self._most:
            self._refused()
            client.close()
        else:
            self._clients.add(client)
            self._begin(self._connect(client))

    async def _connect(self, client: socket.socket) -> None:
        loop, tls = asyncio.get_running_loop(), self.config.ssl

        def protocol() -> PatientProtocol:
            return self._protocol(self.config, self.server_state, self.lifespan.state, loop)

        patience_s = None if tls is None else self._protocol.PATIENCE_S
        try:
            await loop.connect_accepted_socket(protocol, client, ssl=tls, ssl_handshake_timeout=patience_s)
        except OSError as error:  # of TLS, too, and of its timeout
            error.__traceback__ = None  # else it would keep TLS's buffers until the collector comes
            client.close()
