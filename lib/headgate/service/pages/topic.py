"""The view of one topic, all its partitions together: a timeline with limits, their changes and marks."""

from dataclasses import dataclass, replace

from headgate.core.topic_names import topic_of, without_partition
from headgate.errors import PageError
from headgate.service.pages.charged import Blocked, blocked, quotas_of
from headgate.service.pages.charts import Chart, course
from headgate.service.pages.flow import FLOW, TABLE, Flow, span_sql, timelines
from headgate.service.pages.held import HeldSubscription, HeldTopic, held_subscriptions, held_topics
from headgate.service.pages.limits import Limits, limits_of
from headgate.service.pages.now import MOMENT_S
from headgate.service.pages.read import Read
from headgate.service.pages.span import Asked, Span
from headgate.why.holds import LOOKBACK_S
from headgate.why.known import is_known
from headgate.why.tables import of_topic

_MOST = 100
_PARTITIONS = 1000


@dataclass(frozen=True)
class Place:
    """A partition, or the topic itself, on a broker."""

    topic: str
    broker: str
    flow: Flow


@dataclass(frozen=True)
class TopicPage:
    """quotas: of its group, messages/s and bytes/s. blocked: its group, if that is. moment: the last seconds, which
    `held` is of; back_s: so long before their end marks that still hold are looked for. charts: messages, bytes and
    marks; limits are in the first two. is_of_today: quotas and group are, though the range is past.
    """

    topic: str
    tenant: str | None
    group: str | None
    quotas: tuple[int | None, int | None]
    blocked: tuple[Blocked, ...]
    span: Span
    moment: Span
    back_s: int
    flow: Flow
    charts: tuple[Chart, ...]
    limits: Limits
    places: tuple[Place, ...]
    held: tuple[HeldTopic, ...]
    subscriptions: tuple[HeldSubscription, ...]
    is_of_today: bool


def topic_page(read: Read, asked: Asked, name: str) -> TopicPage:
    """Raises PageError, 404 for a topic without publishes in the range that nothing holds, and TableError."""
    span = asked.span(read.extent(TABLE), "publish")
    whole = without_partition(name)
    where = of_topic(name)
    rows = read.rows(
        TABLE,
        f"SELECT topic, broker, {FLOW} FROM {TABLE} WHERE {span.where()} AND {where} GROUP BY topic, broker "  # noqa: S608
        f"ORDER BY topic, broker LIMIT {_PARTITIONS}",
    )
    moment = span.last(MOMENT_S)
    config, is_of_today = read.config_of(asked)
    held, _ = held_topics(read, moment, _MOST, config, where=where, back_s=LOOKBACK_S)
    parsed = topic_of(name)
    group = None if parsed is None else config.resolve(parsed).group
    blocked_by = blocked(config, group)
    if not (rows or held or (blocked_by and is_known(read.tables, whole))):
        raise PageError(
            404, f"The topic {name} has no publishes in this range. Choose a longer one, or correct the name."
        )
    places = [Place(row["topic"], row["broker"], Flow.of(row)) for row in rows]
    limits = limits_of(
        read, span, whole, group, sorted({*(one.broker for one in places), *(one.broker for one in held)})
    )
    return TopicPage(
        name,
        None if parsed is None else parsed.tenant,
        group,
        quotas_of(config, group),
        blocked_by,
        span,
        moment,
        LOOKBACK_S,
        Flow.total(one.flow for one in places),
        (*(_limited(chart, limits) for chart in timelines(read, span, where)), *_marks(read, span, where, limits)),
        limits,
        tuple(places),
        tuple(held),
        tuple(held_subscriptions(read, span, _MOST, where, least=0)[0]),
        is_of_today,
    )


def _limited(chart: Chart, limits: Limits) -> Chart:
    highest = max(
        (sum(value or 0 for value in step) for step in zip(*(a.values for a in chart.areas), strict=True)), default=0
    )
    lines = limits.lines(chart.span, chart.unit.partition("/")[0], highest)
    return replace(chart, lines=lines, changes=limits.marks())


def _marks(read: Read, span: Span, where: str, limits: Limits) -> list[Chart]:
    """How often each kind of limiter marked a producer, step by step."""
    if not read.has("marks"):
        return []
    rows = read.rows(
        "marks",
        f"SELECT {span_sql(span)} AS at_us, scope, count(*) AS marks FROM marks WHERE {span.where()} AND {where} "  # noqa: S608
        "AND action = 'mark' GROUP BY at_us, scope ORDER BY at_us",
    )
    areas = tuple(
        course(
            f"by limits of {scope}s",
            f"mark-{scope}",
            span,
            {row["at_us"]: row["marks"] for row in rows if row["scope"] == scope},
        )
        for scope in ("topic", "broker", "group")
    )
    return [Chart("Marks per second", "marks/s", span, areas, changes=limits.marks())]
