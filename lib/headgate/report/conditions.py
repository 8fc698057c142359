"""Which connections were not read for the sake of memory, whatever quotas say: counts of the table `marks`."""

from dataclasses import dataclass

from headgate.throttle.tables import Tables

_COUNTS = (
    "SELECT type AS condition, count(*) AS times, count(DISTINCT broker || ' ' || connection) AS connections "
    "FROM marks WHERE action = 'mark' AND scope IN ('connection', 'io_thread') "
    "GROUP BY type ORDER BY times DESC, condition"
)
_OPENED = "SELECT count(*) AS opened FROM marks WHERE action = 'open'"


@dataclass(frozen=True)
class Held:
    """condition: a ThrottleType. times: how often it began to hold a connection; connections: how many it held."""

    condition: str
    times: int
    connections: int


def opened_connections(tables: Tables) -> int:
    """How many connections there were in rows of what connections do."""
    return int(tables.sums(_OPENED)["opened"][0].as_py())


def held_connections(tables: Tables) -> list[Held]:
    """A row for each condition that held any, most often first."""
    return [Held(**row) for row in tables.sums(_COUNTS).to_pylist()]
