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

    with handled(stop, signal.SIGINT, *ending_signals()):
        try:
            return work()
        except Stopped:
            with suppress(OSError):  # of a terminal that has closed
                sys.stderr.write(f"{name}: stopped before its end: what it has written is no whole result\n")
            return STOPPED


def ending_signals() -> list[signal.Signals]:
    """SIGTERM, and that of a terminal that closes; not with nohup."""
    is_ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [signal.SIGTERM] if is_ignored else [signal.SIGTERM, signal.SIGHUP]


@contextmanager
def handled(heed: Callable[..., object], *numbers: signal.Signals) -> Iterator[None]:
    """`heed` is called for these signals while the block runs; then they are handled as before.

    Of a terminal that closes only the first one counts: a shell sends it, and the kernel again.
    """

    def heard(number: int, frame: FrameType | None) -> None:
        try:
            heed(number, frame)
        finally:
            if number == signal.SIGHUP:
                signal.signal(number, signal.SIG_IGN)

    before = {number: signal.signal(number, heard) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
