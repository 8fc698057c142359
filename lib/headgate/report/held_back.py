"""Which subscriptions were held back, and by which level: sums over the table `dispatch_decisions`."""

from dataclasses import dataclass

from headgate.throttle.registration import REPLICATOR
from headgate.throttle.schemas import DISPATCH_LEVELS
from headgate.throttle.tables import Tables

_SUMS = (
    "SELECT * FROM (SELECT broker, topic, subscription, sum(reads) AS reads, sum(allowed_reads) AS allowed, "
    "sum(held_by_broker) AS by_broker, sum(held_by_topic) AS by_topic, sum(held_by_subscription) AS by_subscription, "
    "sum(held_by_group) AS by_group, "
    "sum(held_by_broker + held_by_topic + held_by_subscription + held_by_group) AS held "
    "FROM dispatch_decisions GROUP BY broker, topic, subscription) WHERE held > 0 "
    "ORDER BY held DESC, reads DESC, broker, topic, subscription"
)


@dataclass(frozen=True)
class HeldBack:
    """A subscription or replicator of a topic on a broker.

    reads: dispatches that came; allowed: those that were, of offered traffic also after a wait; held: those that found
    no permit as they came. level: which held most of them, and its share of them.
    """

    broker: str
    topic: str
    subscription: str
    reads: int
    allowed: int
    held: int
    level: str


def held_back(tables: Tables, most: int) -> list[HeldBack]:
    """Up to `most` of those that were held back at all, most reads held first."""
    return [
        HeldBack(
            **{name: row[name] for name in ("broker", "topic", "subscription", "reads", "allowed", "held")},
            level=_level(row["subscription"], {level: row[f"by_{level}"] for level in DISPATCH_LEVELS}),
        )
        for row in tables.sums(f"{_SUMS} LIMIT {most}").to_pylist()
    ]


def _level(subscription: str, held_by: dict[str, int]) -> str:
    worst = max(held_by, key=lambda level: held_by[level])
    name = "replicator" if worst == "subscription" and subscription.startswith(REPLICATOR) else worst
    share = held_by[worst] / sum(held_by.values())
    return name if share == 1 else f"{name} ({int(share * 100)}%)"
