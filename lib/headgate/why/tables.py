"""The tables of an output's jobs, read with SQL: those of all brokers, and those of each broker's own job."""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable

from headgate.core.numbers import SECOND_NS
from headgate.errors import TableError
from headgate.quota.tables.topic_tables import BROKERS, topic_tables
from headgate.quota.usage.topic_query import SECOND_US
from headgate.store_errors import unreadable
from headgate.stores import Patience
from headgate.tables.query import query, text, times_of
from headgate.why.answer import Window

_NEAREST, _ALIKE = 5, 0.5
Broken = Mapping[str, str]
_NONE: Broken = {}


@dataclass(frozen=True)
class Part:
    """A table of one job. output: the folder that it is right in."""

    output: str
    location: str
    table: DeltaTable


class OutputTables:
    """The tables of an output's jobs. A table is that of all jobs which have it: by_job alone tells them apart.

    opened: the tables of one moment, and why some cannot be read, by name; without them each is opened at the first
    query of it. patience: for an output on a store. SQL calls a table by its name. Methods raise TableError where a
    table cannot be read.
    """

    def __init__(
        self,
        output: str | PurePath,
        opened: Mapping[str, Sequence[Part]] | None = None,
        broken: Broken = _NONE,
        patience: Patience | None = None,
    ) -> None:
        self.output = str(output)
        self.patience = patience
        self._is_open = opened is not None
        self._opened = dict(opened or {})
        self._broken = broken

    def has(self, name: str) -> bool:
        """Whether any job has a table of that name."""
        return bool(self.parts(name))

    def rows(self, name: str, sql: str, *others: str) -> pa.Table:
        """What `sql` gives, on that table and others; where one is not there, an empty table of no columns."""
        parts = {one: self.parts(one) for one in (name, *others)}
        return self._queried(parts, sql) if all(parts.values()) else pa.table({})

    def dicts(self, name: str, sql: str, *others: str) -> list[dict[str, Any]]:
        """The same, row by row."""
        rows: list[dict[str, Any]] = self.rows(name, sql, *others).to_pylist()
        return rows

    def by_job(self, name: str, sql: str) -> Iterator[tuple[str | None, list[dict[str, Any]]]]:
        """The same of each job alone, with the broker that it is of, None for a job of all brokers."""
        for part in self.parts(name):
            yield self._broker_of(part), self._queried({name: [part]}, sql).to_pylist()

    def summed(self, name: str, sql: str, columns: Sequence[str]) -> dict[str, int]:
        """The only row of `sql`, with 0 for nulls, as also without a table."""
        (row,) = self.dicts(name, sql) or ({},)
        return {column: row.get(column) or 0 for column in columns}

    @cached_property
    def times(self) -> tuple[int, int]:
        """The first and the last second of topic_usage, since 1970. Raises TableError without rows."""
        if not self.has("topic_usage"):
            raise TableError(
                f"{self.output} has no table topic_usage; give the --output of a throttle job or of headgate try, or "
                "wait until the job has started"
            )
        found = self.times_in("topic_usage")
        if found is None:
            raise TableError(
                f"the table {self.output}/topic_usage has no rows: no job has seen a publish yet; give the --output of "
                "a throttle job or of headgate try, or wait until there is traffic"
            )
        return found

    def times_in(self, name: str, column: str = "event_time") -> tuple[int, int] | None:
        """The first and the last second of a table, since 1970; None without rows."""
        found = self.extent(name, column)
        return found and (found[0] // SECOND_US, found[1] // SECOND_US)

    def times_over(self, *names: str) -> tuple[int, int]:
        """The same over several tables, of which one has rows."""
        found = [times for name in names if (times := self.times_in(name)) is not None]
        return min(first for first, _ in found), max(last for _, last in found)

    def extent(self, name: str, column: str = "event_time") -> tuple[int, int] | None:
        """The oldest and the newest time of a column, in microseconds since 1970, by the statistics of the files, which
        are up to 1 ms off; None without rows.
        """
        parts = self.parts(name)
        try:
            found = [times for part in parts if (times := times_of(part.table, column))]
        except Exception as error:  # query raises no other
            raise unreadable(f"{self.output}/{name}", error) from error
        return (min(first for first, _ in found), max(last for _, last in found)) if found else None

    def parts(self, name: str) -> Sequence[Part]:
        """The tables of that name, one a job."""
        if name in self._broken:
            raise TableError(self._broken[name])
        if name not in self._opened and not self._is_open:
            try:
                locations = topic_tables(self.output, name, self.patience)
                options = self.patience and self.patience.of_delta
                self._opened[name] = [
                    Part(one.rpartition("/")[0], one, DeltaTable(one, storage_options=options)) for one in locations
                ]
            except Exception as error:
                raise unreadable(f"{self.output}/{name}", error) from error
        return self._opened.get(name, ())

    def _broker_of(self, part: Part) -> str | None:
        """Of a table in the output of a broker's own job (topic_tables.output_of)."""
        own, place = f"{self.output}/{BROKERS}/", part.location
        return unquote(place.removeprefix(own).partition("/")[0].replace("~", "%")) if place.startswith(own) else None

    def _queried(self, parts: Mapping[str, Sequence[Part]], sql: str) -> pa.Table:
        try:
            tables = {name: [part.table for part in of_name] for name, of_name in parts.items()}
            return query(sql, tables)
        except Exception as error:  # query raises no other
            places = [of[0].location if len(of) == 1 else f"{self.output}/{name}" for name, of in parts.items()]
            raise unreadable(" or ".join(places), error) from error


def listed(values: Sequence[str]) -> str:
    """Strings of SQL, for IN; without any one that nothing equals."""
    return ", ".join(map(text, values)) or "NULL"


def within(first_ns: int, end_ns: int) -> str:
    """SQL: event_time from the first instant on and before the end."""
    return f"event_time >= {instant_sql(first_ns)} AND event_time < {instant_sql(end_ns)}"


def in_window(window: Window) -> str:
    """SQL: event_time in the seconds of the window."""
    return within(first_ns(window), end_ns(window))


def first_ns(window: Window) -> int:
    """Where it begins."""
    return int(window.first.timestamp()) * SECOND_NS


def end_ns(window: Window) -> int:
    """Where its last second ends."""
    return (int(window.last.timestamp()) + 1) * SECOND_NS


def nearest(name: str, known: Sequence[str]) -> str:
    """Words that name those most alike; empty where none is."""
    near = difflib.get_close_matches(name, known, _NEAREST, _ALIKE)
    return f"; nearest: {', '.join(near)}" if near else ""


def of_topic(topic: str) -> str:
    """SQL: rows of the topic and of its partitions. Only digits number a partition (resource-groups 3.1)."""
    prefix = f"{topic}-partition-"
    is_partition = f"starts_with(topic, {text(prefix)}) AND regexp_like(substr(topic, {len(prefix) + 1}), '^[0-9]+$')"
    return f"(topic = {text(topic)} OR ({is_partition}))"


def instant_sql(at_ns: int) -> str:
    """SQL: a timestamp."""
    return f"arrow_cast({at_ns // 1000}, 'Timestamp(Microsecond, Some(\"UTC\"))')"
