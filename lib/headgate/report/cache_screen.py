"""The entry cache's screen: what is about to run, what each batch brought, how far rounds are."""

import time
from collections.abc import Callable
from datetime import datetime
from typing import Protocol

from rich.console import Console

from headgate.report.screen import Screen

TOLD_S = 5.0
"""Batches that only let rounds meet are told of no more often."""


class Batch(Protocol):
    """What one batch brought. rounds: of mode horizon, whose shards met in it."""

    @property
    def batch_id(self) -> int: ...
    @property
    def rows(self) -> int: ...
    @property
    def late(self) -> int: ...
    @property
    def dead_letters(self) -> int: ...
    @property
    def rounds(self) -> int: ...
    @property
    def event_time(self) -> datetime | None: ...


class CacheScreen(Screen):
    """Lines of one run. clock: seconds that only grow."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(console, "entry_cache")
        self._clock = clock
        self._rounds = 0
        self._rounds_told_s = clock()

    def begin(self) -> None:
        """The first batch is about to run."""
        self.say("entry_cache: the first batch takes some seconds more: workers start")

    def batch(self, batch: Batch) -> None:
        """A line for a batch that brought something, and now and then one for those in which rounds met."""
        self._rounds += batch.rounds
        if batch.rows or batch.dead_letters:
            counts = f"rows={batch.rows} late={batch.late} dead_letters={batch.dead_letters}"
            self.say(f"batch={batch.batch_id} {counts} event_time={batch.event_time or '-'}")
        elif batch.rounds and self._clock() - self._rounds_told_s >= TOLD_S:
            self.say(f"batch={batch.batch_id} rounds={self._rounds:,} so far")
            self._rounds_told_s = self._clock()
