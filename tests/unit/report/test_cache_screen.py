"""The entry cache's screen."""

import io
from datetime import UTC, datetime

from rich.console import Console

from headgate.report.cache_screen import CacheScreen
from headgate.spark.entry_cache import CacheResult


def batch(number: int, rows: int = 0, rounds: int = 0, dead_letters: int = 0) -> CacheResult:
    at = datetime(2026, 1, 1, tzinfo=UTC) if rows else None
    return CacheResult(number, rows, 0, dead_letters, rounds, at)


def told_of(*batches: tuple[float, CacheResult]) -> list[str]:
    """The lines after batches at these seconds."""
    console, now = Console(file=io.StringIO(), width=200), [0.0]
    screen = CacheScreen(console, lambda: now[0])
    for at_s, one in batches:
        now[0] = at_s
        screen.batch(one)
    return console.file.getvalue().splitlines()


def test_a_batch_that_brought_rows_or_dead_letters_has_a_line() -> None:
    assert told_of((0, batch(0)), (1, batch(1, rows=7)), (2, batch(2, dead_letters=1))) == [
        "batch=1 rows=7 late=0 dead_letters=0 event_time=2026-01-01 00:00:00+00:00",
        "batch=2 rows=0 late=0 dead_letters=1 event_time=-",
    ]


def test_rounds_are_told_of_every_five_seconds_with_those_before() -> None:
    lines = told_of(*((second, batch(second, rounds=2)) for second in range(1, 12)))
    assert lines == ["batch=5 rounds=10 so far", "batch=10 rounds=20 so far"]
