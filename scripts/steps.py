"""What set-up steps share: a line per step with its time, one set-up at a time, errors that end in a message.

Standard library only: this runs on the machine's own Python, before there is a virtual environment.
"""
# ruff: noqa: INP001  (scripts are started by path, they are no package)

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache"
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"

UNAVAILABLE = 69  # sysexits: a thing that the start needs is not there


class SetupError(Exception):
    """Set-up cannot go on. The message says what failed and what to do; nothing half-done is taken for done later."""


def say(text: str, end: str = "\n") -> None:
    """Write to the screen on stderr, if it is still there: stdout belongs to the job."""
    with suppress(OSError):
        sys.stderr.write(f"{text}{end}")
        sys.stderr.flush()


@contextmanager
def step(text: str) -> Iterator[None]:
    """Announce a step before it starts and complete the same line with the seconds it took."""
    started = time.monotonic()
    say(f"headgate: {text} ...", end="")
    try:
        yield
    except BaseException:
        say(" failed")
        raise
    say(f" {time.monotonic() - started:.0f} s")


@contextmanager
def locked() -> Iterator[None]:
    """At most one process sets up this checkout; a second one waits.

    The lock belongs to this process and its commands: were it killed, the next set-up waits for its pip to end.
    """
    CACHE.mkdir(exist_ok=True)
    with (CACHE / "setup.lock").open("w") as lock:
        os.set_inheritable(lock.fileno(), True)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with step("waiting for another set-up of this checkout"):
                fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def run(command: Sequence[str | Path], advice: str, env: Mapping[str, str] | None = None) -> None:
    """Run a command silently; if it fails raise SetupError with the end of what it printed and the advice.

    The command gets no terminal, and is killed if this process is interrupted.
    """
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
        close_fds=False,
        env={**os.environ, **(env or {})},
    )
    if done.returncode != 0:
        last = "\n".join(f"  | {line}" for line in telling_lines(done.stdout))
        raise SetupError(f"{Path(command[0]).name} ended with status {done.returncode}:\n{last}\n{advice}")


def telling_lines(output: str, limit: int = 15) -> list[str]:
    """The lines that say why a program failed, at most `limit`: from its first error line on, else the last ones.

    Java's stack frames and spark-submit's list of options say nothing about it.
    """
    noise = ("at ", "WARNING: Using incubator modules")
    lines = [line.rstrip() for line in output.splitlines() if line.strip() and not line.lstrip().startswith(noise)]
    errors = ("Exception in thread", "Error: ", "ERROR: ", "# A fatal error")
    first = next((at for at, line in enumerate(lines) if line.lstrip().startswith(errors)), max(len(lines) - limit, 0))
    usage = next((at for at, line in enumerate(lines) if at > first and line.startswith("Usage: ")), len(lines))
    return lines[first : min(first + limit, usage)]
