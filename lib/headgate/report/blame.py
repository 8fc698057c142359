"""Who was throttled, how much, and by which limiter: sums over the tables `topic_usage` and `marks`."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from headgate.throttle.tables import Tables


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


def tenant_of(topic: str) -> str:
    return topic.partition("://")[2].partition("/")[0]


def _ranked(tables: Tables, name_of: Callable[[str], str]) -> list[Throttled]:
    columns = ["publishes", "throttled_publishes", "throttled_ns"]
    usage = (
        tables.read("topic_usage", ["topic", *columns]).group_by("topic").aggregate([(name, "sum") for name in columns])
    )
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for row in usage.to_pylist():
        for i, column in enumerate(columns):
            sums[name_of(row["topic"])][i] += row[f"{column}_sum"]
    blame = _blame(tables, name_of)
    ranked = [
        Throttled(name, publishes, throttled, throttled_ns, blame.get(name, "none"))
        for name, (publishes, throttled, throttled_ns) in sums.items()
    ]
    return sorted(ranked, key=lambda row: (-row.throttled_publishes, -row.throttled_ns, row.name))


def _blame(tables: Tables, name_of: Callable[[str], str]) -> dict[str, str]:
    marks = tables.read("marks", ["topic", "scope", "limiter", "action"])
    counted: pa.Table = (
        marks.filter(pc.equal(marks["action"], "mark"))
        .group_by(["topic", "scope", "limiter"])
        .aggregate([("action", "count")])
    )
    by_name: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for row in counted.to_pylist():
        limiter = "its own limit" if row["scope"] == "topic" else f"{row['scope']} {row['limiter']}"
        by_name[name_of(row["topic"])][limiter] += row["action_count"]
    blame = {}
    for name, limiters in by_name.items():
        worst, marks_of_worst = max(limiters.items(), key=lambda item: (item[1], item[0]))
        share = marks_of_worst / sum(limiters.values())
        blame[name] = worst if share == 1 else f"{worst} ({share:.0%} of marks)"
    return blame
