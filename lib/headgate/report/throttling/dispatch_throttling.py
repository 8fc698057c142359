"""Which subscriptions were held back, and by which level: sums over the table `dispatch_decisions`."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow.compute as pc

from headgate.tables.sums import LOWEST, Summed, Sums
from headgate.throttle.registration import REPLICATOR
from headgate.throttle.schemas import DISPATCH_LEVELS

_PLACE = ("broker", "topic", "subscription")
_HELD_BY = tuple(f"held_by_{level}" for level in DISPATCH_LEVELS)
_TIME = "event_time"
READS = Sums("dispatch_decisions", _PLACE, ("reads", "allowed_reads", *_HELD_BY))
HELD_READS = Sums("dispatch_decisions", _PLACE, highest=(_TIME,), lowest=(_TIME,), nonzero=_HELD_BY)


@dataclass(frozen=True)
class HeldBack:
    """A subscription or replicator of a topic on a broker.

    reads: dispatches that came; allowed: those that were, of offered traffic also after a wait; held: those that found
    no permit as they came. level: which held most of them, and its share of them. first, last: the seconds in which the
    first and the last of them came.
    """

    broker: str
    topic: str
    subscription: str
    reads: int
    allowed: int
    held: int
    level: str
    first: datetime
    last: datetime


def held_back(tables: Summed) -> list[HeldBack]:
    """Those that were held back at all, most reads held first."""
    sums = tables.totals(READS)
    held = sums[_HELD_BY[0]]
    for name in _HELD_BY[1:]:
        held = pc.add(held, sums[name])
    sums = sums.append_column("held", held)
    order = [("held", "descending"), ("reads", "descending"), *((name, "ascending") for name in _PLACE)]
    worst = sums.filter(pc.greater(sums["held"], 0)).sort_by(order)
    when = {_place(row): (row[LOWEST + _TIME], row[_TIME]) for row in tables.totals(HELD_READS).to_pylist()}
    return [
        HeldBack(
            **{name: row[name] for name in (*_PLACE, "reads", "held")},
            allowed=row["allowed_reads"],
            level=_level(row["subscription"], {level: row[f"held_by_{level}"] for level in DISPATCH_LEVELS}),
            first=first,
            last=last,
        )
        for row in worst.to_pylist()
        for first, last in [when[_place(row)]]
    ]


def _place(row: Mapping[str, Any]) -> tuple[str, str, str]:
    return row["broker"], row["topic"], row["subscription"]


def _level(subscription: str, held_by: dict[str, int]) -> str:
    worst = max(held_by, key=lambda level: held_by[level])
    name = "replicator" if worst == "subscription" and subscription.startswith(REPLICATOR) else worst
    share = held_by[worst] / sum(held_by.values())
    return name if share == 1 else f"{name} ({int(share * 100)}%)"
