"""The list of topics, which can be searched by a part of the name."""

from dataclasses import dataclass

from headgate.service.pages.flow import FLOW, TABLE, TOTAL, Flow
from headgate.service.pages.read import Read
from headgate.service.pages.span import Asked, Span
from headgate.tables.query import text

MOST = 200


@dataclass(frozen=True)
class TopicUse:
    """A topic's traffic on all brokers. brokers: on how many it had any."""

    topic: str
    brokers: int
    flow: Flow


@dataclass(frozen=True)
class Topics:
    """query: the part of the name that was searched for. total: listed or not."""

    span: Span
    query: str
    topics: tuple[TopicUse, ...]
    total: int


def all_topics(read: Read, asked: Asked, query: str = "") -> Topics:
    """Raises PageError and TableError."""
    span = asked.span(read.extent(TABLE), "publish")
    where = f"strpos(lower(topic), {text(query.lower())}) > 0" if query else "true"
    found, total = topic_uses(read, span, MOST, where)
    return Topics(span, query, tuple(found), total)


def topic_uses(read: Read, span: Span, most: int, where: str) -> tuple[list[TopicUse], int]:
    """Those whose producers waited longest, then the largest; and how many there are in all."""
    rows = read.rows(
        TABLE,
        f"SELECT topic, count(*) AS brokers, {TOTAL}, count(*) OVER () AS topics FROM (SELECT topic, broker, {FLOW} "  # noqa: S608
        f"FROM {TABLE} WHERE {span.where()} AND {where} GROUP BY topic, broker) GROUP BY topic "
        f"ORDER BY waited_ns DESC, allowed_messages DESC, topic LIMIT {most}",
    )
    return [TopicUse(row["topic"], row["brokers"], Flow.of(row)) for row in rows], rows[0]["topics"] if rows else 0
