"""How long a client may take to ask: uvicorn alone waits for ever for a first request, and for the rest of one."""

import asyncio
from typing import ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol


class PatientProtocol(H11Protocol):
    """A connection ends that brings no whole head of a request within PATIENCE_S, of connecting or of the last answer.

    Answers, and bodies of requests, have as much time as they need.
    """

    PATIENCE_S: ClassVar[float] = 10.0
    _waiting: asyncio.TimerHandle

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._waiting = self.loop.call_later(self.PATIENCE_S, self._give_up)

    def connection_lost(self, exc: Exception | None) -> None:
        self._waiting.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        self._waiting.cancel()
        self._waiting = self.loop.call_later(self.PATIENCE_S, self._give_up)
        super().on_response_complete()

    def _give_up(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()
