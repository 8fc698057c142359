"""What the screens of all jobs share: the console, whole lines, names that cannot command the terminal."""

import os
import shlex
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from headgate.report.bad_rows import ALL, SHOWN, Problem
from headgate.trace.summary import TraceSummary

FILE_WIDTH = 250
"""Of a log or a pipe: names there are to be found and copied whole."""
CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), 127, *range(128, 160))}
"""Names may hold line breaks and what terminals take for commands."""


def terminal_console(file: TextIO | None = None) -> Console:
    """A console on stdout.

    Under spark-submit.sh that is a pipe, and HEADGATE_TERMINAL says whether a terminal is behind it.
    """
    behind = os.environ.get("HEADGATE_TERMINAL") == "1" or (file or sys.stdout).isatty()
    width = int(os.environ["COLUMNS"]) if os.environ.get("COLUMNS", "").isdigit() else None
    return Console(
        file=file,
        force_terminal=behind,
        width=width or (None if behind else FILE_WIDTH),
        highlight=False,
        markup=False,  # names may hold brackets and colons
        emoji=False,
    )


class Screen:
    """Lines of one run. job: its name, which begins some of them."""

    def __init__(self, console: Console, job: str) -> None:
        self._console = console
        self._job = job

    @property
    def console(self) -> Console:
        """Where the lines go, for another screen that goes on there."""
        return self._console

    def say(self, line: str) -> None:
        """One line, whole, however long: to be read in a log, or copied as a command."""
        self._console.print(Text(line), soft_wrap=True)

    def demo(self, made: TraceSummary, place: str) -> None:
        """What the bundled trace is."""
        self.say(f"{self._job}: no --input, so a bundled trace, 5 tenants on 3 brokers: {made.rows:,} rows in {place}")

    def warnings(self, lines: Sequence[str]) -> None:
        """What conf files say that may be a mistake."""
        for line in lines:
            self.say(f"warning: {line}")

    def bad_rows(self, found: Sequence[Problem], output: str | None) -> None:
        """The most frequent reasons of dead letters, with an example each; nothing where there are none.

        output: where the table is, None: it is not kept.
        """
        if not found:
            return
        self.say(
            f"\nRows that could not be used: {sum(problem.rows for problem in found):,}; what else is said here is of "
            "the others. Most of them for"
        )
        for problem in found[:SHOWN]:
            self.say(f"  {problem.rows:,} x {plain(problem.reason)}")
            self.say(f"      as in {plain(problem.example)}")
        rest = (
            f'{command("sql", output)} "{ALL}"' if output is not None else "--output DIR keeps the table dead_letters"
        )
        self.say(f"  all of them: {rest}")

    def table(self, table: Table) -> None:
        """A table, after an empty line."""
        self._console.print()
        self._console.print(table)


def counted(count: int, what: str) -> str:
    """A number of things; `what` is one of them, or `more`."""
    return f"{count:,} {what}{'s' if count != 1 and what != 'more' else ''}"


def plain(name: str) -> str:
    """`name` without what a terminal takes for commands."""
    return name.translate(CONTROLS)


def empty_table(title: str) -> Table:
    """A table without columns as all of them look."""
    return Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")


def command(*arguments: str) -> str:
    """How the command headgate was called, or can be: the launchers leave that in HEADGATE_COMMAND.

    arguments: what follows, quoted for a shell where it has to be.
    """
    return " ".join([os.environ.get("HEADGATE_COMMAND") or "headgate", *map(shlex.quote, arguments)])


def zulu(time: datetime) -> str:
    """As options and SQL take it: ISO 8601 in UTC."""
    return f"{time.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def quoted(text: str) -> str:
    """A string of SQL."""
    return "'" + plain(text).replace("'", "''") + "'"
