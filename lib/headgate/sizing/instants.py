"""When a run of a sweep looks into its cache, and what it saw."""

from dataclasses import dataclass

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


@dataclass(slots=True)
class Gauges:
    """Sums over the instants at which a cache was looked at."""

    looks: int = 0
    used_bytes: int = 0
    pinned_bytes: int = 0
    peak_pinned_bytes: int = 0

    def look(self, used_bytes: int, pinned_bytes: int) -> None:
        """What is cached now, and the memory that it keeps."""
        self.looks += 1
        self.used_bytes += used_bytes
        self.pinned_bytes += pinned_bytes
        self.peak_pinned_bytes = max(self.peak_pinned_bytes, pinned_bytes)
