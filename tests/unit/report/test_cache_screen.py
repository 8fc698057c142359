"""The entry cache's screen."""

import io
from datetime import UTC, datetime

from rich.console import Console

from headgate.report.cache_screen import CacheScreen
from headgate.spark.entry_cache import CacheResult


def batch(number: int, rows: int = 0, dead_letters: int = 0) -> CacheResult:
    at = datetime(2026, 1, 1, tzinfo=UTC) if rows else None
    return CacheResult(number, rows, 0, dead_letters, at)


def told_of(*batches: CacheResult) -> list[str]:
    """The lines after batches."""
    console = Console(file=io.StringIO(), width=200)
    screen = CacheScreen(console)
    for one in batches:
        screen.batch(one)
    return console.file.getvalue().splitlines()


def test_a_batch_that_brought_rows_or_dead_letters_has_a_line() -> None:
    assert told_of(batch(0), batch(1, rows=7), batch(2, dead_letters=1)) == [
        "batch=1 rows=7 late=0 dead_letters=0 event_time=2026-01-01 00:00:00+00:00",
        "batch=2 rows=0 late=0 dead_letters=1 event_time=-",
    ]
