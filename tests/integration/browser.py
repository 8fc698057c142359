"""A real Chromium for tests of the page; skipped with a reason where none can be had."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[1] / "browser.sh"
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
INSTALL_S = 600


@contextmanager
def chromium() -> Iterator[Any]:
    """The browser, of playwright's synchronous API."""
    done = subprocess.run([SCRIPT], capture_output=True, text=True, timeout=INSTALL_S, check=False)
    if done.returncode:
        pytest.skip(done.stderr.strip() or "no Chromium")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=done.stdout.strip(), args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()
