"""The throttle job's screen: what it is about to do, a line a batch, and at the end who was throttled and by what."""

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple, Protocol

import pyarrow as pa
from rich.console import Console

from headgate.conf.resource_groups import ResourceGroups
from headgate.quota.usage.share_courses import QuotaCourse
from headgate.report.bad_rows import PROBLEMS, problems
from headgate.report.bars import sparkline
from headgate.report.next_steps import next_steps
from headgate.report.screen import Screen, command, counted, empty_table, plain, zulu
from headgate.report.throttling.blame import HELD, USAGE, Throttled, Throttling
from headgate.report.throttling.conditions import CONDITIONS, OPENED, Held, held_connections, opened_connections
from headgate.report.throttling.dispatch_throttling import HELD_READS, READS, HeldBack, held_back
from headgate.report.throttling.fault import by_second
from headgate.report.throttling.held_times import HELD_BY, OUT_UNTIL, WAITS
from headgate.report.throttling.limiters import MARK_COUNTS, RAN_OUT_AT
from headgate.report.throttling.refusals import ATTEMPTS, Refused, refused_consumers
from headgate.report.throttling.unloading import OUTCOMES, Unloading, unloading
from headgate.report.wrong_clocks import WrongClocks
from headgate.tables.sums import Summed, Sums
from headgate.throttle.tables import SCHEMAS

RECORDED_S = 86_400
IDLE_S = 120.0
"""A longer time without a batch was an idle one and tells nothing of the next; the first may take a minute."""
SHOWN_TENANTS = 20
SHOWN_FREE = 5
SHOWN_TOPICS = 8
SHOWN_SUBSCRIPTIONS = 5
SHOWN_CONSUMERS = 5
SHOWN_QUOTAS = 3
SHOWN_SPANS = 3
WORTH_SHOWING = 0.1
"""Shares that moved by a smaller part of their quota tell nothing."""
SPARK_WIDTH = 24
_SHOWN_SUMS = (
    *(USAGE, HELD, MARK_COUNTS, HELD_BY, OUT_UNTIL, WAITS, RAN_OUT_AT, READS, HELD_READS),
    *(ATTEMPTS, OUTCOMES, OPENED, CONDITIONS, PROBLEMS),
)


def shown_sums(groups: ResourceGroups) -> tuple[Sums, ...]:
    """What `ThrottleScreen.results` asks for."""
    return *_SHOWN_SUMS, by_second(groups)


class Batch(Protocol):
    """What a line tells of a batch."""

    @property
    def batch_id(self) -> int: ...
    @property
    def rows(self) -> int: ...
    @property
    def late(self) -> int: ...
    @property
    def dead_letters(self) -> int: ...
    @property
    def event_time_us(self) -> int | None: ...
    @property
    def progress(self) -> pa.Table: ...


class Ended(NamedTuple):
    """What a run ends with. mode: of its traffic, in words (modes.mode_line). output: where its tables are, if kept.

    has_limits: a publish could have been held. is_offered: rows are what clients want to send.
    """

    tables: Summed
    throttling: Throttling
    mode: str
    output: str = ""
    has_limits: bool = True
    is_offered: bool = True


