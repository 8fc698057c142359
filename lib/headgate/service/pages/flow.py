"""What was allowed and held of publishes, by second or in sum: the SQL of topic_usage that several views share."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from headgate.service.pages.charts import Chart, course
from headgate.service.pages.read import Read
from headgate.service.pages.span import SECOND_US, Span

TABLE = "topic_usage"
_LATER = "greatest({0} - coalesce(admitted_{0}, {0}), 0)"
SUMS = {
    "allowed_messages": "sum(coalesce(admitted_messages, messages))",
    "allowed_bytes": "sum(coalesce(admitted_bytes, bytes))",
    "held_messages": f"sum({_LATER.format('messages')})",
    "held_bytes": f"sum({_LATER.format('bytes')})",
    "publishes": "sum(publishes)",
    "throttled": "sum(throttled_publishes)",
    "failed": "sum(coalesce(failed_publishes, 0))",
    "waited_ns": "sum(throttled_ns)",
}
"""SQL of each field of `Flow`. What came in a second and was not let in in it was held; in admitted traffic that does
not show, as it is let in first."""
FLOW = ", ".join(f"{sql} AS {name}" for name, sql in SUMS.items())
TOTAL = ", ".join(f"sum({name}) AS {name}" for name in SUMS)
"""SQL: the sums of sums. Counting topics or brokers that way takes a tenth of the memory of count(DISTINCT ..)."""
IS_ADMITTED = "bool_and(admitted_publishes IS NULL) AS is_admitted"
"""SQL: whether it is traffic that was let in, so that what was held does not show in messages."""


@dataclass(frozen=True)
class Flow:
    """Sums over `span`. held: came and was not let in in the same second. waited_ns: while a producer
    waited, added up over topics and brokers.
    """

    allowed_messages: int
    allowed_bytes: int
    held_messages: int
    held_bytes: int
    publishes: int
    throttled: int
    failed: int
    waited_ns: int

    @classmethod
    def of(cls, row: dict[str, Any]) -> "Flow":
        return cls(**{name: row[name] or 0 for name in SUMS})

    @classmethod
    def total(cls, flows: Iterable["Flow"]) -> "Flow":
        listed = list(flows)
        return cls(**{name: sum(getattr(one, name) for one in listed) for name in SUMS})

    @property
    def is_held(self) -> bool:
        """Whether any limit did anything to it."""
        return bool(self.throttled or self.waited_ns or self.failed)


def span_sql(span: Span, column: str = "event_time") -> str:
    """SQL: the beginning of the step of `span` that a row is in."""
    step_us = span.step_s * SECOND_US
    return f"arrow_cast({column}, 'Int64') / {step_us} * {step_us}"


def timelines(read: Read, span: Span, where: str = "true") -> tuple[Chart, ...]:
    """Messages and bytes, allowed and held, step by step. where: SQL for the rows that count."""
    amounts = ", ".join(f"{SUMS[name]} AS {name}" for name in SUMS if name.startswith(("allowed", "held")))
    rows = read.rows(
        TABLE,
        f"SELECT {span_sql(span)} AS at_us, {amounts} FROM {TABLE} WHERE {span.where()} AND {where} "  # noqa: S608
        "GROUP BY at_us ORDER BY at_us",
    )

    def chart(unit: str) -> Chart:
        areas = tuple(
            course(name, name, span, {row["at_us"]: row[f"{name}_{unit}"] or 0 for row in rows})
            for name in ("allowed", "held")
        )
        return Chart(f"{unit.capitalize()} per second", f"{unit}/s", span, areas)

    return chart("messages"), chart("bytes")
