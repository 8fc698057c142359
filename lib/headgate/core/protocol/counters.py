"""Counters by name and labels, that only rise (throttle-protocol 14)."""

from typing import NamedTuple

Labels = tuple[tuple[str, str], ...]


class Increment(NamedTuple):
    """What a counter rose by; labels in ascending order."""

    name: str
    labels: Labels
    value: int


class Counters:
    """A counter is there from its first rise above 0. They outlive the connections that they count.

    Not part of a connection's state: totals are read with `values`, and what rose since the last time with `taken`.
    Source: throttle-protocol 14
    """

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: dict[tuple[str, Labels], int] = {}

    def add(self, name: str, labels: Labels = (), amount: int = 1) -> None:
        """Raise the counter by `amount` >= 0. `labels` are (label, value) in ascending order."""
        if amount:
            key = (name, labels)
            self._counts[key] = self._counts.get(key, 0) + amount

    def counts(self) -> dict[tuple[str, Labels], int]:
        """The counters by name and labels, as of now: they may rise in another thread."""
        return self._counts.copy()

    def values(self) -> dict[str, int]:
        """The counters under their written names, `name{label=value,...}`."""
        return {_written(name, labels): count for (name, labels), count in self._counts.items()}

    def taken(self) -> list[Increment]:
        """What rose, ordered by name and labels; all counters begin at 0 again."""
        rose = [Increment(name, labels, count) for (name, labels), count in sorted(self._counts.items())]
        self._counts.clear()
        return rose


def _written(name: str, labels: Labels) -> str:
    return f"{name}{{{','.join(f'{label}={value}' for label, value in labels)}}}"
