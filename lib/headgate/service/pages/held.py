"""Topics and subscriptions that limits hold in some seconds, and which limit it is."""

from dataclasses import dataclass
from typing import Any

from headgate.core.reasons import HeldReason, dispatch_reason, publish_reason
from headgate.quota.usage.excess import IS_HELD
from headgate.quota.usage.topic_query import RAN_OUT
from headgate.service.pages.flow import FLOW, TABLE, Flow
from headgate.service.pages.read import Read
from headgate.service.pages.span import SECOND_US, Span
from headgate.tables.query import text
from headgate.throttle.schemas import DISPATCH_LEVELS

_BEFORE_S = 60
"""What still holds a topic marked it so long before at most: longer than clients wait for an "
"answer by default (30 s)."""
_SCOPES = ("topic", "broker", "group")


@dataclass(frozen=True)
class HeldTopic:
    """A topic on one broker. limiter: the name of what holds it, None where no mark says so. last_us: of its last row
    in these seconds.
    """

    topic: str
    broker: str
    reason: HeldReason | None
    scope: str
    limiter: str | None
    flow: Flow
    last_us: int


@dataclass(frozen=True)
class HeldSubscription:
    """reads: that came; held: of these, by a level of its dispatch limits. reason: of the level that held most,
    NOT_HELD where none did.
    """

    topic: str
    broker: str
    subscription: str
    reason: HeldReason
    reads: int
    held: int


def held_topics(read: Read, span: Span, most: int, where: str = "true") -> tuple[list[HeldTopic], int]:
    """Those whose producers waited longest, and how many there are in all."""
    by = ", ".join(f"sum(throttled_by_{scope}) AS by_{scope}" for scope in _SCOPES)
    rows = read.rows(
        TABLE,
        f"SELECT *, count(*) OVER () AS topics FROM (SELECT topic, broker, {FLOW}, {by}, "  # noqa: S608  our own names
        f"arrow_cast(max(event_time), 'Int64') AS last_us FROM {TABLE} WHERE {span.where()} AND {where} AND {IS_HELD} "
        f"GROUP BY topic, broker) ORDER BY waited_ns DESC, throttled DESC, topic, broker LIMIT {most}",
    )
    marked = _marks(read, span, [row["topic"] for row in rows])
    return [_held(row, marked) for row in rows], rows[0]["topics"] if rows else 0


def _held(row: dict[str, Any], marked: dict[tuple[str, str, str], dict[str, Any]]) -> HeldTopic:
    topic, broker = row["topic"], row["broker"]
    marks = [mark for scope in _SCOPES if (mark := marked.get((topic, broker, scope)))]
    most = max(_SCOPES, key=lambda scope: row[f"by_{scope}"] or 0)
    if not row[f"by_{most}"]:  # held by an earlier mark, which came last
        most = max(marks, key=lambda mark: mark["at_ns"])["scope"] if marks else ""
    mark = marked.get((topic, broker, most))
    is_blocked = mark is not None and most == "group" and 0 in {mark["messages_per_s"], mark["bytes_per_s"]}
    reason = None
    if most:
        reason = publish_reason(most, None if mark is None else mark["unit"], is_blocked=is_blocked)
    limiter = None if mark is None else mark["limiter"]
    return HeldTopic(topic, broker, reason, most, limiter, Flow.of(row), row["last_us"])


def _marks(read: Read, span: Span, topics: list[str]) -> dict[tuple[str, str, str], dict[str, Any]]:
    """The last mark of each topic by broker and scope, also from up to _BEFORE_S before."""
    if not topics or not read.has("marks"):
        return {}
    before = Span(span.first_us - _BEFORE_S * SECOND_US, span.end_us)
    columns = "topic, broker, scope, limiter, at_ns, messages_per_s, bytes_per_s"
    rows = read.rows(
        "marks",
        f"SELECT {columns}, unit FROM (SELECT {columns}, {RAN_OUT} AS unit, "  # noqa: S608  our own names
        "row_number() OVER (PARTITION BY topic, broker, scope ORDER BY at_ns DESC) AS place FROM marks "
        f"WHERE {before.where()} AND action = 'mark' AND topic IN ({', '.join(map(text, topics))})) WHERE place = 1",
    )
    return {(row["topic"], row["broker"], row["scope"]): row for row in rows}


def held_subscriptions(
    read: Read, span: Span, most: int, where: str = "true", least: int = 1
) -> tuple[list[HeldSubscription], int]:
    """Those of which most reads were held, at least so many, and how many there are in all."""
    if not read.has("dispatch_decisions"):
        return [], 0
    by = ", ".join(f"sum(held_by_{level}) AS {level}_level" for level in DISPATCH_LEVELS)
    held = " + ".join(f"held_by_{level}" for level in DISPATCH_LEVELS)
    rows = read.rows(
        "dispatch_decisions",
        f"SELECT *, count(*) OVER () AS subscriptions FROM (SELECT topic, broker, subscription, sum(reads) AS reads, "  # noqa: S608
        f"sum({held}) AS held, {by} FROM dispatch_decisions WHERE {span.where()} AND {where} GROUP BY topic, broker, "
        f"subscription) WHERE held >= {least} ORDER BY held DESC, topic, broker, subscription LIMIT {most}",
    )
    found = [
        HeldSubscription(
            row["topic"],
            row["broker"],
            row["subscription"],
            _dispatch_reason(row),
            row["reads"],
            row["held"],
        )
        for row in rows
    ]
    return found, rows[0]["subscriptions"] if rows else 0


def _dispatch_reason(row: dict[str, Any]) -> HeldReason:
    if not row["held"]:
        return HeldReason.NOT_HELD
    return dispatch_reason(max(DISPATCH_LEVELS, key=lambda level: row[f"{level}_level"]))
