"""The entry cache's screen: what is about to run, what each batch brought."""

from datetime import datetime
from typing import Protocol

from rich.console import Console

from headgate.report.screen import Screen


class Batch(Protocol):
    """What one batch brought."""

    @property
    def batch_id(self) -> int: ...
    @property
    def rows(self) -> int: ...
    @property
    def late(self) -> int: ...
    @property
    def dead_letters(self) -> int: ...
    @property
    def event_time(self) -> datetime | None: ...


class CacheScreen(Screen):
    """Lines of one run."""

    def __init__(self, console: Console) -> None:
        super().__init__(console, "entry_cache")

    def begin(self) -> None:
        """The first batch is about to run."""
        self.say("entry_cache: the first batch takes some seconds more: workers start")

    def batch(self, batch: Batch) -> None:
        """A line for a batch that brought something."""
        if batch.rows or batch.dead_letters:
            counts = f"rows={batch.rows} late={batch.late} dead_letters={batch.dead_letters}"
            self.say(f"batch={batch.batch_id} {counts} event_time={batch.event_time or '-'}")
