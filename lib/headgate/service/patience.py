"""How long a client may take to ask: uvicorn alone waits for ever for a first request, and for the rest of one."""

import asyncio
from typing import ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol


class PatientProtocol(H11Protocol):
    """A connection ends that brings no whole request within PATIENCE_S, of connecting or of the last answer, or that
    takes nothing of an answer for so long.

    Answers that are made have as much time as they need.
    """

    PATIENCE_S: ClassVar[float] = 10.0
    LINGER_S: ClassVar[float] = 1.0
    """For the client's end of TLS when the service stops."""
    _waiting: asyncio.TimerHandle
    _unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._waiting = self.loop.call_later(self.PATIENCE_S, self._give_up)

    def connection_lost(self, exc: Exception | None) -> None:
        self._waiting.cancel()
        self._is_read()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """More waits to be read than uvicorn keeps."""
        super().pause_writing()
        self._unread = self._unread or self.loop.call_later(self.PATIENCE_S, self.transport.abort)

    def resume_writing(self) -> None:
        """The client reads again."""
        self._is_read()
        super().resume_writing()

    def _is_read(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def on_response_complete(self) -> None:
        self._waiting.cancel()
        self._waiting = self.loop.call_later(self.PATIENCE_S, self._give_up)
        super().on_response_complete()

    def shutdown(self) -> None:
        """The service stops: answers are finished, and a request that is not whole gets none."""
        super().shutdown()
        if self.cycle is not None and self.cycle.more_body:
            self.transport.abort()
        elif self.cycle is None or self.cycle.response_complete:
            self.loop.call_later(self.LINGER_S, self._leave)

    def _leave(self) -> None:
        """Unless an answer is still on its way."""
        if not self.transport.get_write_buffer_size():
            self.transport.abort()

    def break_off(self) -> None:
        """The service waits no longer: only a client that reads and has no answer yet can get one."""
        if self.cycle is None or self.cycle.response_started or self._unread is not None:
            self.transport.abort()

    def _give_up(self) -> None:
        if self.cycle is None or self.cycle.response_complete or self.cycle.more_body:
            self.transport.close()
            self.loop.call_later(self.PATIENCE_S, self.transport.abort)  # what is written, nobody may take
