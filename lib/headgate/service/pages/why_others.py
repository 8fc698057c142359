"""Why of a subscription, a connection and the entry cache: the answers of `headgate why`, as pages and as JSON."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from headgate.errors import PageError
from headgate.service.pages.read import Read
from headgate.service.pages.span import Asked, Span, together
from headgate.service.pages.why import said_in
from headgate.tables.query import text
from headgate.why.as_json import as_json
from headgate.why.cached import why_cached
from headgate.why.connections import why_connection
from headgate.why.subscriptions import why_subscription
from headgate.why.tables import of_topic

OF_SUBSCRIPTION = ("dispatch_decisions", "topic_usage", "marks")
OF_CONNECTION = ("marks", "connections", "topic_usage")
OF_CACHE = ("cache_metrics", "cache_evictions")


@dataclass(frozen=True)
class OtherWhy:
    """answer: the same as of `headgate why --json`. about: whom, as a heading."""

    about: str
    span: Span
    answer: dict[str, Any]


def subscription_page(read: Read, asked: Asked, topic: str, name: str) -> OtherWhy:
    """Raises PageError, 404 for a topic, subscription or time of which nothing is known, 400 for no name."""
    if not name:
        raise PageError(400, "subscription: got nothing; allowed: a name. Add ?subscription=NAME to the address.")
    read.need("topic_usage")
    span = asked.span(together(read.extent(one) for one in OF_SUBSCRIPTION[:2] if read.has(one)), "publish")
    found = said_in(span, partial(why_subscription, read.tables, topic, name))
    where = f"{of_topic(found.topic)} AND {span.where()}"
    _note(read, "dispatch_decisions", f"{where} AND subscription = {text(name)}")
    _note(read, "topic_usage", where)
    return OtherWhy(f"{name} of {found.topic}", span, as_json(found))


def connection_page(read: Read, asked: Asked, name: str) -> OtherWhy:
    """name: broker/connection. Raises PageError, 404 for a connection or time of which nothing is known."""
    read.need("marks")
    span = asked.span(together(read.extent(one) for one in OF_CONNECTION if read.has(one)), "mark")
    found = said_in(span, partial(why_connection, read.tables, name))
    where = f"broker = {text(found.broker)} AND connection = {text(found.connection)}"
    _note(read, "marks", f"{where} AND {span.until()}")
    _note(read, "connections", f"{where} AND {span.where()}")
    return OtherWhy(name, span, as_json(found))


def cache_page(read: Read, asked: Asked, topic: str) -> OtherWhy:
    """Raises PageError, 404 for a topic or time of which nothing is known."""
    span = asked.span(read.extent("cache_metrics", "second"), "entry")
    found = said_in(span, partial(why_cached, read.tables, topic))
    _note(read, "cache_metrics", f"{span.until('second')} AND topic IS NOT NULL", "second")
    _note(read, "cache_evictions", f"{span.where()} AND topic = {text(found.topic)}")
    return OtherWhy(found.topic, span, as_json(found))


def _note(read: Read, name: str, where: str, by: str = "event_time") -> None:
    """The rows that the answer is made of; of a table that is not there nothing."""
    if read.has(name):
        read.note(name, f"SELECT * FROM {name} WHERE {where} ORDER BY {by}")  # noqa: S608  quoted text
