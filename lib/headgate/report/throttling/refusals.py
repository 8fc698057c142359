"""Whose attempts to subscribe were refused: sums over the table `subscribe_decisions`."""

from collections import defaultdict
from dataclasses import dataclass

from headgate.tables.sums import Summed, Sums

ATTEMPTS = Sums("subscribe_decisions", ("consumer", "client", "topic", "allowed"))


@dataclass(frozen=True)
class Refused:
    """A consumer of a client host; topics: how many refused it."""

    consumer: str
    client: str
    attempts: int
    refused: int
    topics: int


def refused_consumers(tables: Summed) -> list[Refused]:
    """All who tried, most refused first."""
    attempts: dict[tuple[str, str], int] = defaultdict(int)
    refused: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    for row in tables.totals(ATTEMPTS).to_pylist():
        who = row["consumer"], row["client"]
        attempts[who] += row["rows"]
        if not row["allowed"]:
            refused[who][row["topic"]] = row["rows"]
    rows = [Refused(*who, count, sum(refused[who].values()), len(refused[who])) for who, count in attempts.items()]
    return sorted(rows, key=lambda row: (-row.refused, -row.attempts, row.consumer, row.client))
