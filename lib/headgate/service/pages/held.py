"""Topics and subscriptions that limits hold in some seconds, and which limit it is."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from headgate.core.quota.config_tables import ConfigTables
from headgate.core.reasons import HeldReason, dispatch_reason, publish_reason
from headgate.core.topic_names import topic_of
from headgate.quota.usage.excess import IS_HELD
from headgate.quota.usage.topic_query import RAN_OUT
from headgate.service.pages.charged import quotas_of
from headgate.service.pages.flow import FLOW, TABLE, Flow
from headgate.service.pages.read import Read
from headgate.service.pages.span import SECOND_US, Span
from headgate.tables.query import text
from headgate.throttle.schemas import DISPATCH_LEVELS
from headgate.why.holds import IS_OPEN, WHOSE

LOOK_BACK_S = 120
"""So long before the end of a range a mark that still holds is looked for: further back, each poll would cost more."""
_SCOPES = ("topic", "broker", "group")


@dataclass(frozen=True)
class HeldTopic:
    """A topic on one broker. limiter: the name of what holds it, None where no mark says so. last_us: of its last row
    in these seconds, None without one. since_us: the oldest of the marks that hold producers at the end, None where
    none does. flow: waited_ns goes up to the end for these.
    """

    topic: str
    broker: str
    reason: HeldReason | None
    scope: str
    limiter: str | None
    flow: Flow
    last_us: int | None
    since_us: int | None


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


def held_topics(
    read: Read, span: Span, most: int, config: ConfigTables, *, where: str = "true", back_s: int = LOOK_BACK_S
) -> tuple[list[HeldTopic], int]:
    """Those whose producers waited longest, and how many there are in all: by rows of these seconds, and by marks of
    the last `back_s` that still hold at the end, as there are no rows of producers that wait.

    config: of the end; a group that it blocks holds a topic without such a mark.
    """
    by = ", ".join(f"sum(throttled_by_{scope}) AS by_{scope}" for scope in _SCOPES)
    found = (
        f"SELECT topic, broker, {FLOW}, {by}, arrow_cast(max(event_time), 'Int64') AS last_us FROM {TABLE} "  # noqa: S608  our own names
        f"WHERE {span.where()} AND {where} AND {IS_HELD} GROUP BY topic, broker"
    )
    marks = ["marks"] if read.has("marks") else []
    if marks:
        found = _with_marks(found, span, where, back_s)
    rows = read.rows(
        TABLE,
        f"SELECT *, count(*) OVER () AS topics FROM ({found}) ORDER BY waited_ns DESC, throttled DESC, topic, broker "  # noqa: S608
        f"LIMIT {most}",
        *marks,
    )
    marked = _marks(read, rows)
    held = [_held(row, marked) for row in rows]
    held = [_by_config(one, config) if one.reason is None else one for one in held]
    return held, rows[0]["topics"] if rows else 0


def _with_marks(held: str, span: Span, where: str, back_s: int) -> str:
    """SQL. held: of topics by rows of topic_usage; those that marks alone hold are added, and how long they waited."""
    back = Span(min(span.first_us, span.end_us - back_s * SECOND_US), span.end_us)
    whose = ", ".join(WHOSE)
    scopes = ", ".join(map(text, _SCOPES))
    last = ", ".join(
        f"max(marked_ns) FILTER (WHERE scope = '{scope}'{only}) AS {scope}_{name}_ns"
        for scope in _SCOPES
        for name, only in (("marked", ""), ("open", " AND is_open"))
    )
    marks = (
        f"SELECT topic, broker, min(marked_ns) FILTER (WHERE is_open) AS since_ns, {last} FROM (SELECT {whose}, "  # noqa: S608
        f"max(at_ns) FILTER (WHERE action = 'mark') AS marked_ns, {IS_OPEN} AS is_open FROM marks "
        f"WHERE {back.where()} AND {where} AND action IN ('mark', 'unmark') AND scope IN ({scopes}) "
        f"GROUP BY {whose}) GROUP BY topic, broker"
    )
    row_end_us = f"coalesce(last_us + {SECOND_US}, {span.first_us})"
    waits_ns = f"greatest({span.end_us * 1000} - greatest(since_ns, 1000 * {row_end_us}), 0)"
    return (
        f"SELECT held.* EXCLUDE (topic, broker, waited_ns), marked.* EXCLUDE (topic, broker), "  # noqa: S608
        f"coalesce(held.topic, marked.topic) AS topic, coalesce(held.broker, marked.broker) AS broker, "
        f"coalesce(waited_ns, 0) + CASE WHEN since_ns IS NULL THEN 0 ELSE {waits_ns} END AS waited_ns "
        f"FROM ({held}) held FULL JOIN ({marks}) marked ON held.topic = marked.topic AND held.broker = marked.broker "
        "WHERE held.topic IS NOT NULL OR since_ns IS NOT NULL"
    )


def _scope_of(row: dict[str, Any]) -> str:
    """That which throttled most publishes, else that of the last mark, of such as still hold if there are any; empty
    where nothing says so.
    """
    most = max(_SCOPES, key=lambda scope: row[f"by_{scope}"] or 0)
    if row[f"by_{most}"]:
        return most
    for name in ("open", "marked"):
        at_ns = {scope: row.get(f"{scope}_{name}_ns") or 0 for scope in _SCOPES}
        most = max(_SCOPES, key=lambda scope: at_ns[scope])
        if at_ns[most]:
            return most
    return ""


def _held(row: dict[str, Any], marked: Mapping[tuple[object, ...], dict[str, Any]]) -> HeldTopic:
    scope = _scope_of(row)
    mark = marked.get((row["topic"], row["broker"], scope, _mark_ns(row)))
    is_blocked = mark is not None and scope == "group" and 0 in {mark["messages_per_s"], mark["bytes_per_s"]}
    reason = publish_reason(scope, None if mark is None else mark["unit"], is_blocked=is_blocked) if scope else None
    limiter = None if mark is None else mark["limiter"]
    since_ns = row.get("since_ns")
    since_us = None if since_ns is None else since_ns // 1000
    return HeldTopic(row["topic"], row["broker"], reason, scope, limiter, Flow.of(row), row["last_us"], since_us)


def _by_config(held: HeldTopic, config: ConfigTables) -> HeldTopic:
    """With the group that blocks the topic, if there is one."""
    parsed = topic_of(held.topic)
    group = None if parsed is None else config.resolve(parsed).group
    if 0 not in quotas_of(config, group):
        return held
    return replace(held, reason=HeldReason.GROUP_BLOCKED, scope="group", limiter=group)


def _mark_ns(row: dict[str, Any]) -> int | None:
    """The time of the scope's last mark, of those that still hold if there are any; None without one."""
    scope = _scope_of(row)
    return row.get(f"{scope}_open_ns") or row.get(f"{scope}_marked_ns")


