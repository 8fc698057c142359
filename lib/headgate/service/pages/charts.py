"""Charts as data: what is stacked, what is drawn as a line, what changed when; and the SVG paths of them."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from headgate.service.pages.span import Span

WIDTH, HEIGHT = 1000, 100
"""Of the drawing, which is stretched to its place: words stand beside it, in HTML."""
Values = tuple[float | None, ...]


@dataclass(frozen=True)
class Course:
    """A value for each step, None for none. kind: how it is drawn (page.css)."""

    name: str
    kind: str
    values: Values


@dataclass(frozen=True)
class Change:
    """Something that changed at one moment."""

    at_us: int
    text: str


@dataclass(frozen=True)
class Chart:
    """areas: stacked upon each other. lines: from 0 on, each for itself. unit: of all values, such as messages/s."""

    title: str
    unit: str
    span: Span
    areas: tuple[Course, ...] = ()
    lines: tuple[Course, ...] = ()
    changes: tuple[Change, ...] = field(default=())

    @property
    def courses(self) -> tuple[Course, ...]:
        return *self.areas, *self.lines

    @property
    def is_empty(self) -> bool:
        return not any(value is not None for course in self.courses for value in course.values)

    @property
    def highest(self) -> float:
        """The largest value of a line, or of all areas together."""
        sums = [sum(value or 0 for value in step) for step in zip(*(area.values for area in self.areas), strict=True)]
        return max([*sums, *(value or 0 for line in self.lines for value in line.values)], default=0)

    @property
    def top(self) -> float:
        """The next round number above `highest`."""
        return ceiling(self.highest)

    def paths(self) -> list[tuple[Course, str]]:
        """The path of each course, areas first."""
        top, count = self.top, len(self.span.steps_us)
        drawn: list[tuple[Course, str]] = []
        below = [0.0] * count
        for area in self.areas:
            above = [low + (value or 0) for low, value in zip(below, area.values, strict=True)]
            drawn.append((area, _area(below, above, top)))
            below = above
        return [*drawn, *((line, _line(line.values, top)) for line in self.lines)]

    def changed(self) -> list[tuple[Change, float]]:
        """Each change with its place from the left."""
        first, end = self.span.first_us, self.span.end_us
        return [(one, round(WIDTH * (one.at_us - first) / (end - first), 1)) for one in self.changes]

    def numbers(self, most: int = 60) -> list[tuple[int, tuple[float | None, ...]]]:
        """The newest steps with their values, newest first."""
        rows = list(zip(self.span.steps_us, zip(*(course.values for course in self.courses), strict=True), strict=True))
        return rows[::-1][:most]


def ceiling(value: float) -> float:
    """The next round number, 1 at least."""
    if value <= 1:
        return 1
    power = 10.0 ** math.floor(math.log10(value))
    return next(power * factor for factor in (1, 1.5, 2, 2.5, 3, 4, 5, 7.5, 10) if value <= power * factor * (1 + 1e-9))


def course(name: str, kind: str, span: Span, sums: dict[int, float], *, per_second: bool = True) -> Course:
    """Of sums by the beginning of their step, as rates; steps without a sum are 0."""
    return Course(
        name,
        kind,
        tuple(sums.get(step_us, 0) / (span.seconds_of(step_us) if per_second else 1) for step_us in span.steps_us),
    )


def held_on(span: Span, changes: Sequence[tuple[int, float | None]]) -> Values:
    """The value at the end of each step of what holds until the next change. changes: from when on, in order."""
    values: list[float | None] = []
    place, value = 0, None
    for step_us in span.steps_us:
        until_us = step_us + span.step_s * 1_000_000
        while place < len(changes) and changes[place][0] < until_us:
            value = changes[place][1]
            place += 1
        values.append(value)
    return tuple(values)


def _area(below: Iterable[float], above: Iterable[float], top: float) -> str:
    upper, lower = _steps(list(above), top), _steps(list(below), top)
    return f"M{' '.join(upper)} L{' '.join(reversed(lower))} Z"


def _line(values: Values, top: float) -> str:
    """With gaps where there is no value."""
    path, points, width = [], [], WIDTH / max(1, len(values))
    for number, value in enumerate((*values, None)):
        if value is not None:
            y = _y(value, top)
            points += [f"{number * width:.1f},{y}", f"{(number + 1) * width:.1f},{y}"]
        elif points:
            path.append(f"M{' '.join(points)}")
            points = []
    return " ".join(path)


def _steps(values: list[float], top: float) -> list[str]:
    width = WIDTH / max(1, len(values))
    return [f"{(number + side) * width:.1f},{_y(value, top)}" for number, value in enumerate(values) for side in (0, 1)]


def _y(value: float, top: float) -> str:
    return f"{HEIGHT - min(value / top, 1) * HEIGHT:.1f}"
