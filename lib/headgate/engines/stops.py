"""Work whose results are of no use in part: Ctrl-C, SIGTERM and a terminal that closes break it off at once."""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

WRONG = 2
"""Exit status for options, conf or input with which nothing can be done, also where no row can be used."""
STOPPED = 3
"""Exit status of a run that a signal ended before its work was done."""


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
            with suppress(OSError):  # of a terminal that has closed
                sys.stderr.write(f"{name}: stopped before its end: what it has written is no whole result\n")
            return STOPPED


@contextmanager
def handled(heed: Callable[..., object]) -> Iterator[None]:
    """`heed` is called for Ctrl-C, SIGTERM and a terminal that closes while the block runs, which may be in another one
    of these; then they are handled as before.

    The signal of a terminal is heeded once, and ignored from then on: a shell sends it, and the kernel again. With
    nohup it stays ignored.
    """

    def heard(number: int, frame: FrameType | None) -> None:
        try:
            heed(number, frame)
        finally:
            if number == signal.SIGHUP:
                signal.signal(number, signal.SIG_IGN)

    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    before = {number: signal.signal(number, heard) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            if signal.getsignal(number) is heard:
                signal.signal(number, handler)
