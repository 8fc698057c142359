"""Runs Spark as a child process: its log in a file, signals turned into a clean stop, the exit status passed on."""
# ruff: noqa: INP001  (scripts are started by path, they are no package)

import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO

import steps
from steps import CACHE

LOGS = CACHE / "logs"
LOGS_KEPT = 20
PR_SET_PDEATHSIG = 1
OF_SIGNALS = {128 + number: number for number in signal.Signals}
"""Exit statuses for signals: Spark passes on that of the job's Python. Java, too, exits so if it catches SIGTERM."""
SPARK_GAVE_UP = range(50, 56)  # exit statuses of Spark's own last resort (uncaught exception, out of memory)


@dataclass
class Stop:
    """Turns SIGTERM, SIGINT and a terminal that closes (SIGHUP, but with nohup) into a stop of the job.

    The first one goes to the job's Python, which ends after the batch under way; if the job has not yet noted its
    process id, Spark and all that it started are ended instead, and nothing is lost. The second one ends everything at
    once, any further one kills it.
    """

    pid_file: Path
    child: subprocess.Popen[bytes] | None = None
    count: int = 0
    job_had_begun: bool = False

    def install(self) -> None:
        """Also where SIGINT was ignored, as for a background job of a script: whoever sends one means this job."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self)
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            signal.signal(signal.SIGHUP, self)

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGHUP:
            signal.signal(number, signal.SIG_IGN)  # a shell sends it, and the kernel again
            if self.count:
                return  # who closes the terminal of a job that is stopping asks for no more than that
        self.count += 1
        if self.count == 1:
            steps.say("\nheadgate: stopping (once more: at once)")
        self.deliver()

    def deliver(self) -> None:
        """Pass a stop, if there was one, on to whom it concerns by now."""
        if self.count == 0 or self.child is None or self.child.poll() is not None:
            return
        job = self.job_pid()
        with suppress(ProcessLookupError):
            if self.count == 1 and job is not None:
                self.job_had_begun = True
                os.kill(job, signal.SIGTERM)
            else:
                os.killpg(self.child.pid, signal.SIGTERM if self.count <= 2 else signal.SIGKILL)

    def job_pid(self) -> int | None:
        """What the job wrote into its pid file as its first act."""
        try:
            return int(self.pid_file.read_text())
        except (OSError, ValueError):
            return None

    def exit_status(self, status: int) -> int:
        """The wrapper's exit status for the child's: 128 + N for a signal N, 0 for a stop that a starting job died of.

        A job that runs catches the signal and ends by itself; one that does not catch it yet has begun nothing.
        """
        if self.count == 1 and (not self.job_had_begun or status == 128 + signal.SIGTERM):
            return 0
        return 128 - status if status < 0 else status


def run_job(command: Sequence[str], environment: Mapping[str, str], name: str, *, show_log: bool) -> int:
    """Run spark-submit to its end and return the job's exit status.

    The JVM's stderr goes to .cache/logs; what the job prints is on its stdout. If Spark fails before it starts the job,
    gives up or is killed, that log is shown, if it is not on the screen. If the job is killed, that is said.
    In every other case it has said itself what is wrong.
    """
    with ExitStack() as stack:
        notes = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="headgate-")))
        stop = Stop(Path(environment.get("HEADGATE_PID_FILE") or notes / "pid"))
        stop.pid_file.unlink(missing_ok=True)
        stop.install()
        log = None if show_log else stack.enter_context(new_log(name))
        started = notes / "driver-started"
        notes_for_job = {"HEADGATE_PID_FILE": str(stop.pid_file), "HEADGATE_DRIVER_STARTED": str(started)}
        child = subprocess.Popen(
            command,
            env={**environment, **notes_for_job},
            stdin=subprocess.DEVNULL,
            stderr=log,
            process_group=0,  # Ctrl-C reaches this process only
            preexec_fn=die_with_parent,  # noqa: PLW1509  (this process has one thread)
        )
        stop.child = child
        stop.deliver()
        status = child.wait()
        if status != 0:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGTERM)  # a job whose JVM is gone
            if log is not None and not stop.count and (not started.exists() or status < 0 or status in SPARK_GAVE_UP):
                report(Path(log.name), status)
            elif not stop.count and (number := OF_SIGNALS.get(128 - status if status < 0 else status)):
                report_killed("Spark" if status < 0 else "the job", number)
        return stop.exit_status(status)


def die_with_parent() -> None:
    """Have the kernel kill Spark if this process is killed (Linux): no stream goes on that nobody can stop any more."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def new_log(name: str) -> IO[bytes]:
    """A log file of this run's own; those of the oldest runs are deleted. Where .cache cannot be written: in /tmp."""
    own = f"{name}-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.log"
    try:
        LOGS.mkdir(parents=True, exist_ok=True)
        for old in sorted(LOGS.glob("*.log"), key=lambda path: path.stat().st_mtime)[: -LOGS_KEPT + 1]:
            old.unlink(missing_ok=True)
        return (LOGS / own).open("wb")
    except OSError:
        return (Path(tempfile.gettempdir()) / f"headgate-{own}").open("wb")


def report(log: Path, status: int) -> None:
    """Show why Spark did not get to run the job to its end."""
    how = f"was ended by signal {-status}" if status < 0 else f"failed, not the job; exit status {status}"
    lines = steps.telling_lines(log.read_text(errors="replace"))
    steps.say(f"headgate: Spark {how}. " + (f"From its log, {log}:" if lines else f"Its log {log} is empty."))
    for line in lines:
        steps.say(f"  | {line}")


def report_killed(what: str, number: signal.Signals) -> None:
    """Say what a process that was killed could not say itself."""
    steps.say(
        f"headgate: {what} was ended by signal {number.value} ({number.name}): somebody sent it, memory ran out, or a "
        "library crashed; the kernel's log may say which. Start the job again: on the same checkpoint it goes on where "
        "its tables stand."
    )
