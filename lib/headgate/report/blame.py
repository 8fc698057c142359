"""Who was throttled, how much, and by which limiter: sums over the tables `topic_usage` and `marks`."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from headgate.throttle.names import tenant_of
from headgate.throttle.tables import Tables

_USAGE = "SELECT topic, sum(publishes), sum(throttled_publishes), sum(throttled_ns) FROM topic_usage GROUP BY topic"
_MARKS = (
    "SELECT topic, scope, limiter, count(*) AS marks FROM marks WHERE action = 'mark' GROUP BY topic, scope, limiter"
)


@dataclass(frozen=True)
class Throttled:
    """A tenant or topic.

    throttled_ns: of all its topics together. blame: the limiter with most of its marks, and its share of them.
    """

    name: str
    publishes: int
    throttled_publishes: int
    throttled_ns: int
    blame: str


def throttled_by_topic(tables: Tables) -> list[Throttled]:
    """All topics, most throttled publishes first."""
    return _ranked(tables, lambda topic: topic)


def throttled_by_tenant(tables: Tables) -> list[Throttled]:
    """All tenants, most throttled publishes first."""
    return _ranked(tables, tenant_of)


def _ranked(tables: Tables, name_of: Callable[[str], str]) -> list[Throttled]:
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for topic, *counts in zip(*tables.sums(_USAGE).to_pydict().values(), strict=True):
        sums[name_of(topic)] = [total + more for total, more in zip(sums[name_of(topic)], counts, strict=True)]
    blame = _blame(tables, name_of)
    ranked = [
        Throttled(name, publishes, throttled, throttled_ns, blame.get(name, "none"))
        for name, (publishes, throttled, throttled_ns) in sums.items()
    ]
    return sorted(ranked, key=lambda row: (-row.throttled_publishes, -row.throttled_ns, row.name))


def _blame(tables: Tables, name_of: Callable[[str], str]) -> dict[str, str]:
    by_name: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for row in tables.sums(_MARKS).to_pylist():
        limiter = "its own limit" if row["scope"] == "topic" else f"{row['scope']} {row['limiter']}"
        by_name[name_of(row["topic"])][limiter] += row["marks"]
    blame = {}
    for name, limiters in by_name.items():
        worst, marks_of_worst = max(limiters.items(), key=lambda item: (item[1], item[0]))
        share = marks_of_worst / sum(limiters.values())
        blame[name] = worst if share == 1 else f"{worst} ({share:.0%} of marks)"
    return blame
