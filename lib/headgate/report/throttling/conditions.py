"""Which connections were not read for the sake of memory, whatever quotas say: counts of the table `marks`."""

from collections import defaultdict
from dataclasses import dataclass

from headgate.tables.sums import Summed, Sums

OPENED = Sums("marks", ("action",), where=(("action", ("open",)),))
CONDITIONS = Sums(
    "marks",
    ("type", "broker", "connection"),
    where=(("action", ("mark",)), ("scope", ("connection", "io_thread"))),
)


@dataclass(frozen=True)
class Held:
    """condition: a ThrottleType. times: how often it began to hold a connection; connections: how many it held."""

    condition: str
    times: int
    connections: int


def opened_connections(tables: Summed) -> int:
    """How many connections there were in rows of what connections do."""
    return sum(tables.totals(OPENED)["rows"].to_pylist())


def held_connections(tables: Summed) -> list[Held]:
    """A row for each condition that held any, most often first."""
    times: dict[str, int] = defaultdict(int)
    connections: dict[str, int] = defaultdict(int)
    for row in tables.totals(CONDITIONS).to_pylist():
        times[row["type"]] += row["rows"]
        connections[row["type"]] += row["connection"] is not None
    held = [Held(condition, count, connections[condition]) for condition, count in times.items()]
    return sorted(held, key=lambda row: (-row.times, row.condition))
