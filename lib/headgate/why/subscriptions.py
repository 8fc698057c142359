"""Why a subscription has a backlog: dispatches found no permit, or its consumers are slow."""

from dataclasses import dataclass

from headgate.core.numbers import SECOND_NS
from headgate.core.reasons import HeldReason, dispatch_reason
from headgate.errors import NotFoundError
from headgate.tables.query import text
from headgate.throttle.schemas import DISPATCH_LEVELS
from headgate.why.answer import Window
from headgate.why.known import check_known, window_in
from headgate.why.tables import OutputTables, in_window, nearest, of_topic

THROTTLED_PART, KEPT_UP_PART = 0.1, 0.9
_SUMMED = ("reads", "messages", "allowed_reads", "allowed_messages", "delayed_reads", "delay_ns")


@dataclass(frozen=True)
class SubscriptionWhy:
    """Sums over the window. published: messages that the topic took in; asked, dispatched: that the subscription's
    reads asked for and got.

    held: reads that found no permit as they came, by the first level without one; waiting: how many more reads came
    than were let go in the window.
    """

    topic: str
    subscription: str
    window: Window
    reason: HeldReason
    rule: str
    published: int
    asked: int
    dispatched: int
    reads: int
    held: tuple[tuple[HeldReason, int], ...]
    waiting: int
    mean_delay_s: float | None
    notes: tuple[str, ...] = ()


def why_subscription(
    tables: OutputTables,
    name: str,
    subscription: str,
    *,
    at_s: int | None = None,
    first_s: int | None = None,
    last_s: int | None = None,
) -> SubscriptionWhy:
    """Times and errors as those of `topics.why`; a subscription without a dispatch is one, too.

    It is throttled if THROTTLED_PART of its reads found no permit, and slow if it asked for less than KEPT_UP_PART of
    what was published.
    """
    topic = check_known(tables, name)
    window, notes = window_in(
        tables.times_over("topic_usage", "dispatch_decisions"), tables.output, at_s, first_s, last_s
    )
    _check_known(tables, topic.name, subscription)
    where = f"{of_topic(topic.name)} AND {in_window(window)}"
    names = [*_SUMMED, *(f"held_by_{level}" for level in DISPATCH_LEVELS)]
    sums = ", ".join(f"sum({one}) AS {one}" for one in names)
    sql = f"SELECT {sums} FROM dispatch_decisions WHERE {where} AND subscription = {text(subscription)}"  # noqa: S608  quoted text
    total = tables.summed("dispatch_decisions", sql, names)
    published = "sum(coalesce(admitted_messages, messages)) AS messages"
    of_topic_ = tables.summed("topic_usage", f"SELECT {published} FROM topic_usage WHERE {where}", ["messages"])  # noqa: S608
    held = {level: total[f"held_by_{level}"] for level in DISPATCH_LEVELS}
    reason, rule = _reason(total, held, of_topic_["messages"])
    return SubscriptionWhy(
        *(topic.name, subscription, window, reason, rule),
        *(of_topic_["messages"], total["messages"], total["allowed_messages"], total["reads"]),
        held=tuple((dispatch_reason(level), count) for level, count in sorted(held.items(), key=_most) if count),
        waiting=max(total["reads"] - total["allowed_reads"], 0),
        mean_delay_s=total["delay_ns"] / total["delayed_reads"] / SECOND_NS if total["delayed_reads"] else None,
        notes=tuple(notes),
    )


def _check_known(tables: OutputTables, topic: str, subscription: str) -> None:
    """Raise NotFoundError for a subscription without any row."""
    sql = f"SELECT DISTINCT subscription FROM dispatch_decisions WHERE {of_topic(topic)}"  # noqa: S608  quoted text
    known = sorted({row["subscription"] for row in tables.dicts("dispatch_decisions", sql)})
    if subscription not in known:
        raise NotFoundError(
            f"{tables.output} has no dispatch of subscription {subscription!r} of {topic}, in {len(known):,} "
            f"subscriptions{nearest(subscription, known)}; correct the name"
        )


def _reason(total: dict[str, int], held: dict[str, int], published: int) -> tuple[HeldReason, str]:
    if total["reads"] and sum(held.values()) >= THROTTLED_PART * total["reads"]:
        level, _ = min(held.items(), key=_most)
        return dispatch_reason(level), "a tenth or more of its reads found no permit"
    if total["messages"] < KEPT_UP_PART * published:
        return HeldReason.SLOW_CONSUMER, (
            "fewer than a tenth of its reads found no permit, and its consumers asked for less than nine tenths of "
            "what was published"
        )
    return HeldReason.NOT_HELD, "its reads found permits, and its consumers asked for what was published"


def _most(of_level: tuple[str, int]) -> tuple[int, str]:
    return -of_level[1], of_level[0]
