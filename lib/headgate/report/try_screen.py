"""The screen of `headgate try`: what one conf would do, or several side by side, and what differs between them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from rich.console import Console

from headgate.quota.usage.share_courses import QuotaCourse
from headgate.report.bad_rows import problems
from headgate.report.next_steps import next_steps
from headgate.report.screen import Screen, command, empty_table, plain, zulu
from headgate.report.throttle_screen import Ended, ThrottleScreen
from headgate.report.throttling.blame import Throttled, Throttling
from headgate.report.throttling.conditions import held_connections
from headgate.report.throttling.dispatch_throttling import READS
from headgate.report.throttling.refusals import refused_consumers
from headgate.report.throttling.unloading import unloading
from headgate.tables.sums import Summed
from headgate.throttle.schemas import DISPATCH_LEVELS

SHOWN_TOPICS = 8
SHOWN_CHANGES = 20
SHOWN_FILES = 10
SHOWN_UNUSED = 5
WORTH_LATE = 0.1
"""Of the rows: with more that come too late, figures of groups are wrong."""
WORTH_A_WARNING = 0.01
"""Of all rows, those that could not be used."""
NOT_SET = "not set"
_AGAIN = ("before", "now")

ByName = Mapping[str, Sequence[Throttled | None]]
"""Of a tenant or topic, a row a conf; None where nothing held it, or none of its publishes came."""


class Tried(Protocol):
    """What is shown of a conf."""

    @property
    def name(self) -> str: ...
    @property
    def tables(self) -> Summed: ...
    @property
    def throttling(self) -> Throttling: ...
    @property
    def mode(self) -> str: ...
    @property
    def has_limits(self) -> bool: ...
    @property
    def is_offered(self) -> bool: ...
    @property
    def unused(self) -> Sequence[str]: ...
    @property
    def late(self) -> int: ...
    @property
    def others(self) -> Mapping[str, int]: ...
    @property
    def courses(self) -> Sequence[QuotaCourse]: ...
    @property
    def rows(self) -> int: ...
    @property
    def dead_letters(self) -> int: ...
    @property
    def took_s(self) -> float: ...


class Changed(Protocol):
    """A key of conf files that differs, with its value in each conf."""

    @property
    def file(self) -> str: ...
    @property
    def key(self) -> str: ...
    @property
    def values(self) -> Sequence[str | None]: ...


def is_mostly_bad(tried: Tried) -> bool:
    """Whether at least half of the rows are dead letters, or too many came late: what the others say is no answer."""
    return 0 < tried.dead_letters >= tried.rows or are_too_late(tried)


def are_too_late(tried: Tried) -> bool:
    """Whether more than WORTH_LATE came so long after others that brokers did not share quotas as they would live."""
    return tried.late > WORTH_LATE * tried.rows


def other_measures(tables: Summed) -> dict[str, int]:
    """What limits did beside throttling publishes, by name: counts of the whole trace."""
    reads = tables.totals(READS)
    went = unloading(tables)
    return {
        "dispatches held back": sum(sum(reads[f"held_by_{level}"].to_pylist()) for level in DISPATCH_LEVELS),
        "subscribes refused": sum(consumer.refused for consumer in refused_consumers(tables)),
        "unloads timed out": 0 if went is None else went.timed_out,
        "times a connection was held for memory": sum(held.times for held in held_connections(tables)),
    }


class TryScreen(Screen):
    """Lines of one run."""

    def __init__(self, console: Console) -> None:
        super().__init__(console, "try")

    def one(self, tried: Tried, output: str | None) -> None:
        """The closing screen of the throttle job. output: where the tables are kept, None: they are not."""
        self._took(tried)
        self.bad_rows(problems(tried.tables), output)
        closing = ThrottleScreen(self._console)
        self._mostly_bad(tried)
        self._unused([tried])
        closing.results(
            Ended(
                *(tried.tables, tried.throttling, tried.mode, output or ""),
                has_limits=tried.has_limits,
                is_offered=tried.is_offered,
            ),
            tried.courses,
        )
        self._kept([tried], output)
        if output is not None:
            self._next_steps(tried, output)

    def several(self, tried: Sequence[Tried], changed: Sequence[Changed], output: str | None) -> None:
        """Confs side by side: what differs between them, and what each does to tenants and topics."""
        for one in tried:
            self._took(one)
        first = tried[0]
        self.bad_rows(problems(first.tables), None if output is None else output_of(output, first.name, len(tried)))
        for mode in dict.fromkeys(one.mode for one in tried):
            self.say(mode)
        if len(tried) > 1:
            self.changes([one.name for one in tried], changed)
        self._mostly_bad(first)
        self._unused(tried)
        self._who_and_when(tried, output)
        self.side_by_side(tried)
        self._kept(tried, output)
        if output is not None:
            for one in tried:
                folder = output_of(output, one.name, len(tried))
                self._next_steps(one, folder, f" under {plain(one.name)}")

    def _next_steps(self, tried: Tried, output: str, under: str = "") -> None:
        for line in next_steps(tried.throttling, tried.tables, output, output, under):
            self.say(line)

    def _who_and_when(self, tried: Sequence[Tried], output: str | None) -> None:
        """Under each conf: who was held, when, by which limiter, by whose fault."""
        screen = ThrottleScreen(self._console)
        holds = [any(row.is_held for row in one.throttling.tenants) for one in tried]
        for one, is_any in zip(tried, holds, strict=True):
            if is_any:
                screen.who_and_when(one.throttling, f" under {plain(one.name)}")
            elif any(holds):
                self.say(f"\nNo publish is throttled under {plain(one.name)}.")
        folder = None if output is None else output_of(output, tried[-1].name, len(tried))
        screen.what_parts_are([one.throttling for one in tried], folder)

    def side_by_side(self, tried: Sequence[Tried]) -> None:
        """What each conf does to tenants and topics."""
        names = [one.name for one in tried]
        tenants, topics = (_by_name(ranked) for ranked in _of_all(tried))
        held = {name: rows for name, rows in tenants.items() if any(row is not None and row.is_held for row in rows)}
        if held:
            self._compared("Tenants", "tenant", names, held)
            self.say(
                "Percentages are of the publishes. throttled: let in, and left a limiter empty; their producer was held"
                " after them. held for: summed over topics and brokers."
            )
            self._more_throttled(names, held)
            differing = _most_different(topics)
            if differing:
                self._compared("Topics that the confs treat most differently", "topic", names, differing)
            elif len(tried) > 1:
                self.say("\nEvery topic is treated alike.")
        else:
            self.say("\nNo publish is throttled under any conf.")
        self._others(names, tried, only_differences=False)

    def _mostly_bad(self, tried: Tried) -> None:
        part = tried.dead_letters / max(tried.rows + tried.dead_letters, 1)
        if are_too_late(tried):
            self.say(
                f"\nNO ANSWER: {tried.late / tried.rows:.1%} of the rows came more than trigger.interval_ms behind "
                "others of a later time, as from a file a broker. Put all rows in one order of event_time, or use "
                "headgate replay, which does. What follows is of quotas that nobody shared out in time."
            )
        elif is_mostly_bad(tried):
            self.say(f"\nNO ANSWER: {part:.1%} of the rows could not be used. What follows is of the others alone.")
        elif part >= WORTH_A_WARNING:
            self.say(
                f"\nTOO LITTLE: {part:.1%} of the rows could not be used. With them more would be throttled: what "
                "follows says `never` and `no limit was reached` of the other rows alone."
            )

    def _unused(self, tried: Sequence[Tried]) -> None:
        """Limits that nothing came under."""
        for one in tried:
            if one.unused:
                more = len(one.unused) - SHOWN_UNUSED
                shown = ", ".join(map(plain, one.unused[:SHOWN_UNUSED]))
                others = f" and {more:,} more" if more > 0 else ""
                self.say(f"\n{plain(one.name)}: no publish or dispatch of this trace came under {shown}{others}")

    def in_vain(self, tried: Tried, files: Sequence[str], output: str | None) -> None:
        """No row could be used. files: those of the input."""
        self._took(tried)
        found = problems(tried.tables)
        self.bad_rows(found, output)
        what = "none of the rows could be used" if found else f"there is no row in {', '.join(files[:SHOWN_FILES])}"
        self.say(f"\nNothing was tried: {what}.")

    def empty_files(self, names: Sequence[str]) -> None:
        """Files of the input without anything in them."""
        if names:
            self.say(f"\nEmpty: {', '.join(names[:SHOWN_FILES])}{' ...' if len(names) > SHOWN_FILES else ''}")

    def stopped(self, left_out: Sequence[str]) -> None:
        """What was shown is not all. left_out: confs that were not begun."""
        self.say("Stopped before the end of the trace: the figures are of the rows until then.")
        if left_out:
            self.say(f"Not tried: {', '.join(left_out)}.")

    def changes(self, names: Sequence[str], changed: Sequence[Changed]) -> None:
        """The keys that differ. names: of the confs."""
        if not changed:
            self.say("\nThe conf files say the same.")
            return
        table = empty_table("What differs between the conf files")
        for title in ("file", "key", *names):
            table.add_column(plain(title), overflow="fold")
        for change in changed[:SHOWN_CHANGES]:
            values = (NOT_SET if value is None else plain(value) for value in change.values)
            table.add_row(change.file, plain(change.key), *values)
        self.table(table)
        if len(changed) > SHOWN_CHANGES:
            self.say(f"and {len(changed) - SHOWN_CHANGES:,} more")

    def again(self, before: Tried, after: Tried, changed: Sequence[Changed]) -> None:
        """What was saved, and what that changed, against the run before it."""
        self._took(after)
        self.changes(_AGAIN, changed)
        tenants, topics = (_by_name(ranked) for ranked in _of_all([before, after]))
        differing = {
            name: rows for name, rows in tenants.items() if any(one != other for _, one, other in _measures(rows))
        }
        others_differ = before.others != after.others
        if not differing and not others_differ:
            self.say("\nThat changed nothing for any tenant.")
        if differing:
            self._compared("What that changed for tenants", "tenant", _AGAIN, differing, only_differences=True)
            self._more_throttled(_AGAIN, differing)
            of_topics = _most_different(topics)
            if of_topics:
                self._compared("and most for topics", "topic", _AGAIN, of_topics, only_differences=True)
        if others_differ:
            self._others(_AGAIN, [before, after], only_differences=True)

    def _took(self, tried: Tried) -> None:
        throttling = tried.throttling
        span = ""
        if throttling.first is not None and throttling.last is not None:
            span = f"; publishes of {throttling.seconds:,} s, {zulu(throttling.first)} to {zulu(throttling.last)}"
        taken = f"{tried.rows:,} rows in {tried.took_s:.1f} s, {tried.dead_letters:,} dead letters"
        self.say(f"\n{tried.name}: {taken}{span}")

    def _compared(
        self, title: str, of: str, confs: Sequence[str], rows_of: ByName, *, only_differences: bool = False
    ) -> None:
        """A row for each measure of each name."""
        table = empty_table(title)
        table.add_column(of, overflow="fold")
        table.add_column("")
        for conf in confs:
            table.add_column(plain(conf), justify="right")
        for name, rows in rows_of.items():
            shown = plain(name)
            for measure, *values in _measures(rows):
                if not only_differences or len(set(values)) > 1:
                    table.add_row(shown, measure, *values)
                    shown = ""
        if table.row_count:
            self.table(table)

    def _more_throttled(self, confs: Sequence[str], rows_of: ByName) -> None:
        """Where a conf throttles more publishes than the first one because it lets more of them in."""
        for name, (first, *others) in rows_of.items():
            for conf, other in zip(confs[1:], others, strict=True):
                more, fewer = _throttled(other) - _throttled(first), _lost(first) - _lost(other)
                if more > 0 and fewer > 0:
                    self.say(
                        f"{plain(name)}: {plain(conf)} lets in {fewer:,} publishes that fail or still wait at the end "
                        f"under {plain(confs[0])}. Of all that it lets in, {more:,} more are throttled."
                    )

    def _others(self, confs: Sequence[str], tried: Sequence[Tried], *, only_differences: bool) -> None:
        table = empty_table("Other limits, in all")
        table.add_column("")
        for conf in confs:
            table.add_column(plain(conf), justify="right")
        for name in tried[0].others:
            counts = [one.others[name] for one in tried]
            if len(set(counts)) > 1 or (any(counts) and not only_differences):
                table.add_row(name, *(f"{count:,}" for count in counts))
        if table.row_count:
            self.table(table)

    def _kept(self, tried: Sequence[Tried], output: str | None) -> None:
        if output is None:
            self.say(f"\nThe tables were not kept. --output DIR keeps them for {command()} sql, usage and the reports.")
            return
        for one in tried:
            folder = output_of(output, one.name, len(tried))
            self.say(f"\nTables (Delta) are under {folder}: {command('tables', folder)}")


def output_of(output: str, name: str, confs: int) -> str:
    """The folder with the tables of a conf, of so many that were tried together."""
    return output if confs == 1 else f"{output}/{name}"


def _of_all(tried: Sequence[Tried]) -> tuple[list[Sequence[Throttled]], list[Sequence[Throttled]]]:
    """The tenants of each conf, and the topics."""
    return [one.throttling.tenants for one in tried], [one.throttling.topics for one in tried]


def _by_name(ranked: Sequence[Iterable[Throttled]]) -> ByName:
    """The rows of each name, one a conf; in the order of the first conf that has it."""
    by_conf = [{row.name: row for row in rows} for rows in ranked]
    names = dict.fromkeys(name for rows in by_conf for name in rows)
    return {name: [rows.get(name) for rows in by_conf] for name in names}


def _most_different(topics: ByName) -> ByName:
    """Up to SHOWN_TOPICS that the confs do not treat alike, most different first."""
    differing = [name for name, rows in topics.items() if any(row != rows[0] for row in rows)]
    return {
        name: topics[name] for name in sorted(differing, key=lambda name: -_difference(topics[name]))[:SHOWN_TOPICS]
    }


def _difference(rows: Sequence[Throttled | None]) -> float:
    """How far the confs are apart: in publishes that are throttled, fail, or wait to the end."""
    counts = [0 if row is None else row.throttled_publishes + (row.failed or 0) + row.waiting for row in rows]
    return max(counts) - min(counts)


def _measures(rows: Sequence[Throttled | None]) -> Iterable[tuple[str, ...]]:
    """Title and a text for each conf: first what clients lose, then what makes them wait."""
    if any(row is not None and row.failed for row in rows):
        yield "failed", *(_count(row, "failed") for row in rows)
    if any(row is not None and row.waiting for row in rows):
        yield "still waiting", *(_count(row, "waiting") for row in rows)
    if any(row is not None and row.delayed for row in rows):
        yield "delayed", *(_count(row, "delayed") for row in rows)
        yield "mean delay", *(_delay(row) for row in rows)
    yield "throttled", *(_of_share(row) for row in rows)
    yield "held for", *(f"{(row.throttled_ns if row else 0) / 1e9:,.1f} s" for row in rows)


def _throttled(row: Throttled | None) -> int:
    return 0 if row is None else row.throttled_publishes


def _lost(row: Throttled | None) -> int:
    """Publishes that fail, or wait to the end."""
    return 0 if row is None else (row.failed or 0) + row.waiting


def _of_share(row: Throttled | None) -> str:
    if row is None:
        return "0"
    return f"{row.throttled_publishes:,} ({row.throttled_publishes / max(row.publishes, 1):.1%})"


def _count(row: Throttled | None, measure: str) -> str:
    """None: nothing held it."""
    count = 0 if row is None else getattr(row, measure)
    if not count or row is None:
        return "-" if count is None else "0"
    return f"{count:,} ({count / max(row.publishes, 1):.1%})"


def _delay(row: Throttled | None) -> str:
    return "-" if row is None or not row.delayed else f"{(row.delay_ns or 0) / row.delayed / 1e9:,.2f} s"