class ThrottleScreen(Screen):
    """Lines of one run. clock: seconds, for rates; now: wall clock, for lag.

    recorded: the input is used up and the run ends, so that it has no lag.
    """

    def __init__(
        self,
        console: Console,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        *,
        recorded: bool = False,
    ) -> None:
        super().__init__(console, "throttle")
        self._clock = clock
        self._now = now
        self._is_recorded = recorded
        self._wrong_clocks = WrongClocks()
        self._began_s = self._last_s = clock()
        self._rows = 0
        self._dead_letters = 0

    def batch(self, batch: Batch, throttled_producers: int) -> None:
        """One line a batch with traffic or bad rows: its rows by the time since the last batch, unless that was an idle
        one, late rows if any, lag of event time, producers that wait.
        """
        now_s = self._clock()
        took_s, self._last_s = max(now_s - self._last_s, 1e-3), now_s
        self._rows += batch.rows
        self._dead_letters += batch.dead_letters
        if not batch.rows and not batch.dead_letters:
            return
        fields = {
            "batch": f"{batch.batch_id}",
            "rows": f"{batch.rows:,}",
            **({"rows/s": f"{batch.rows / took_s:,.0f}"} if took_s <= IDLE_S else {}),
            **({"late": f"{batch.late:,}"} if batch.late else {}),
            "dead letters": f"{batch.dead_letters:,}",
            "event time": self._reached(batch.event_time_us),
            "throttled now": f"{throttled_producers:,}",
        }
        if self._console.is_terminal:
            self.say("  ".join(f"{name} {value}" for name, value in fields.items()))
        else:
            words = " ".join(f"{name.replace(' ', '_')}={value.replace(',', '')!s}" for name, value in fields.items())
            self.say(f"{self._now():%Y-%m-%dT%H:%M:%SZ} {words}")
        if not self._is_recorded:
            for line in self._wrong_clocks.lines(batch.progress, self._now()):
                self.say(f"throttle: {line}")

    def _reached(self, event_time_us: int | None) -> str:
        if event_time_us is None:
            return "none"
        reached = datetime.fromtimestamp(event_time_us / 1e6, UTC)
        if self._is_recorded:
            return zulu(reached)
        lag_s = (self._now() - reached).total_seconds()
        lag = f"lag={lag_s:.1f}s" if abs(lag_s) < RECORDED_S else "recorded" if lag_s > 0 else "ahead"
        return f"{zulu(reached)}({lag})"

    def in_vain(self, ended: Ended, source: str, conf_dir: str, *, has_rows: bool, limits_changed: bool) -> bool:
        """Whether this start took in no row and says nothing of its limits, and why. source: the input.

        has_rows: there are some of earlier starts. limits_changed: the conf files say something else than then.
        """
        if self._rows or (has_rows and not self._dead_letters and not limits_changed):
            return False
        self.say(f"\nNo row was taken in, {self._dead_letters:,} dead letters.")
        if self._dead_letters:
            self.bad_rows(problems(ended.tables), ended.output)
        elif not has_rows:
            self.say(f"Nothing is in {source}: give an input with rows, in the right --format")
        if limits_changed and has_rows:
            trial = command("try", source, "--conf-dir", conf_dir)
            self.say(
                f"The conf files have changed, and {source} has nothing new: the tables under {ended.output} are of "
                "the limits before, and say nothing of the new ones. To see what these do to the same traffic, give "
                f"another --output, or run {trial}; {command()} replay compares "
                "several conf folders."
            )
        return True

    def end(self, ended: Ended, courses: Sequence[QuotaCourse] = (), shared: str | None = None) -> None:
        """Who was throttled and by which limiter, how shares followed, where the rows are, and what to run next.

        shared: where the tables of groups are, if that is not the output.
        """
        took_s = self._clock() - self._began_s
        self.say(f"\n{self._rows:,} rows in {took_s:.1f} s, {self._dead_letters:,} dead letters")
        self.bad_rows(problems(ended.tables), ended.output)
        if ended.throttling.publishes > self._rows:
            self.say("What follows is of all runs on this output.")
        self.results(ended, courses, shared)
        output = ended.output
        self.say(f"\nTables (Delta): {output}/{'  '.join(SCHEMAS)}")
        if courses:
            shared = shared or output
            self.say(f"of shared quotas: {shared}/rg_usage  rg_limits  rg_groups  rg_attachments  rg_members")
        for line in next_steps(ended.throttling, ended.tables, output, shared or output):
            self.say(line)

    def results(self, ended: Ended, courses: Sequence[QuotaCourse], shared: str | None = None) -> None:
        """Who was throttled, when, by which limiter and by whose fault, what else limits did, how shares followed.

        shared: as for `end`.
        """
        throttling, tables = ended.throttling, ended.tables
        self.say(ended.mode)
        if any(row.is_held for row in throttling.tenants):
            self.who_and_when(throttling)
            self.what_parts_are([throttling], shared or ended.output)
            self._throttled("Throttled tenants", "tenant", throttling, throttling.tenants, SHOWN_TENANTS)
            self._throttled("Most throttled topics", "topic", throttling, throttling.topics, SHOWN_TOPICS)
            self._waiting(throttling.tenants)
        elif throttling.tenants:
            reached = "no limit was reached" if ended.has_limits else "the conf files set no limit of publishes"
            self.say(f"No publish was throttled: {reached}.")
        else:
            self.say("No publish is in the tables yet.")
        self._held_back(throttling, held_back(tables), is_offered=ended.is_offered)
        self._refused(refused_consumers(tables))
        self._unloaded(unloading(tables))
        self._held(opened_connections(tables), held_connections(tables))
        moved = [course for course in courses if course.moved >= WORTH_SHOWING][:SHOWN_QUOTAS]
        if moved:
            self._shares(moved)

    def who_and_when(self, throttling: Throttling, under: str = "") -> None:
        """A line for each tenant that was held: when, by which limiter, by whose fault. under: which conf, in words."""
        held, tenants = [row for row in throttling.tenants if row.is_held], len(throttling.tenants)
        self.say(
            f"\nWho was throttled{under} ({len(held):,} of {tenants:,} tenants), when, by which limiter, and by whose "
            "fault"
        )
        for row in held[:SHOWN_TENANTS]:
            fault = f"; {row.fault.words}" if row.fault.words else ""
            by = [f"by {row.details or row.blame}{fault}", *row.also]
            when = f"{plain(row.name)}: {_when(throttling, row)}"
            self.say(f"{when}, {by[0]}" if len(by) == 1 else "\n  ".join([when, *by]))
        if len(held) > SHOWN_TENANTS:
            self.say(f"and {counted(len(held) - SHOWN_TENANTS, 'more tenant')}")
        if free := sorted(row.name for row in throttling.tenants if not row.is_held):
            more = f" and {counted(len(free) - SHOWN_FREE, 'more tenant')}" if len(free) > SHOWN_FREE else ""
            self.say(f"Never throttled: {', '.join(map(plain, free[:SHOWN_FREE]))}{more}")

    def what_parts_are(self, tried: Sequence[Throttling], output: str | None) -> None:
        """What the parts in lines of `who_and_when` mean, if there are any. output: of any of those tried."""
        if not any(row.fault.has_parts for one in tried for row in one.tenants if row.is_held):
            return
        more = (
            f"; {command('usage', output)} --by tenant --epochs 1 --at TIME has those of one second" if output else ""
        )
        self.say(
            "Percentages are of the excess (what had come above a fair share of the limiter and was not worked off "
            f"yet), added up over the seconds in which the tenant was held{more}"
        )
        if blind := sorted({name for one in tried for name in one.without_usual}):
            self.say(
                f"Overloaded from the start: {', '.join(blind)}. It is not known what is usual, so in this first "
                "overload who sends most is at fault"
            )

    def _throttled(self, title: str, of: str, whole: Throttling, rows: Sequence[Throttled], most: int) -> None:
        """Those that were held, `most` of them at the most."""
        all_held = [row for row in rows if row.is_held]
        held = all_held[:most]
        table = empty_table(title)
        table.add_column(of, overflow="fold")
        is_offered, is_topic = any(row.failed is not None for row in held), of == "topic"
        counts = ("failed", "delayed", "mean delay", "share", "throttled") if is_offered else ("throttled", "share")
        for name in ("publishes", *counts, "held for"):
            table.add_column(name, justify="right")
        for name in ("from", "to") if is_topic else ():
            table.add_column(name)
        table.add_column("limiter to blame", overflow="fold")
        for row in held:
            table.add_row(
                plain(row.name),
                f"{row.publishes:,}",
                *_counts(row, is_offered=is_offered),
                f"{row.throttled_ns / 1e9:,.1f} s{_summed_over(row)}",
                *((_clock(whole, row.first), _clock(whole, row.last)) if is_topic else ()),
                row.blame,
            )
        self.table(table)
        if len(all_held) > most:
            self.say(f"and {counted(len(all_held) - most, f'more {of}')}")
        if is_topic:
            return
        if is_offered:
            self.say("share: of the publishes, those that failed, came late (delayed) or still wait at the end")
            self.say(
                "throttled: publishes that were let in and left a limiter empty; their producer was held after them"
            )
        self.say("Only the producer of a publish waits here; brokers stop its whole connection: jobs/connections.py")
        if any(row.throttled_ns > whole.seconds * 1e9 for row in held):
            self.say(f"held for: a sum over topics and brokers, which can exceed the {whole.seconds:,} s of traffic")

    def _waiting(self, tenants: Sequence[Throttled]) -> None:
        by_count = sorted((row for row in tenants if row.waiting), key=lambda row: -row.waiting)
        if by_count:
            most = ", ".join(f"{plain(row.name)} {row.waiting:,}" for row in by_count[:SHOWN_TOPICS])
            count = sum(row.waiting for row in by_count)
            self.say(f"\n{count:,} publishes were neither let in nor failed by the end, and still wait: {most}")

    def _held_back(self, whole: Throttling, subscriptions: Sequence[HeldBack], *, is_offered: bool) -> None:
        """In admitted traffic all reads were delivered, so that none was never allowed."""
        if not subscriptions:
            return
        table = empty_table("Subscriptions whose dispatches were held back most")
        for name in ("broker", "topic", "subscription"):
            table.add_column(name, overflow="fold")
        for name in ("reads", "held back", "share", *(["never allowed"] if is_offered else [])):
            table.add_column(name, justify="right")
        for name in ("from", "to", "most by level"):
            table.add_column(name)
        for row in subscriptions[:SHOWN_SUBSCRIPTIONS]:
            never = [f"{row.reads - row.allowed:,}"] if is_offered else []
            table.add_row(
                *map(plain, (row.broker, row.topic, row.subscription)),
                *(f"{row.reads:,}", f"{row.held:,}", f"{row.held / row.reads:.1%}", *never),
                *(_clock(whole, row.first), _clock(whole, row.last), row.level),
            )
        self.table(table)
        if len(subscriptions) > SHOWN_SUBSCRIPTIONS:
            self.say(f"and {len(subscriptions) - SHOWN_SUBSCRIPTIONS:,} more")

    def _refused(self, consumers: Sequence[Refused]) -> None:
        attempts, refused = sum(row.attempts for row in consumers), sum(row.refused for row in consumers)
        if attempts:
            self.say(f"\n{attempts:,} attempts to subscribe, {f'{refused:,}' if refused else 'none'} of them refused.")
        if not refused:
            return
        table = empty_table("Most refused consumers")
        for name in ("consumer", "client"):
            table.add_column(name, overflow="fold")
        for name in ("attempts", "refused", "share", "topics"):
            table.add_column(name, justify="right")
        for row in consumers[:SHOWN_CONSUMERS]:
            if row.refused:
                share = f"{row.refused / row.attempts:.1%}"
                amounts = f"{row.attempts:,}", f"{row.refused:,}", share, f"{row.topics:,}"
                table.add_row(plain(row.consumer), plain(row.client), *amounts)
        self.table(table)

    def _unloaded(self, went: Unloading | None) -> None:
        if went is None:
            return
        noun, timed_out = ("unload", "unloads")[went.unloads > 1], f"{went.timed_out:,}" if went.timed_out else "none"
        self.say(
            f"\n{went.unloads:,} {noun} of bundles, {timed_out} timed out; the longest wait was "
            f"{went.longest_wait_ns / 1e9:,.1f} s, the last end is at {went.last_end:%Y-%m-%dT%H:%M:%SZ}."
        )

    def _held(self, opened: int, conditions: Sequence[Held]) -> None:
        if opened and not conditions:
            self.say(f"\n{opened:,} connections, none of them held for memory.")
        if not conditions:
            return
        table = empty_table(f"Held for memory, of {opened:,} connections")
        table.add_column("condition", overflow="fold")
        for name in ("times", "connections"):
            table.add_column(name, justify="right")
        for row in conditions:
            table.add_row(row.condition, f"{row.times:,}", f"{row.connections:,}")
        self.table(table)

    def _shares(self, courses: Sequence[QuotaCourse]) -> None:
        seconds = max(course.seconds for course in courses)
        title = f"How shares of quotas followed the traffic, in all {seconds:,.0f} s, per second"
        table = empty_table(title)
        for name in ("quota", "broker", "used", "share"):
            table.add_column(name, overflow="fold")
        for name in ("smallest", "largest", "at the end"):
            table.add_column(name, justify="right")
        for course in courses:
            quota = plain(f"{course.group} {course.quota:,} {course.dimension.name.lower()}")
            for broker in course.brokers:
                known = [share for share in broker.shares if share is not None]
                ends = (min(known), max(known), known[-1]) if known else ()
                table.add_row(
                    quota,
                    plain(broker.broker),
                    sparkline(broker.admitted, SPARK_WIDTH, course.quota),
                    sparkline(broker.shares, SPARK_WIDTH, course.quota),
                    *(f"{share:,}" for share in ends),
                )
                quota = ""
        self.table(table)


