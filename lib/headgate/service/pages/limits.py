"""Publish limits of a topic over time, from the table `control`: its own, its brokers' and its group's shares there."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headgate.core.topic_names import namespace_of
from headgate.service.pages.charts import Change, Course, held_on
from headgate.service.pages.read import Read
from headgate.service.pages.span import Span
from headgate.service.pages.words import quantity
from headgate.tables.query import text

MOST_CHANGES = 300
UNITS = ("messages", "bytes")
_OWN = ("topic", "namespace", "default")
"""Scopes of a topic's own limit; the first that has one holds."""
_COLUMNS = "arrow_cast(effective_time, 'Int64') AS at_us, seq, broker, scope, name, messages_per_s, bytes_per_s, source"


@dataclass(frozen=True)
class LimitChange:
    """From `at_us` on. broker: the one it holds on, None for all. Rates of None or 0 limit nothing, but for groups,
    which 0 blocks.
    """

    at_us: int
    broker: str | None
    scope: str
    name: str
    messages_per_s: int | None
    bytes_per_s: int | None
    source: str | None

    @property
    def who(self) -> str:
        """What it is the limit of, in words."""
        of = {"default": "every topic", "broker": "the broker"}.get(self.scope, f"{self.scope} {self.name}")
        return of if self.broker is None else f"{of} on {self.broker}"

    @property
    def words(self) -> str:
        rates = [
            f"{quantity(rate, unit)}/s" if unit == "bytes" else f"{quantity(rate, unit)} messages/s"
            for unit, rate in zip(UNITS, (self.messages_per_s, self.bytes_per_s), strict=True)
            if rate is not None
        ]
        return f"{self.who}: {', '.join(rates) or 'not limited'}"

    def rate(self, unit: str) -> int | None:
        """None where nothing is limited."""
        value = self.messages_per_s if unit == "messages" else self.bytes_per_s
        return value if self.scope == "group" else value or None


@dataclass(frozen=True)
class Limits:
    """before: in force when the range begins; changes: in it, in order, the newest MOST_CHANGES of `total`."""

    before: tuple[LimitChange, ...]
    changes: tuple[LimitChange, ...]
    total: int

    def lines(self, span: Span, unit: str, highest: float) -> tuple[Course, ...]:
        """Limits as courses; what lies far above the traffic is left out, as it would flatten it. highest: of that."""
        found = [self._own(span, unit), *(self._shared(span, unit, place) for place in self._places())]
        return tuple(
            line for line in found if any(value is not None and value <= 4 * max(highest, 1) for value in line.values)
        )

    def marks(self) -> tuple[Change, ...]:
        """Of brokers' shares, whose changes are many, none: their lines show them."""
        return tuple(Change(one.at_us, one.words) for one in self.changes if one.source != "quota")

    def _places(self) -> list[tuple[str, str, str | None]]:
        found = {(one.scope, one.name, one.broker) for one in (*self.before, *self.changes) if one.scope not in _OWN}
        named = {(scope, name) for scope, name, broker in found if broker is not None}
        return sorted((place for place in found if place[2] is not None or place[:2] not in named), key=str)

    def _own(self, span: Span, unit: str) -> Course:
        rates: dict[str, int | None] = {}
        steps: list[tuple[int, float | None]] = []
        for one in (*self.before, *self.changes):
            if one.scope in _OWN:
                is_gone = one.messages_per_s is None and one.bytes_per_s is None
                rates.pop(one.scope, None) if is_gone else rates.update({one.scope: one.rate(unit)})
                steps.append((one.at_us, next((rates[scope] for scope in _OWN if scope in rates), None)))
        return Course("limit of the topic", "limit-1", held_on(span, steps))

    def _shared(self, span: Span, unit: str, place: tuple[str, str, str | None]) -> Course:
        scope, name, broker = place
        steps = [
            (one.at_us, one.rate(unit))
            for one in (*self.before, *self.changes)
            if (one.scope, one.name, one.broker) == place
        ]
        of = "limit of" if scope == "broker" else f"share of {name} on"
        return Course(
            f"{of} {broker or 'all brokers'}", "limit-2" if scope == "group" else "limit-3", held_on(span, steps)
        )


def limits_of(read: Read, span: Span, topic: str, group: str | None, brokers: Sequence[str]) -> Limits:
    """Of a topic without its partition. brokers: those that had traffic of it. Raises TableError."""
    if not read.has("control"):
        return Limits((), (), 0)
    places = [
        "scope IN ('default', 'broker')",
        f"(scope = 'topic' AND name = {text(topic)})",
        f"(scope = 'namespace' AND name = {text(namespace_of(topic))})",
        *([] if group is None else [f"(scope = 'group' AND name = {text(group)})"]),
    ]
    on = f"(broker IS NULL OR broker IN ({', '.join(map(text, brokers)) or 'NULL'}))"
    where = f"kind = 'limit' AND ({' OR '.join(places)}) AND {on}"
    earlier = f"{span.before('effective_time')} AND {where}"
    before = read.rows(
        "control",
        f"SELECT {_COLUMNS} FROM (SELECT *, row_number() OVER (PARTITION BY scope, name, broker "  # noqa: S608
        f"ORDER BY effective_time DESC, seq DESC) AS place FROM control WHERE {earlier}) "
        "WHERE place = 1 ORDER BY effective_time, seq",
    )
    changes = read.rows(
        "control",
        f"SELECT {_COLUMNS}, count(*) OVER () AS changes FROM control WHERE {span.where('effective_time')} AND {where} "  # noqa: S608
        f"ORDER BY effective_time DESC, seq DESC LIMIT {MOST_CHANGES}",
    )
    total = changes[0]["changes"] if changes else 0
    return Limits(tuple(map(_change, before)), tuple(map(_change, changes[::-1])), total)


def _change(row: dict[str, Any]) -> LimitChange:
    return LimitChange(
        row["at_us"],
        row["broker"],
        row["scope"],
        row["name"] or "",
        row["messages_per_s"],
        row["bytes_per_s"],
        row["source"],
    )
