"""The tables of an output's jobs, read with SQL: those of all brokers, and those of each broker's own job."""

import difflib
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable

from headgate.core.numbers import SECOND_NS
from headgate.errors import TableError
from headgate.quota.tables.topic_tables import BROKERS, topic_tables
from headgate.quota.usage.topic_query import SECOND_US
from headgate.tables.query import plain, query, said_by, text, times_of
from headgate.why.answer import Window

_NEAREST, _ALIKE = 5, 0.5


class OutputTables:
    """Each table as it was at the first query of it. Methods raise TableError where a table cannot be read."""

    def __init__(self, output: str) -> None:
        self.output = output
        self._opened: dict[str, list[tuple[str, DeltaTable]]] = {}

    def has(self, name: str) -> bool:
        """Whether any job has a table of that name."""
        return bool(self._tables(name))

    def rows(self, name: str, sql: str) -> pa.Table:
        """What `sql` gives on the table, which it calls t, of each job; without a table an empty one of its columns."""
        found = [self._queried(place, table, sql) for place, table in self._tables(name)]
        return pa.concat_tables(found, promote_options="permissive") if found else pa.table({})

    def dicts(self, name: str, sql: str) -> Iterator[dict[str, Any]]:
        """The same, row by row."""
        yield from self.rows(name, sql).to_pylist()

    def by_job(self, name: str, sql: str) -> Iterator[tuple[str | None, list[dict[str, Any]]]]:
        """The same, each job's with the broker that it is of, None for a job of all brokers."""
        for place, table in self._tables(name):
            yield self._broker_of(place), self._queried(place, table, sql).to_pylist()

    def summed(self, name: str, sql: str, columns: Sequence[str]) -> dict[str, int]:
        """The sums of these columns over what `sql` gives; nulls add nothing."""
        rows = list(self.dicts(name, sql))
        return {column: sum(row[column] or 0 for row in rows) for column in columns}

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
        """The first and the last second of a table, since 1970, by the statistics of its files; None without rows."""
        tables = self._tables(name)
        try:
            found = [times for _, table in tables if (times := times_of(table, column))]
        except Exception as error:  # query raises no other
            raise _unreadable(f"{self.output}/{name}", error) from error
        if not found:
            return None
        return min(first for first, _ in found) // SECOND_US, max(last for _, last in found) // SECOND_US

    def _tables(self, name: str) -> list[tuple[str, DeltaTable]]:
        if name not in self._opened:
            try:
                self._opened[name] = [(place, DeltaTable(place)) for place in topic_tables(self.output, name)]
            except Exception as error:
                raise _unreadable(f"{self.output}/{name}", error) from error
        return self._opened[name]

    def _broker_of(self, place: str) -> str | None:
        """Of a table in the output of a broker's own job (topic_tables.output_of)."""
        own = f"{self.output}/{BROKERS}/"
        return unquote(place.removeprefix(own).partition("/")[0].replace("~", "%")) if place.startswith(own) else None

    @staticmethod
    def _queried(place: str, table: DeltaTable, sql: str) -> pa.Table:
        try:
            return plain(query(sql, {"t": table}))
        except Exception as error:  # query raises no other
            raise _unreadable(place, error) from error


def _unreadable(place: str, error: Exception) -> TableError:
    return TableError(f"the table {place} cannot be read: {said_by(error)}; see to it that it is there and can be read")


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
