"""Collects what is wrong in conf files, so that one run reports all of it."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

_SHOWN_CHARACTERS: Final = 60

INT32_MIN: Final = -(2**31)
INT32_MAX: Final = 2**31 - 1
INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1
MAX_MS: Final = INT64_MAX // 1_000_000
"""The longest duration in milliseconds whose nanoseconds fit in 64 bits."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a finding is: a file, and the line and key in it where they are known."""

    file: str
    key: str = ""
    line: int | None = None

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file} line {self.line}"
        return f"{where}: {self.key}" if self.key else where


@dataclass(slots=True)
class Findings:
    """Mistakes stop the program once every file has been read; warnings are for the job to print."""

    mistakes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def mistake(self, place: Place, got: str, allowed: str, remedy: str) -> None:
        """Record one finished line: where, what was got, what is allowed, what to do."""
        self.mistakes.append(f"{place}: got {got}; allowed: {allowed}; {remedy}")

    def unknown_key(self, place: Place, key: str, known: Iterable[str]) -> None:
        """Record a key that does not exist where the set of keys is closed, with the nearest one that does."""
        names = sorted(known)
        near = nearest(key, names)
        remedy = f"did you mean {near}?" if near else "delete it"
        self.mistake(place, "an unknown key", ", ".join(names), remedy)


def shown(value: object) -> str:
    """Return `value` as a message quotes it: as Python writes it, cut to a length that fits a line."""
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the known name most like `name`, ignoring case, or None if none reaches `cutoff` (0 to 1)."""
    by_folded = {candidate.casefold(): candidate for candidate in known}
    matches = difflib.get_close_matches(name.casefold(), by_folded, n=1, cutoff=cutoff)
    return by_folded[matches[0]] if matches else None