def _marks(read: Read, held: list[dict[str, Any]]) -> dict[tuple[object, ...], dict[str, Any]]:
    """What these topics are held by: marks by topic, broker, scope and time."""
    times_ns = sorted({at_ns for row in held if (at_ns := _mark_ns(row)) is not None})
    if not times_ns:
        return {}
    topics = sorted({row["topic"] for row in held})
    span = Span(times_ns[0] // 1000, times_ns[-1] // 1000 + 1)
    key = "topic, broker, scope, at_ns"
    rows = read.rows(
        "marks",
        f"SELECT {key}, min(limiter) AS limiter, min(messages_per_s) AS messages_per_s, "  # noqa: S608  our own names
        f"min(bytes_per_s) AS bytes_per_s, min({RAN_OUT}) AS unit FROM marks WHERE {span.where()} AND action = 'mark' "
        f"AND topic IN ({', '.join(map(text, topics))}) AND at_ns IN ({', '.join(map(str, times_ns))}) GROUP BY {key}",
    )
    return {tuple(row[name] for name in key.split(", ")): row for row in rows}


def held_subscriptions(
    read: Read, span: Span, most: int, where: str = "true", least: int = 1
) -> tuple[list[HeldSubscription], int]:
    """Those of which most reads were held, at least so many, and how many there are in all."""
    if not read.has("dispatch_decisions"):
        return [], 0
    by = ", ".join(f"sum(held_by_{level}) AS {level}_level" for level in DISPATCH_LEVELS)
    held = " + ".join(f"coalesce(held_by_{level}, 0)" for level in DISPATCH_LEVELS)
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
