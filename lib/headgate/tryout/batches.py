"""Batches of a trace: read once where they fit into memory, cut as a live job would take the rows in."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from headgate.conf import Conf
from headgate.rows.files import File, input_files, parsed_files
from headgate.rows.kinds import INPUT
from headgate.rows.listing import STDIN, original
from headgate.rows.traffic import Parsed, parse_traffic
from headgate.tryout.inputs import Source

MOST_KEPT = 1_000_000
"""Rows of a trace that are kept for the next conf, about 200 bytes each."""
MOST_AT_ONCE = 500_000
"""Rows of a batch."""

Batch = list[Parsed]


class Trace:
    """Every call of `batches` gives the same batches for equal settings.

    behind: of the batches taken last, rows that came more than an interval after the time of one before them; 0 where
    nothing depends on batches.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self.behind = 0
        self._kept: dict[str, list[Batch]] = {}

    @property
    def files(self) -> list[str]:
        """The names of what is read."""
        return list(map(self._told, self._files()))

    @property
    def empty_files(self) -> list[str]:
        """Those of files in which there is nothing at all."""
        if self._source.path == STDIN:
            return []
        return [self._told(file) for file in self._files() if not Path(file.path).stat().st_size]

    def batches(self, conf: Conf) -> Iterator[Batch]:
        """Of the bundled trace its files; else, where brokers share quotas, what a live job would take in with each of
        its triggers (by event time); else whatever is convenient, as nothing depends on it.
        """
        interval_ms = None if self._source.is_demo or not shares_quotas(conf) else conf.settings.trigger.interval_ms
        key = repr((conf.settings.input, interval_ms))
        if key in self._kept:
            yield from self._kept[key]
            return
        self.behind = 0
        kept: list[Batch] | None = []
        rows = 0
        for batch in self._read(conf, interval_ms):
            rows += sum(len(parsed.rows) + len(parsed.dead_letters) for parsed in batch)
            if rows > MOST_KEPT:
                kept = None
            elif kept is not None:
                kept.append(batch)
            yield batch
        if kept is not None:
            self._kept = {key: kept}

    def _read(self, conf: Conf, interval_ms: int | None) -> Iterator[Batch]:
        format_, parse = self._source.format, partial(parse_traffic, settings=conf.settings.input)
        files = self._files()
        if self._source.is_demo:
            return (list(parsed_files([file], format_, INPUT, parse)) for file in files)
        parsed = parsed_files(files, format_, INPUT, parse)
        return ([one] for one in parsed) if interval_ms is None else by_time(parsed, interval_ms, self._count)

    def _told(self, file: File) -> str:
        return original(Path(file.path), self._source.path, self._source.place)

    def _files(self) -> list[File]:
        return input_files(self._source.path, self._source.format, self._source.place)

    def _count(self, behind: int) -> None:
        self.behind += behind


def by_time(parsed: Iterable[Parsed], interval_ms: int, count: Callable[[int], None]) -> Iterator[Batch]:
    """Batches of an interval of event time each, however the rows come.

    A batch ends where the highest time so far passes a multiple of `interval_ms`, which counts as 1 at the least, or
    has MOST_AT_ONCE rows: a row that is dated far ahead stops the clock for all that follow. count: takes how many rows
    are more than an interval behind the highest time before them.
    """
    interval_us = max(interval_ms, 1) * 1000
    slot: int | None = None
    high_us = 0
    batch: Batch = []
    filled = 0
    for rows, dead_letters in parsed:
        if not len(rows):
            batch.append(Parsed(rows, dead_letters))
            continue
        own_us = rows["event_time_us"].to_numpy()
        times_us = np.maximum(np.maximum.accumulate(own_us), high_us)
        count(int((own_us < times_us - interval_us).sum()))
        slots = times_us // interval_us
        before = slots[0] if slot is None else slot
        first, letters = 0, dead_letters
        for start in [*np.flatnonzero(np.diff(slots, prepend=before)).tolist(), len(rows)]:
            while start - first > MOST_AT_ONCE - filled:
                batch.append(Parsed(rows.slice(first, MOST_AT_ONCE - filled), letters))
                yield batch
                batch, first, filled, letters = [], first + MOST_AT_ONCE - filled, 0, dead_letters.slice(0, 0)
            batch.append(Parsed(rows.slice(first, start - first), letters))
            filled += start - first
            if start < len(rows):
                yield batch
                batch, first, filled, letters = [], start, 0, dead_letters.slice(0, 0)
        high_us, slot = int(times_us[-1]), int(slots[-1])
    if batch:
        yield batch


def shares_quotas(conf: Conf) -> bool:
    """Whether results depend on how a trace is cut into batches."""
    operator = conf.settings.operator
    return operator.group_limits == "shared" and operator.state_key != "topic" and bool(conf.resource_groups.groups)
