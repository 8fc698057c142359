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
from headgate.service.pages.span import Asked, Extent
from headgate.stores import BRIEF
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
    """What gave numbers of a page, over the rows of all jobs. commands: the same of each job that has the tables."""

    sql: str
    commands: tuple[str, ...]


class Read:
    """Reads one look. Results are bounded by the statements; nothing is kept of them. For one thread."""

    def __init__(self, look: Look, settings: QuotaSettings) -> None:
        self.look, self.settings = look, settings
        self.tables = OutputTables(look.output, look.parts, look.broken, BRIEF)
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
        return self.tables.dicts(name, sql, *others)

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
        """The oldest and the newest time of a column, as `OutputTables.extent` has them."""
        self.need(name)
        return self.tables.extent(name, column)

    @cached_property
    def config(self) -> ConfigTables:
        """Groups and attachments as they are now; none where quotas are not shared."""
        if not (self.has("rg_groups") and self.has("rg_attachments")):
            return ConfigTables()
        return opened_config(self.look.output, self.settings, patience=BRIEF).read()

    def config_of(self, asked: Asked) -> tuple[ConfigTables, bool]:
        """Groups and attachments as brokers knew them at the end of a range, and whether they are those of now because
        no report of then says so. Raises TableError.
        """
        if asked.end_us is None or not self.config.version:
            return self.config, False
        if not self.has("rg_usage"):
            return self.config, True
        config, is_known = self.usage_tables(None).config_at((asked.end_us - 1) // 1000)
        return config, not is_known

    def usage_tables(self, group: str | None) -> UsageTables:
        """What `headgate usage` reads, of one group or all. Raises TableError."""
        return UsageTables(self.look.output, self.settings, group, BRIEF)


def _quoted(sql: str) -> str:
    """For a shell, readable where that is possible: nothing in it is expanded."""
    if "!" in sql:
        return shlex.quote(sql)
    return '"' + "".join(f"\\{one}" if one in '"$`\\' else one for one in sql) + '"'
