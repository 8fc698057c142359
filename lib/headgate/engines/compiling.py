"""Loads the rules in the background, and tells when they have to be compiled: once in an installation."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def compiling_told(say: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> Iterator[None]:
    """While the block runs, a line as the first kernel is compiled, and one at its end that says how long it took.

    Nothing is said where machine code is there already, on disk or in memory.
    """
    from numba.core import event  # noqa: PLC0415  loads the compiler

    class Listener(event.Listener):
        began_s: float | None = None

        def on_start(self, _event: Any) -> None:
            if self.began_s is None:
                self.began_s = clock()
                say("compiling the rules, once in an installation (a minute or less on two idle cores)")

        def on_end(self, _event: Any) -> None:
            self.ended_s = clock()

    listener = Listener()
    with event.install_listener("numba:compile", listener):
        yield
    if listener.began_s is not None:
        say(f"compiled the rules in {listener.ended_s - listener.began_s:.0f} s")


class Loading(threading.Thread):
    """Begins at once to load rules beside what else a start has to do. It does not keep a process that ends.

    load: compiles the rules, or loads them from disk. say: hears of compiling, from another thread.
    """

    def __init__(self, load: Callable[[], object], say: Callable[[str], None]) -> None:
        super().__init__(name="loading rules", daemon=True)
        self._load, self._say = load, say
        self._error: Exception | None = None
        self.start()

    def run(self) -> None:
        """Load."""
        try:
            with compiling_told(self._say):
                self._load()
        except Exception as error:  # noqa: BLE001  raised by `wait`
            self._error = error

    def wait(self) -> None:
        """Until the rules are loaded. Raises what loading raised."""
        self.join()
        if self._error is not None:
            raise self._error
