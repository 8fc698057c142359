"""SQL over the tables of one look; every statement is kept, so that a page can show where its numbers come from."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from deltalake import QueryBuilder

from headgate.core.quota.config_tables import ConfigTables
from headgate.core.quota.settings import QuotaSettings
from headgate.errors import PageError, TableError
from headgate.quota.tables.opened import opened_config
from headgate.quota.usage.query import LEAST_EPOCHS, UsageTables
from headgate.service.pages.output import Look
from headgate.service.pages.span import Asked, Extent, together
from headgate.tables.query import in_arrow, said_by, times_of

WRITTEN_BY = {
    "topic_usage": "headgate try and jobs/throttle.py",
    "marks": "headgate try and jobs/throttle.py",
    "connections": "jobs/connections.py",
    "cache_metrics": "jobs/entry_cache.py",
    "broker_looks": "headgate collect",
    "rg_usage": "jobs that share quotas",
}


@dataclass(frozen=True)
class Statement:
    """What gave numbers of a page. commands: one for each job that has the table; the page adds up their rows."""

    sql: str
    commands: tuple[str, ...]


class Read:
    """Reads one look. Results are bounded by the statements; nothing is kept of them. For one thread."""

    def __init__(self, look: Look, settings: QuotaSettings) -> None:
        self.look, self.settings = look, settings
        self.statements: list[Statement] = []

    def has(self, name: str) -> bool:
        """Whether there is such a table, readable or not."""
        return name in self.look.versions

    def need(self, name: str) -> None:
        """Raises PageError where the table is not there: 503 if no table is, else 200: another job writes it."""
        if not self.look.versions:
            raise PageError(
                503,
                f"No table is in {self.look.output} yet. Start a job with this output; this page then fills by itself.",
            )
        if not self.has(name):
            raise PageError(
                200,
                f"This output has no table {name}, which {WRITTEN_BY.get(name, 'another job')} writes. "
                f"Tables here: {', '.join(sorted(self.look.versions))}.",
            )

    def rows(self, name: str, sql: str, *others: str) -> list[dict[str, Any]]:
        """Those of a query over one table and `others`, over all jobs that have it. Raises TableError and PageError."""
        for one in (name, *others):
            self.need(one)
        self.note(name, sql, *others)
        return self._rows((name, *others), sql)

    def note(self, name: str, sql: str, *others: str) -> None:
        """Show the statement on the page as well, though it is run elsewhere."""
        of_others = [{part.output for part in self.look.parts.get(one, ())} for one in others]
        outputs = [
            part.output for part in self.look.parts.get(name, ()) if all(part.output in one for one in of_others)
        ] or [self.look.output]
        self.statements.append(
            Statement(sql, tuple(f"headgate sql {shlex.quote(one)} {_quoted(sql)}" for one in outputs))
        )

    def extent(self, name: str, column: str = "event_time") -> Extent | None:
        """The oldest and the newest time of a column, from the statistics in the log, up to 1 ms off; None: no rows."""
        self.need(name)
        self._check(name)
        try:
            found = [times for part in self.look.parts[name] if (times := times_of(part.table, column)) is not None]
        except Exception as error:  # a query raises plain ones
            raise self._unreadable((name,), error) from error
        return together(found)

    @cached_property
    def config(self) -> ConfigTables:
        """Groups and attachments as they are now; none where quotas are not shared."""
        if not (self.has("rg_groups") and self.has("rg_attachments")):
            return ConfigTables()
        return opened_config(self.look.output, self.settings).read()

    def config_of(self, asked: Asked) -> tuple[ConfigTables, bool]:
        """Groups and attachments as brokers knew them at the end of a range, and whether they are those of now because
        no report of then says so. Raises TableError.
        """
        if asked.end_us is None or not self.config.version:
            return self.config, False
        version = None
        if self.has("rg_usage") and not (tables := self.usage_tables(None)).is_empty:
            version = tables.config_version_at(LEAST_EPOCHS, asked.end_us // 1000)
        return (self.config, True) if version is None else (tables.config(version), False)

    def usage_tables(self, group: str | None) -> UsageTables:
        """What `headgate usage` reads, of one group or all. Raises TableError."""
        return UsageTables(self.look.output, self.settings, group)

    def _rows(self, names: Sequence[str], sql: str) -> list[dict[str, Any]]:
        for name in names:
            self._check(name)
        builder = QueryBuilder()
        try:
            for name in names:
                self._register(builder, name)
            rows: list[dict[str, Any]] = in_arrow(builder.execute(sql)).to_pylist()
        except Exception as error:  # the engine raises plain ones
            raise self._unreadable(names, error) from error
        return rows

    def _register(self, builder: QueryBuilder, name: str) -> None:
        """Tables of several jobs as one of their rows together."""
        parts = self.look.parts[name]
        if len(parts) == 1:
            builder.register(name, parts[0].table)
            return
        for number, part in enumerate(parts):
            builder.register(f"{name}_{number}", part.table)
        union = " UNION ALL BY NAME ".join(f"SELECT * FROM {name}_{number}" for number in range(len(parts)))  # noqa: S608
        builder.execute(f"CREATE VIEW {name} AS {union}").read_all()

    def _unreadable(self, names: Sequence[str], error: Exception) -> TableError:
        locations = " or ".join(self.look.parts[name][0].location for name in names)
        return TableError(
            f"the table {locations} cannot be read: {said_by(error)}; it may be damaged, or of another version of "
            "headgate"
        )

    def _check(self, name: str) -> None:
        if name in self.look.broken:
            raise TableError(self.look.broken[name])


def _quoted(sql: str) -> str:
    """For a shell, readable where that is possible: nothing in it is expanded."""
    if "!" in sql:
        return shlex.quote(sql)
    return '"' + "".join(f"\\{one}" if one in '"$`\\' else one for one in sql) + '"'
