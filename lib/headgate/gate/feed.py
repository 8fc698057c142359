"""What a gate's connections and the source of their commands know of each other."""

from collections.abc import Callable
from typing import Protocol

from headgate.wire import ThrottleProducer


class Link(Protocol):
    """A client's connection, as the source of its commands sees it. Nothing is done by one that has ended."""

    def send(self, command: ThrottleProducer) -> None:
        """Write a command. Only to be called for a client that supports it."""

    def stop_reading(self) -> None:
        """Take nothing more from the socket."""

    def resume_reading(self) -> None:
        """Read again; all that waits in the socket comes before any timer."""


class Seat(Protocol):
    """A client's place at the source of its commands, from when it joined to when it left."""

    def answered(self, request_id: int, read_ms: int) -> None:
        """A receipt was read from the socket at `read_ms`."""

    def leave(self) -> None:
        """The connection has ended. Nothing is called after it."""


class NameTaken(Exception):  # noqa: N818  no error of headgate's: it goes to the client
    """Another client has that name."""


class Feed(Protocol):
    """The source of commands. Everything is called from the gate's event loop."""

    def join(self, connection: str, link: Link, *, supports: bool) -> Seat:
        """A client has come, by its name. Raises NameTaken while there is another of that name."""

    async def run(self) -> None:
        """What it does by itself, until it is cancelled; then what has to be kept is kept."""


class Timer(Protocol):
    """Something that is to happen."""

    def cancel(self) -> None:
        """Let it not happen."""


class GateClock(Protocol):
    """Milliseconds since 1970 that never go back."""

    def now_ms(self) -> int:
        """The millisecond that is not over yet."""

    def call_at(self, at_ms: int, act: Callable[[], None]) -> Timer:
        """Call `act` once `at_ms` has begun, after what was read from sockets by then."""
