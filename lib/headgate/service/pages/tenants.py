"""The views of tenants: all of them, and one with its groups, its topics and what holds them."""

from dataclasses import dataclass

from headgate.errors import PageError
from headgate.quota.usage.topic_view import NO_TENANT
from headgate.service.pages.charged import TenantUse, tenants
from headgate.service.pages.charts import Chart
from headgate.service.pages.flow import TABLE, timelines
from headgate.service.pages.held import HeldTopic, held_topics
from headgate.service.pages.now import MOMENT_S
from headgate.service.pages.read import Read
from headgate.service.pages.span import Asked, Span
from headgate.service.pages.topics import TopicUse, topic_uses
from headgate.tables.query import text

MOST = 200


@dataclass(frozen=True)
class Tenants:
    """total: of tenants and groups, listed or not. is_of_today: quotas are, though the range is past."""

    span: Span
    tenants: tuple[TenantUse, ...]
    total: int
    is_of_today: bool


@dataclass(frozen=True)
class Tenant:
    """uses: one for each group that its traffic is charged to. moment: the last seconds, which `held` is of.
    topics_total, held_total: listed or not. is_of_today: quotas are, though the range is past.
    """

    name: str
    span: Span
    moment: Span
    charts: tuple[Chart, ...]
    uses: tuple[TenantUse, ...]
    held: tuple[HeldTopic, ...]
    held_total: int
    topics: tuple[TopicUse, ...]
    topics_total: int
    is_of_today: bool


def all_tenants(read: Read, asked: Asked) -> Tenants:
    """Raises PageError and TableError."""
    span = asked.span(read.extent(TABLE), "publish")
    config, is_of_today = read.config_of(asked)
    used = tenants(read, span, config)
    return Tenants(span, tuple(used[:MOST]), len(used), is_of_today)


def one_tenant(read: Read, asked: Asked, name: str) -> Tenant:
    """Raises PageError, 404 for one without traffic in the range of which nothing is held, and TableError."""
    span = asked.span(read.extent(TABLE), "publish")
    where = "tenant IS NULL" if name == NO_TENANT else f"tenant = {text(name)}"
    config, is_of_today = read.config_of(asked)
    uses = tenants(read, span, config, where)
    moment = span.last(MOMENT_S)
    held, held_total = held_topics(read, moment, MOST // 4, config, where=where)
    if not (uses or held):
        raise PageError(
            404, f"The tenant {name} published nothing in this range. Choose a longer one, or correct the name."
        )
    topics, total = topic_uses(read, span, MOST, where)
    return Tenant(
        name,
        span,
        moment,
        timelines(read, span, where),
        tuple(uses),
        tuple(held),
        held_total,
        tuple(topics),
        total,
        is_of_today,
    )
