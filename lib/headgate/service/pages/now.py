"""The view Now: who is held at this moment, and who uses how much of its quota."""

from dataclasses import dataclass

from headgate.service.pages.charged import Blocked, TenantUse, blocked, tenants
from headgate.service.pages.charts import Chart
from headgate.service.pages.flow import TABLE, Flow, timelines
from headgate.service.pages.held import LOOK_BACK_S, HeldSubscription, HeldTopic, held_subscriptions, held_topics
from headgate.service.pages.read import Read
from headgate.service.pages.span import Asked, Span

MOMENT_S = 10
"""So long is a moment: shares are means of it, and who is not held in it is not held."""
MOST = 50


@dataclass(frozen=True)
class Now:
    """moment: the last seconds of `span`. back_s: so long before its end marks that still hold are looked for. Counts
    are of all topics and subscriptions that are held so, listed or not. is_of_today: quotas are, though the range is
    past.
    """

    span: Span
    moment: Span
    back_s: int
    blocked: tuple[Blocked, ...]
    charts: tuple[Chart, ...]
    topics: tuple[HeldTopic, ...]
    topics_held: int
    subscriptions: tuple[HeldSubscription, ...]
    subscriptions_held: int
    tenants: tuple[TenantUse, ...]
    tenants_total: int
    tenants_over: int
    flow: Flow
    is_of_today: bool


def now(read: Read, asked: Asked) -> Now:
    """Raises PageError and TableError."""
    span = asked.span(read.extent(TABLE), "publish")
    moment = span.last(MOMENT_S)
    config, is_of_today = read.config_of(asked)
    topics, topics_held = held_topics(read, moment, MOST, config)
    subscriptions, subscriptions_held = held_subscriptions(read, moment, MOST // 2)
    used = tenants(read, moment, config)
    return Now(
        span,
        moment,
        LOOK_BACK_S,
        blocked(config),
        timelines(read, span),
        tuple(topics),
        topics_held,
        tuple(subscriptions),
        subscriptions_held,
        tuple(used[:MOST]),
        len(used),
        sum((one.share or 0) > 1 for one in used),
        Flow.total(one.flow for one in used),
        is_of_today,
    )
