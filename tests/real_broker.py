"""Real brokers for tests: a script of this folder starts one on free ports, and stops it at the end."""

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest


@contextmanager
def started(script: str, noun: str, timeout_s: float, folder: Path, **settings: object) -> Iterator[None]:
    """The broker of `script` while the block runs, with these variables in its environment.

    Skips, with the script's own words, where it cannot be had. folder: for what the script says.
    """
    path = Path(__file__).with_name(script)
    environment = {**os.environ, **{name: str(value) for name, value in settings.items()}}
    # Output to a file: a pipe would stay open in the broker.
    with (folder / "out").open("w+") as output:
        done = subprocess.run(
            [path, "start"], env=environment, stdout=output, stderr=output, timeout=timeout_s, check=False
        )
        output.seek(0)
        if done.returncode != 0:
            pytest.skip(f"no {noun}: {output.read().strip()}")
    with ExitStack() as stack:
        stack.callback(subprocess.run, [path, "stop"], env=environment, stdout=subprocess.DEVNULL, check=True)
        yield


def free_ports(count: int) -> list[int]:
    """Ports that nothing listened on a moment ago; all are held until the last is known, so they differ."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for taken in sockets:
            taken.bind(("127.0.0.1", 0))
        return [taken.getsockname()[1] for taken in sockets]


def free_span(count: int) -> int:
    """A port after which nothing listened on so many a moment ago, below those that the system gives to clients."""
    for first in range(20_000, 32_000, count):
        with ExitStack() as stack, suppress(OSError):
            for port in range(first, first + count):
                stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return first
    raise OSError(f"no {count} free ports in a row")
