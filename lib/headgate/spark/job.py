"""What every job has around its work: signals that stop it, errors as one line and an exit status."""

import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from headgate.engines.stops import STOPPED as STOPPED  # noqa: PLC0414
from headgate.engines.stops import WRONG as WRONG  # noqa: PLC0414
from headgate.engines.stops import Stop, Stopped, broken_off_by_signals
from headgate.errors import HeadgateError
from headgate.spark.failures import SPARK_ERRORS, in_words, is_refused
from headgate.store_errors import is_transient, transient_line

FAILED = 1


def stop_asked() -> Stop:
    """Set by SIGTERM and Ctrl-C. Whoever started the job finds its process in HEADGATE_PID_FILE."""
    stop = Stop()
    heed_signals(stop)
    _note_process()
    return stop


def heed_signals(stop: Stop) -> None:
    """Once more after Spark has started, which puts its own handler for Ctrl-C in place."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())


def _note_process() -> None:
    if pid_file := os.environ.get("HEADGATE_PID_FILE"):
        Path(pid_file).write_text(str(os.getpid()))


def ended(say: Callable[[str], None], what: str, *, once: bool, used_up: bool, broken_off: bool) -> int:
    """The exit status of a run that has ended, with a line for what its next start has to do.

    what: that which `once` was to use up.
    """
    if broken_off:
        say("The batch under way took too long and was broken off: the next start runs it again.")
    if once and not used_up:
        say(f"Stopped before the {what} used up: the next start goes on there.")
        return STOPPED
    return 0


def exit_status(name: str, work: Callable[[], int]) -> int:
    """What `work` returns; with a line that says why, WRONG for options, conf, input or a checkpoint that it cannot go
    on with, FAILED if Spark failed, an object store does not answer, or a disk is full or read-only.
    """
    try:
        return work()
    except HeadgateError as error:
        sys.stderr.write(f"{name}: {error}\n")
        return FAILED if is_transient(error) else WRONG
    except OSError as error:
        if not is_transient(error):
            raise
        sys.stderr.write(f"{name}: {transient_line(error)}\n")
        return FAILED
    except SPARK_ERRORS as error:
        if (stopped := _stop_behind(error)) is not None:
            raise stopped from None
        sys.stderr.write(f"{name}: {in_words(error)}\n")
        return WRONG if is_refused(error) else FAILED


def _stop_behind(error: BaseException) -> Stopped | None:
    """The stop on which the job put away what it had begun, and failed as its JVM was stopped, too."""
    behind = error.__context__
    return behind if behind is None or isinstance(behind, Stopped) else _stop_behind(behind)


def status_of_whole(name: str, work: Callable[[], int]) -> int:
    """As `exit_status`, for a job whose results are of no use in part: a stop breaks it off, with a line, STOPPED."""
    _note_process()
    return broken_off_by_signals(name, partial(exit_status, name, work))
