"""Ctrl-C, SIGTERM and a terminal that closes: work whose results are of no use in part is broken off at once, other
work is told to end.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from threading import Event
from types import FrameType

WRONG = 2
"""Exit status for options, conf or input with which nothing can be done, also where no row can be used."""
STOPPED = 3
"""Exit status of a run that a signal ended before its work was done."""


class Stop(Event):
    """An event that a handler of signals may set. It cannot be cleared.

    Event.set and Event.wait share a lock. If a signal comes while the main thread holds it, the handler would wait for
    the thread that it interrupts, for ever. Of SimpleQueue `put` may come in between whatever is being done.
    """

    def __init__(self) -> None:
        super().__init__()
        self._is_set = False
        self._calls: SimpleQueue[None] = SimpleQueue()

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True
        self._calls.put(None)

    def wait(self, timeout: float | None = None) -> bool:
        """Whether it is set, at once or within so many seconds."""
        if not self._is_set:
            with suppress(Empty):
                self._calls.get(timeout=None if timeout is None else max(timeout, 0))
                self._calls.put(None)  # for others that wait
        return self._is_set


class Stopped(BaseException):
    """Raised where the work is, so that it puts away what it has begun."""


def broken_off_by_signals(name: str, work: Callable[[], int]) -> int:
    """What `work` returns; if a signal breaks it off, STOPPED, with a line that says so. name: begins that line."""

    def stop(*_: object) -> None:
        raise Stopped

    with handled(stop):
        try:
            return work()
        except Stopped:
            with suppress(OSError):  # of a pipe whose reader has heard the signal, too
                sys.stderr.write(f"{name}: stopped before its end: what it has written is no whole result\n")
            return STOPPED


def _ending_signals() -> list[signal.Signals]:
    is_ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [signal.SIGINT, signal.SIGTERM, *([] if is_ignored else [signal.SIGHUP])]


@contextmanager
def handled(heed: Callable[..., object]) -> Iterator[None]:
    """`heed` is called for Ctrl-C, SIGTERM and, without nohup, a terminal that closes while the block runs; then they
    are handled as before. Blocks can be nested.

    That of a terminal is heeded once, and ignored from then on: a shell sends it, and the kernel again. What is printed
    to it after that is dropped.
    """
    terminals = [stream for stream in (1, 2) if os.isatty(stream)]

    def heard(number: int, frame: FrameType | None) -> None:
        if number == signal.SIGHUP:
            signal.signal(number, signal.SIG_IGN)
            _drop(terminals)
        heed(number, frame)

    before = {number: signal.signal(number, heard) for number in _ending_signals()}
    try:
        yield
    finally:
        for number, handler in before.items():
            if signal.getsignal(number) is heard:
                signal.signal(number, handler)


def _drop(streams: list[int]) -> None:
    """What is written to these is written nowhere."""
    with suppress(OSError):  # such as too many open files
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in streams:
            os.dup2(nowhere, stream)
        os.close(nowhere)
