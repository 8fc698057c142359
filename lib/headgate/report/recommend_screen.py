"""The screen of `headgate try --recommend`: which limits would do, what they leave room for, how to get there."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich.console import Console

from headgate.core.quota.groups import RatePair
from headgate.report.screen import Screen, empty_table, plain

SHOWN_LIMITS = 20
SHOWN_COURSES = 10
SHOWN_NAMES = 8
ONCE_RAISED = "once the limits that stay as they are have been raised"
_UNITS = ("messages/s", "bytes/s")


class LimitShown(NamedTuple):
    """A limit in both dimensions: rates per second, None: not limited.

    busiest: the most of a second. slow_percent: publishes that wait longer than the bound's time with all recommended
    limits in force; longest_ns: the longest wait then.
    """

    name: str
    now: RatePair
    rates: RatePair
    busiest: tuple[int, int]
    mean: tuple[float, float]
    slow_percent: float
    longest_ns: int


class CourseShown(NamedTuple):
    """How a limit comes down: what it is now, then after each step. is_safe: nothing failed at any."""

    name: str
    rates: Sequence[RatePair]
    is_safe: bool


class RecommendScreen(Screen):
    """Lines of one run. wait_ms, percent: the bound. timeout_ms: after how long clients give up."""

    def __init__(self, console: Console, percent: float, wait_ms: int, timeout_ms: int) -> None:
        super().__init__(console, "try")
        self._percent, self._wait, self._timeout = percent, seconds(wait_ms), seconds(timeout_ms)

    def begin(self, publishes: int, runs: int) -> None:
        """What was looked for."""
        self.say(
            f"\nLooked for: the smallest limits at which at most {self._percent:g} % of publishes wait longer than "
            f"{self._wait}, and none longer than {self._timeout}, when clients give up.\n"
            "Every row counts as what a client wants to "
            f"send. Found by {runs:,} runs of the rules over {publishes:,} publishes: the next lower rate breaks the "
            "bound, or leaves less than 10 % above the mean, so that a backlog would hardly shrink.\nWaits are "
            "those with all of these limits in force."
        )

    def limits(self, title: str, of: str, limits: Sequence[LimitShown], file: str) -> None:
        """A row for each dimension of each limit, those of most traffic first. file: has all of them."""
        if not limits:
            return
        table = empty_table(title)
        table.add_column(of, overflow="fold")
        table.add_column("limit")
        for name in ("now", "recommended", "busiest second", "mean", f"wait > {self._wait}", "longest wait"):
            table.add_column(name, justify="right")
        for limit in limits[:SHOWN_LIMITS]:
            waits = f"{limit.slow_percent:.2f} %", f"{limit.longest_ns / 1e9:,.1f} s"
            name = plain(limit.name)
            for place, unit in enumerate(_UNITS):
                rates = _rate(limit.now[place]), _rate(limit.rates[place])
                load = f"{limit.busiest[place]:,}", f"{limit.mean[place]:,.0f}"
                table.add_row(name, unit, *rates, *load, *waits)
                name, waits = "", ("", "")
        self.table(table)
        if len(limits) > SHOWN_LIMITS:
            self.say(f"and {len(limits) - SHOWN_LIMITS:,} more: {file} has all of them")

    def detached(self, names: Sequence[str]) -> None:
        """Namespaces and topics that leave groups of their own. names: each with its group."""
        if names:
            self.say(f"A quota is for all traffic of its tenant, so these leave their groups: {_some(names)}")

    def lag(self) -> None:
        """Quotas above the busiest second need a word."""
        self.say(
            "A quota above the busiest second: it is at least 10 % above the mean, and leaves room for brokers that "
            "share it, since shares follow the traffic from batch to batch."
        )

    def left_out(self, names: Sequence[str], who: str) -> None:
        """Who has no recommendation. who: in words."""
        if names:
            self.say(f"\nNo recommendation for {who} ({len(names):,}): {_some(names)}")

    def broken(self, names: Sequence[str], failing: Sequence[str], worse: Sequence[str], quotas: RatePair) -> None:
        """Names for which the bound does not hold once everything is in force.

        failing: of which publishes fail then. worse: of which more fail, or wait longer than the bound, than today.
        quotas: of all tenants together; None: not limited.
        """
        if not names:
            return
        fail = f" Publishes of {_some(failing)} fail." if failing else ""
        self.say(
            f"\nWith everything in force the bound does not hold for {_some(names)}: limits that stay as they are, of "
            f"whole brokers (brokerPublisherThrottlingMax...) or of groups of others, hold them back as well.{fail}"
        )
        if worse:
            self.say(
                f"Worse than today for {_some(worse)}: more publishes fail or wait longer than {self._wait}. Raise the "
                "limits that stay first, or leave these as they are. The recommended quotas together, of all brokers: "
                f"{_rate(quotas[0])} {_UNITS[0]}, {_rate(quotas[1])} {_UNITS[1]}."
            )

    def courses(self, courses: Sequence[CourseShown], *, others_hold: bool) -> None:
        """How limits come down that are higher now. others_hold: limits that stay as they are break the bound."""
        if not courses:
            self.say("\nNo limit comes down: there is nothing to fail on the way.")
            return
        others = [course for course in courses if not (course.is_safe and len(course.rates) == 2)]
        direct = len(courses) - len(others)
        if direct:
            who = f"All {direct:,}" if not others else f"{direct:,} of the {len(courses):,}"
            once = f", but only {ONCE_RAISED}" if others_hold else ""
            self.say(
                f"\n{who} topics and tenants with lower limits can get them in one step{once}: no publish waits longer "
                f"than {self._timeout} then."
            )
        self.say("Tried with each limit at the end of its busiest second, topics first, then tenants.")
        if not others:
            return
        table = empty_table("Limits that come down in several steps, each when nobody waits any longer after the last")
        for name in ("name", "messages/s", "bytes/s", ""):
            table.add_column(name, overflow="fold")
        for course in others[:SHOWN_COURSES]:
            steps = (arrows(rates[place] for rates in course.rates) for place in range(2))
            table.add_row(plain(course.name), *steps, "nothing fails" if course.is_safe else "some fail all the same")
        self.table(table)
        if len(others) > SHOWN_COURSES:
            self.say(f"and {len(others) - SHOWN_COURSES:,} more, in the comments of the conf files")

    def written(self, folder: str, command: str) -> None:
        """Where it all is."""
        self.say(f"\nWritten to {folder}, a copy of the conf folder with these limits and a comment for each.")
        self.say(f"Look at it again: {command}")


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN_NAMES:,} more" if len(names) > SHOWN_NAMES else ""
    return ", ".join(map(plain, names[:SHOWN_NAMES])) + more


def arrows(rates: Iterable[int | None]) -> str:
    """Rates, one after the other."""
    return " > ".join(map(_rate, rates))


def seconds(time_ms: int) -> str:
    """As people say it."""
    return f"{time_ms / 1000:g} s"


def _rate(rate: int | None) -> str:
    return "off" if rate is None else f"{rate:,}"
