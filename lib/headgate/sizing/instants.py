"""When a run of a sweep looks into its cache, and what it saw."""

from dataclasses import dataclass
from typing import Protocol

INSTANTS = 1000
"""How often what is in a cache is looked at, at equal distances in event time."""


@dataclass(frozen=True)
class Span:
    """Event time of the first and the last row of a trace, in microseconds."""

    first_us: int
    last_us: int

    @property
    def step_us(self) -> int:
        """From one look into a cache to the next."""
        return max(1, (self.last_us - self.first_us) // INSTANTS)


class Looked(Protocol):
    """A cache in either form."""

    @property
    def current_bytes(self) -> int:
        """What is cached."""

    def pinned_bytes(self) -> int:
        """The memory that it keeps."""

    def advance(self, t_us: int) -> object:
        """Run the ticks up to a time."""


class Gauges:
    """Sums over the instants at which a cache was looked at, all over the span, whether or not it has rows there.

    Attributes: `next_us`, the instant that is due next, behind the span at its end; `looks`, how many there were.
    """

    __slots__ = ("_span", "looks", "next_us", "peak_pinned_bytes", "pinned_bytes", "used_bytes")

    def __init__(self, span: Span) -> None:
        self._span = span
        self.next_us = span.first_us + span.step_us
        self.looks = 0
        self.used_bytes = 0
        self.pinned_bytes = 0
        self.peak_pinned_bytes = 0

    def is_due(self, t_us: int) -> bool:
        """Whether there is an instant up to `t_us` at which the cache was not looked at."""
        return self.next_us <= min(t_us, self._span.last_us)

    def look_until(self, t_us: int, cache: Looked) -> None:
        """Advance the cache to each instant up to `t_us`, and look; between its rows that changes no result."""
        while self.is_due(t_us):
            cache.advance(self.next_us)
            self.look(cache)
            self.next_us += self._span.step_us

    def look_to_the_end(self, cache: Looked) -> None:
        """Look at the instants behind the last row, and once more at the end."""
        self.look_until(self._span.last_us, cache)
        self.look(cache)

    def look(self, cache: Looked) -> None:
        """What is cached now, and the memory that it keeps."""
        pinned_bytes = cache.pinned_bytes()
        self.looks += 1
        self.used_bytes += cache.current_bytes
        self.pinned_bytes += pinned_bytes
        self.peak_pinned_bytes = max(self.peak_pinned_bytes, pinned_bytes)
