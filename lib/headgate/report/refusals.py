"""Whose attempts to subscribe were refused: sums over the table `subscribe_decisions`."""

from dataclasses import dataclass

from headgate.throttle.tables import Tables

_SUMS = (
    "SELECT consumer, client, count(*) AS attempts, sum(CASE WHEN allowed THEN 0 ELSE 1 END) AS refused, "
    "count(DISTINCT CASE WHEN allowed THEN NULL ELSE topic END) AS topics FROM subscribe_decisions "
    "GROUP BY consumer, client ORDER BY refused DESC, attempts DESC, consumer, client"
)


@dataclass(frozen=True)
class Refused:
    """A consumer of a client host; topics: how many refused it."""

    consumer: str
    client: str
    attempts: int
    refused: int
    topics: int


def refused_consumers(tables: Tables) -> list[Refused]:
    """All who tried, most refused first."""
    return [Refused(**row) for row in tables.sums(_SUMS).to_pylist()]
