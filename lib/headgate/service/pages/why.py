"""The view that says why a topic is held: the answer of `headgate why`, as a page and as JSON."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from headgate.core.reasons import HeldReason
from headgate.errors import NotFoundError, PageError
from headgate.service.pages.charts import Chart, Course
from headgate.service.pages.read import Read
from headgate.service.pages.span import SECOND_US, Asked, Span
from headgate.why.answer import Why
from headgate.why.as_json import as_json
from headgate.why.meanings import MEANINGS, Meaning
from headgate.why.tables import of_topic
from headgate.why.topics import why

Found = TypeVar("Found")
TABLE = "topic_usage"
TABLES = (TABLE, "marks", "control", "rg_groups", "rg_attachments", "rg_usage")


@dataclass(frozen=True)
class WhyPage:
    """answer: the same as of `headgate why --json`. charts: the debt of the limiter that held it longest."""

    topic: str
    span: Span
    answer: dict[str, Any]
    charts: tuple[Chart, ...]


@dataclass(frozen=True)
class Reasons:
    """What each reason means."""

    meanings: Mapping[HeldReason, Meaning] = field(default_factory=lambda: MEANINGS)


def why_page(read: Read, asked: Asked, name: str) -> WhyPage:
    """Raises PageError 404 for a topic or a time of which nothing is known, and TableError."""
    span = asked.span(read.extent(TABLE), "publish")
    where = f"{of_topic(name)} AND {span.where()}"
    read.note("marks", f"SELECT * FROM marks WHERE {where} ORDER BY at_ns")  # noqa: S608  quoted text
    read.note("control", "SELECT * FROM control WHERE kind IN ('limit', 'attachment') ORDER BY effective_time, seq")
    read.note(TABLE, f"SELECT * FROM {TABLE} WHERE {where} ORDER BY event_time")  # noqa: S608  quoted text
    found = said_in(span, partial(why, read.tables, name, read.settings))
    return WhyPage(found.topic, span, as_json(found), tuple(_debts(found, span)))


def said_in(span: Span, why: Callable[..., Found]) -> Found:
    """What `why` says of a range; first_s and last_s are its arguments. Raises PageError 404 where it finds nothing."""
    first_s, end_s = span.first_us // SECOND_US, span.end_us // SECOND_US
    try:
        return why(first_s=first_s, last_s=max(end_s - 1, first_s))
    except NotFoundError as error:
        raise PageError(404, str(error)) from error


def _debts(found: Why, span: Span) -> list[Chart]:
    """By unit, the largest debt at a mark in each step; without any of a unit no chart."""
    if not found.held_by:
        return []
    held, step_us = found.held_by[0], span.step_s * SECOND_US
    charts = []
    for unit in ("messages", "bytes"):
        debts: dict[int, float] = {}
        for one in found.balances:
            balance = one.messages if unit == "messages" else one.bytes
            at_us = int(one.at.timestamp() * SECOND_US) // step_us * step_us
            if (one.scope, one.limiter, one.broker) == (held.scope, held.limiter, held.broker) and balance is not None:
                debts[at_us] = max(debts.get(at_us, 0), -balance)
        if any(debts.values()):
            debt = Course(f"debt of {held.scope} {held.limiter}", "held", tuple(map(debts.get, span.steps_us)))
            charts.append(Chart(f"Debt in {unit} when producers began to be held", unit, span, lines=(debt,)))
    return charts
