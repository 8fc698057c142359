"""`headgate gate` as a process, and limiters at its control port."""

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from gate_clients import TIMEOUT_S

LIB = Path(__file__).parents[1] / "lib"
COMMAND = [sys.executable, "-m", "headgate", "gate"]
ENVIRONMENT = os.environ | {"PYTHONPATH": str(LIB)}


@contextmanager
def started(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """The process, and the ports of its first line."""
    process = subprocess.Popen(
        [*COMMAND, *arguments], env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        yield process, [int(port) for port in re.findall(r"port (\d+)", line)]
    finally:
        process.kill()
        process.communicate()


def machine(*arguments: str) -> Any:
    return started("machine", "--port", "0", "--control-port", "0", *arguments)


class Limiter:
    """A connection to the control port, a line and its answer at a time."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), TIMEOUT_S)
        self._lines = self._socket.makefile("rb")

    def say(self, **row: Any) -> dict[str, Any]:
        return self.say_line(json.dumps(row).encode() + b"\n")

    def say_line(self, line: bytes) -> dict[str, Any]:
        self._socket.sendall(line)
        return dict(json.loads(self._lines.readline()))

    def hears(self) -> dict[str, Any]:
        return dict(json.loads(self._lines.readline()))

    def is_closed(self) -> bool:
        return self._lines.readline() == b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._lines.close()
        self._socket.close()
