"""`headgate demo` as a user starts it: traffic, job and page together, and nothing left of them at its end."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from integration.runs import await_that

TIMEOUT_S = 240


@contextmanager
def demo(folder: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "headgate", "demo", "--port", "0"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True, bufsize=1) as process:
        try:
            yield process
        finally:
            process.kill()


def running(folder: Path) -> list[int]:
    """Processes that have the folder's tables on their command line."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            is_of_job = b"live-demo/tables" in (place / "cmdline").read_bytes() and folder == (place / "cwd").readlink()
        except OSError:
            continue
        found += [int(place.name)] if is_of_job else []
    return found


@pytest.mark.long
def test_the_page_shows_live_traffic_and_a_signal_ends_it_all(tmp_path: Path) -> None:
    with demo(tmp_path) as process:
        assert process.stdout is not None
        url = next(line for line in process.stdout if line.startswith("http")).partition(": ")[0]

        def held() -> bool:
            with suppress(HTTPError), urlopen(f"{url}/now?format=json", timeout=TIMEOUT_S) as answer:
                return bool((json.load(answer).get("data") or {}).get("tenants"))
            return False  # 503 until the job has written its first table

        await_that(held, "tenants on the page", TIMEOUT_S, pause_s=1)
        assert running(tmp_path)
        process.send_signal(signal.SIGTERM)
        assert 0 == process.wait(TIMEOUT_S)
    assert [] == running(tmp_path)
