"""How far behind the assumed cursors of a sweep read. Nothing heavy is imported here: `--help` is quick."""

import re
from collections.abc import Sequence
from typing import NamedTuple

_UNITS_US = {"ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000}
_LAG = re.compile(r"([0-9]{1,9})(ms|s|m|h)")


class Lag(NamedTuple):
    """How far a cursor reads behind. text: as it was given."""

    text: str
    us: int

    @property
    def cursor(self) -> str:
        return f"lag-{self.text}"


def lags_of(text: str) -> tuple[Lag, ...]:
    """Lags as an option has them, joined by commas. Raises ValueError for anything else, and for one given twice."""
    found = []
    for part in text.split(","):
        match = _LAG.fullmatch(part.strip())
        if match is None:
            raise ValueError(part)
        found.append(Lag(part.strip(), int(match[1]) * _UNITS_US[match[2]]))
    if len({lag.us for lag in found}) < len(found):
        raise ValueError(text)
    return tuple(found)


def told(lags: Sequence[Lag]) -> str:
    """What a screen and a report say of it; empty where nothing is assumed."""
    if not lags:
        return ""
    return f"Cursors are assumed: one a topic for each lag of {', '.join(lag.text for lag in lags)}."
