"""Who was throttled, how much, and by which limiter: sums over the tables `topic_usage` and `marks`."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from headgate.throttle.names import tenant_of
from headgate.throttle.sums import Summed, Sums

_OF_OFFERED = ("delayed_publishes", "failed_publishes", "delay_ns", "admitted_publishes")
_COUNTS = ("publishes", "throttled_publishes", "throttled_ns", *_OF_OFFERED)
USAGE = Sums("topic_usage", ("topic",), _COUNTS)
MARKS = Sums("marks", ("topic", "scope", "limiter"), where=(("action", ("mark",)),))


@dataclass(frozen=True)
class Throttled:
    """A tenant or topic.

    throttled_ns: of all its topics together. blame: the limiter with most of its marks, and its share of them.
    delayed, failed: publishes that were let in later, or given up; delay_ns: how much later, summed over the delayed;
    admitted: publishes that were let in, at once or later. None in admitted traffic.
    """

    name: str
    publishes: int
    throttled_publishes: int
    throttled_ns: int
    blame: str
    delayed: int | None = None
    failed: int | None = None
    delay_ns: int | None = None
    admitted: int | None = None

    @property
    def waiting(self) -> int:
        """Publishes of offered traffic that were neither let in nor given up by the end."""
        return 0 if self.admitted is None else self.publishes - self.admitted - (self.failed or 0)


def throttled_by_topic(tables: Summed) -> list[Throttled]:
    """All topics, most throttled publishes first."""
    return _ranked(tables, lambda topic: topic)


def throttled_by_tenant(tables: Summed) -> list[Throttled]:
    """All tenants, most throttled publishes first."""
    return _ranked(tables, tenant_of)


def _ranked(tables: Summed, name_of: Callable[[str], str]) -> list[Throttled]:
    sums: dict[str, list[int | None]] = {}
    for topic, *counts in zip(*tables.totals(USAGE).select(["topic", *_COUNTS]).to_pydict().values(), strict=True):
        name = name_of(topic)
        sums[name] = [_total(pair) for pair in zip(sums[name], counts, strict=True)] if name in sums else counts
    blame = _blame(tables, name_of)
    ranked = [
        Throttled(name, publishes or 0, throttled or 0, throttled_ns or 0, blame.get(name, "none"), *of_offered)
        for name, (publishes, throttled, throttled_ns, *of_offered) in sums.items()
    ]
    return sorted(ranked, key=lambda row: (-row.throttled_publishes, -row.throttled_ns, row.name))


def _total(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _blame(tables: Summed, name_of: Callable[[str], str]) -> dict[str, str]:
    by_name: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for row in tables.totals(MARKS).to_pylist():
        if row["topic"] is not None:
            limiter = "its own limit" if row["scope"] == "topic" else f"{row['scope']} {row['limiter']}"
            by_name[name_of(row["topic"])][limiter] += row["rows"]
    blame = {}
    for name, limiters in by_name.items():
        worst, marks_of_worst = max(limiters.items(), key=lambda item: (item[1], item[0]))
        share = marks_of_worst / sum(limiters.values())
        blame[name] = worst if share == 1 else f"{worst} ({share:.0%} of marks)"
    return blame
