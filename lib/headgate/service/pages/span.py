"""The time range that a page shows, from its address; times are UTC, ranges have whole seconds and no end."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from headgate.errors import PageError

SECOND_US = 1_000_000
Extent = tuple[int, int]
"""The oldest and the newest time of rows, microseconds."""
LAST_S = 300
MOST_S = 31 * 86_400
_MOST_DIGITS = 9
MOST_STEPS = 300
_END_S = 32_503_680_000
"""The year 3000."""
LASTS_S = (60, 300, 900, 3600, 6 * 3600, 86_400)
"""Ranges that a page offers."""


@dataclass(frozen=True, slots=True)
class Span:
    """From `first_us` on and before `end_us`, since 1970."""

    first_us: int
    end_us: int

    @property
    def seconds(self) -> int:
        return max(1, (self.end_us - self.first_us) // SECOND_US)

    @property
    def step_s(self) -> int:
        """Seconds that a point of a chart stands for: at most MOST_STEPS points."""
        return -(-self.seconds // MOST_STEPS)

    @property
    def steps_us(self) -> range:
        """The beginnings of the chart's steps, multiples of `step_s`."""
        step_us = self.step_s * SECOND_US
        return range(self.first_us // step_us * step_us, self.end_us, step_us)

    def seconds_of(self, step_us: int) -> float:
        """How much of the step that begins then is in the range."""
        end_us = min(step_us + self.step_s * SECOND_US, self.end_us)
        return max(1, end_us - max(step_us, self.first_us)) / SECOND_US

    def last(self, seconds: int) -> "Span":
        """Its last seconds."""
        return Span(max(self.first_us, self.end_us - seconds * SECOND_US), self.end_us)

    def where(self, column: str = "event_time") -> str:
        """SQL for the rows of a column of timestamps; files without any are not read."""
        return f"{column} >= '{iso(self.first_us)}' AND {self.until(column)}"

    def until(self, column: str = "event_time") -> str:
        """SQL for its rows and all before."""
        return f"{column} < '{iso(self.end_us)}'"

    def before(self, column: str = "event_time") -> str:
        """SQL for the rows before it."""
        return f"{column} < '{iso(self.first_us)}'"

    def where_us(self, column: str) -> str:
        """The same for a column of whole microseconds."""
        return f"{column} >= {self.first_us} AND {column} < {self.end_us}"


@dataclass(frozen=True, slots=True)
class Asked:
    """A range as asked for. None: not given. Without from and to it is the `last_s` seconds up to the newest row."""

    first_us: int | None = None
    end_us: int | None = None
    last_s: int = LAST_S

    @property
    def longest_s(self) -> int:
        """How long the range can be: MOST_S if it has a beginning and no end."""
        if self.first_us is None:
            return self.last_s
        return MOST_S if self.end_us is None else (self.end_us - self.first_us) // SECOND_US

    def span(self, extent: Extent | None, what: str = "row") -> Span:
        """What is asked for without a beginning begins with the first row at the earliest. extent: of the rows.

        Raises PageError 200 where there is nothing: no row yet.
        """
        if extent is None:
            raise PageError(200, f"No {what} is there yet. This page fills by itself once the job has some.")
        oldest_us, newest_us = (one // SECOND_US * SECOND_US for one in extent)
        end_us = newest_us + SECOND_US if self.end_us is None else self.end_us
        first_us = self.first_us
        if first_us is None:
            first_us = min(max(end_us - self.last_s * SECOND_US, oldest_us), end_us - SECOND_US)
        if first_us >= end_us:
            raise PageError(
                400, f"from is {iso(first_us)}, which is not before the end, {iso(end_us)}. Correct the range."
            )
        if end_us - first_us > MOST_S * SECOND_US:
            raise PageError(400, f"The range is longer than {MOST_S // 86_400} days. Give a shorter one.")
        return Span(first_us, end_us)


def together(extents: Iterable[Extent | None]) -> Extent | None:
    """Of the rows of several tables."""
    known = [one for one in extents if one is not None]
    return (min(low for low, _ in known), max(high for _, high in known)) if known else None


def asked(query: Mapping[str, str]) -> Asked:
    """Of from, to and last in an address. Raises PageError 400 for what is no time or no number."""
    first, end = (_time(name, query.get(name, "").strip()) for name in ("from", "to"))
    last = query.get("last", "").strip() or str(LAST_S)
    if not last.isascii() or not last.isdigit() or len(last) > _MOST_DIGITS or not 0 < int(last) <= MOST_S:
        raise PageError(400, f"last: got {last[:40]!r}; allowed: seconds from 1 to {MOST_S}. Correct it.")
    return Asked(first, end, int(last))


def iso(time_us: int) -> str:
    """With a fraction where there is one."""
    moment = datetime.fromtimestamp(time_us // SECOND_US, UTC).replace(microsecond=time_us % SECOND_US)
    return moment.replace(tzinfo=None).isoformat() + "Z"


def _time(name: str, given: str) -> int | None:
    """Without a zone it is UTC, as a browser's field gives it."""
    if not given:
        return None
    second = -1
    with suppress(ValueError, OverflowError):
        moment = datetime.fromisoformat(given)
        second = int(moment.replace(tzinfo=moment.tzinfo or UTC, microsecond=0).timestamp())
    if not 0 <= second < _END_S:
        allowed = "a time of 1970 to 2999, such as 2026-01-05T09:01:22Z"
        raise PageError(400, f"{name}: got {given[:40]!r}; allowed: {allowed}. Correct it.")
    return second * SECOND_US
