"""How unloads of bundles went: sums over the table `unloads`."""

from dataclasses import dataclass
from datetime import datetime

from headgate.tables.sums import Summed, Sums

OUTCOMES = Sums("unloads", ("outcome",), highest=("waited_ns", "end_time"))


@dataclass(frozen=True)
class Unloading:
    """Of all unloads of all brokers; longest_wait_ns: from when one was asked for to its start."""

    unloads: int
    timed_out: int
    longest_wait_ns: int
    last_end: datetime


def unloading(tables: Summed) -> Unloading | None:
    """How they went, None without any."""
    outcomes = tables.totals(OUTCOMES).to_pylist()
    if not outcomes:
        return None
    return Unloading(
        sum(row["rows"] for row in outcomes),
        sum(row["rows"] for row in outcomes if row["outcome"] == "timed_out"),
        max(row["waited_ns"] for row in outcomes),
        max(row["end_time"] for row in outcomes),
    )
