"""How unloads of bundles went: sums over the table `unloads`."""

from dataclasses import dataclass
from datetime import datetime

from headgate.throttle.tables import Tables

_SUMS = (
    "SELECT count(*) AS unloads, count(CASE WHEN outcome = 'timed_out' THEN 1 END) AS timed_out, "
    "max(waited_ns) AS longest_wait_ns, max(end_time) AS last_end FROM unloads"
)


@dataclass(frozen=True)
class Unloading:
    """Of all unloads of all brokers; longest_wait_ns: from when one was asked for to its start."""

    unloads: int
    timed_out: int
    longest_wait_ns: int
    last_end: datetime


def unloading(tables: Tables) -> Unloading | None:
    """How they went, None without any."""
    sums = tables.sums(_SUMS).to_pylist()[0]
    return Unloading(**sums) if sums["unloads"] else None
