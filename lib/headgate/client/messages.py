"""The messages of a wrapper from their send to the end of their futures."""

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any

from headgate.client.errors import SendFailedError
from headgate.client.threads import join, started

LOG = logging.getLogger(__name__)


def _running() -> Future[Any]:
    future: Future[Any] = Future()
    future.set_running_or_notify_cancel()  # nobody can cancel it: the machine alone ends a message
    return future


@dataclass(frozen=True, slots=True)
class Unsent:
    """How many messages failed while their producer was closed; false if none did.

    Attributes: `not_written`, of which the library has nothing: they are not stored; `not_acknowledged`, which the
    library was given: they may be stored.
    """

    not_written: int
    not_acknowledged: int

    def __bool__(self) -> bool:
        return bool(self.not_written or self.not_acknowledged)


@dataclass(slots=True, eq=False)
class Message:
    """A message and what became of it.

    is_held: it was not handed to the library yet. is_begun: the library was asked to write it. is_in_library: and is
    not done with it. held_bytes: of its payload while it is Held, else None. result, cause: what the library said of
    it. error: with what its future is to fail, None for success.
    """

    payload: Any
    options: Mapping[str, Any]
    future: Future[Any] = field(default_factory=_running)
    is_held: bool = True
    is_begun: bool = False
    is_in_library: bool = False
    held_bytes: int | None = None
    result: object = None
    cause: BaseException | None = None
    error: SendFailedError | None = None

    def complete(self) -> None:
        """End the future, which runs the application's callbacks. To be called once."""
        if self.error is None:
            self.future.set_result(self.result)
        else:
            self.future.set_exception(self.error)


class Completions:
    """What is put is called in the order of `put`, each once, in one thread, which runs the application's callbacks.

    So no callback runs inside a call of the wrapper, under a lock, or in a thread that the library needs; one that
    takes long holds up other callbacks and futures alone.
    """

    def __init__(self) -> None:
        self._calls: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._thread = started("callbacks", self._run)

    def put(self, call: Callable[[], object]) -> None:
        """Have that called soon, to complete a message or to tell something; never blocks."""
        self._calls.put(call)

    def stop(self, timeout_s: float) -> None:
        """Call what was put before, then end; waits for that unless a callback asks for it."""
        self._calls.put(None)
        join(self._thread, timeout_s)

    def _run(self) -> None:
        while (call := self._calls.get()) is not None:
            try:
                call()
            except BaseException:  # a callback's sys.exit() would end all that is to come
                LOG.exception("a callback failed")
