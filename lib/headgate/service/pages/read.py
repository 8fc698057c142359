"""SQL over the tables of one look; every statement is kept, so that a page can show where its numbers come from."""

import shlex
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from headgate.core.quota.config_tables import ConfigTables
from headgate.core.quota.settings import QuotaSettings
from headgate.errors import PageError
from headgate.quota.tables.opened import opened_config
from headgate.quota.usage.query import UsageTables
from headgate.service.pages.output import Look
from headgate.service.pages.span import Extent
from headgate.why.tables import OutputTables

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
        self.tables = OutputTables(look.output, look.parts, look.broken)
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

    def rows(self, name: str, sql: str) -> list[dict[str, Any]]:
        """The rows of a query over one table, over all jobs that have it. Raises TableError and PageError."""
        self.need(name)
        self.note(name, sql)
        return self.tables.dicts(name, sql)

    def note(self, name: str, sql: str) -> None:
        """Show the statement on the page as well, though it is run elsewhere."""
        outputs = [part.output for part in self.look.parts.get(name, ())] or [self.look.output]
        self.statements.append(
            Statement(sql, tuple(f"headgate sql {shlex.quote(one)} {_quoted(sql)}" for one in outputs))
        )

    def extent(self, name: str, column: str = "event_time") -> Extent | None:
        """The oldest and the newest time of a column, as `OutputTables.extent` has them."""
        self.need(name)
        return self.tables.extent(name, column)

    @cached_property
    def config(self) -> ConfigTables:
        """Groups and attachments as they are now; none where quotas are not shared."""
        if not (self.has("rg_groups") and self.has("rg_attachments")):
            return ConfigTables()
        return opened_config(self.look.output, self.settings).read()

    def usage_tables(self, group: str | None) -> UsageTables:
        """What `headgate usage` reads, of one group or all. Raises TableError."""
        return UsageTables(self.look.output, self.settings, group)


def _quoted(sql: str) -> str:
    """For a shell, readable where that is possible: nothing in it is expanded."""
    if "!" in sql:
        return shlex.quote(sql)
    return '"' + "".join(f"\\{one}" if one in '"$`\\' else one for one in sql) + '"'