def _counts(row: Throttled, *, is_offered: bool) -> tuple[str, ...]:
    """The cells between publishes and time; in offered traffic, first what clients lose."""
    publishes, throttled = max(row.publishes, 1), f"{row.throttled_publishes:,}"
    if is_offered:
        mean = f"{(row.delay_ns or 0) / row.delayed / 1e9:,.1f} s" if row.delayed else "-"
        return f"{row.failed or 0:,}", f"{row.delayed or 0:,}", mean, f"{row.lost / publishes:.1%}", throttled
    return throttled, f"{row.throttled_publishes / publishes:.1%}"


def _when(whole: Throttling, row: Throttled) -> str:
    """The spans of a tenant, and its worst second."""
    if not row.spans:
        return "throughout"
    spans = [_span(whole, *span) for span in row.spans[:SHOWN_SPANS]]
    more = len(row.spans) - SHOWN_SPANS
    if more > 0:
        spans.append(f"{counted(more, 'more time')} until {_clock(whole, row.last)}")
    if len(row.spans) == 1 and row.spans[0][0] == row.spans[0][1]:
        return spans[0]
    if row.failed is not None and not row.lost:
        return f"{', '.join(spans)}, but none of its publishes came late"
    return f"{', '.join(spans)}, worst {_clock(whole, row.worst)}"


def _span(whole: Throttling, first: datetime, last: datetime) -> str:
    begun, ended = _clock(whole, first), _clock(whole, last)
    return f"at {begun}" if begun == ended else f"from {begun} to {ended}"


def _summed_over(row: Throttled) -> str:
    """What a tenant's time is a sum of."""
    return f" of {row.topics:,} topics" if row.topics > 1 else ""


def _clock(whole: Throttling, time: datetime | None) -> str:
    """The time of day, with the date where the run has more than one."""
    if time is None:
        return ""
    is_one_day = whole.first is not None and whole.last is not None and whole.first.date() == whole.last.date()
    return f"{time:%H:%M:%S}" if is_one_day else f"{time:%Y-%m-%d %H:%M:%S}"
