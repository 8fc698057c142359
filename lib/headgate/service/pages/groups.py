"""The views of resource groups: quotas and their use, each broker's share, and how the configuration changed."""

from dataclasses import dataclass

from headgate.errors import PageError, TableError
from headgate.quota.usage.query import LEAST_EPOCHS, LOOK_BACK, UsageTables
from headgate.quota.usage.view import Cell, cells_of
from headgate.service.pages.charts import Chart
from headgate.service.pages.history import ConfigChange, history
from headgate.service.pages.quotas import Quota, charts_of, quota_of
from headgate.service.pages.read import Read
from headgate.service.pages.span import Asked, Span

MOST = 100


@dataclass(frozen=True)
class Groups:
    """span: None, like at_us, the time of the newest epoch in it, before a broker reported. unused: groups without a
    quota in use, by name. total, unused_total: listed or not.
    """

    span: Span | None
    at_us: int | None
    quotas: tuple[Quota, ...]
    total: int
    unused: tuple[str, ...]
    unused_total: int
    history: tuple[ConfigChange, ...]


@dataclass(frozen=True)
class Group:
    """span: None before a broker reported. charts: of each quota what brokers were let have, and their limits, epoch by
    epoch. attached: tenants, namespaces and topics.
    """

    name: str
    span: Span | None
    quotas: tuple[Quota, ...]
    attached: tuple[str, ...]
    charts: tuple[Chart, ...]
    history: tuple[ConfigChange, ...]


def all_groups(read: Read, asked: Asked) -> Groups:
    """At the range's end: the blocked quotas, then those of which most is used. Raises PageError and TableError."""
    read.need("rg_groups")
    at_us, cells, _ = _cells(read, asked, None)
    quotas = sorted(map(quota_of, cells), key=_urgency)
    unused = sorted(read.config.groups.keys() - {cell.group for cell in cells})
    return Groups(
        None if at_us is None else _span(read, asked),
        at_us,
        tuple(quotas[:MOST]),
        len(quotas),
        tuple(unused[:MOST]),
        len(unused),
        history(read),
    )


def one_group(read: Read, asked: Asked, name: str) -> Group:
    """Raises PageError, 404 for one that never was, and TableError."""
    read.need("rg_groups")
    changes = history(read, name)
    if not changes:
        known = ", ".join(sorted(read.config.groups)[:20]) or "none"
        raise PageError(404, f"There is no group {name}. Groups here: {known}.")
    span = _span(read, asked) if read.has("rg_usage") else None
    _, cells, tables = _cells(read, asked, name)
    attachments = read.config.attachments
    attached = [
        f"{scope} {resource}"
        for scope, of_scope in (
            ("tenant", attachments.tenants),
            ("namespace", attachments.namespaces),
            ("topic", attachments.topics),
        )
        for resource, group in of_scope.items()
        if group == name
    ]
    charts = [] if tables is None or span is None else charts_of(tables, span, cells)
    return Group(name, span, tuple(map(quota_of, cells)), tuple(sorted(attached)), tuple(charts), changes)


def _urgency(one: Quota) -> tuple[bool, float, str, str, str]:
    share = -1 if one.share is None else one.share
    return one.quota != 0, -share, one.group, one.traffic_class, one.unit


def _span(read: Read, asked: Asked) -> Span | None:
    extent = read.extent("rg_usage", "publish_time")
    return None if extent is None else asked.span(extent)


def _cells(read: Read, asked: Asked, group: str | None) -> tuple[int | None, list[Cell], UsageTables | None]:
    """As of the end of the range, and when that is; nothing before the first report."""
    if not read.has("rg_usage"):
        return None, [], None
    tables = read.usage_tables(group)
    if tables.is_empty:
        return None, [], None
    at_ms = None if asked.end_us is None else asked.end_us // 1000
    if at_ms is not None and at_ms // tables.epoch_ms > tables.newest_epoch():
        at_ms = None
    found = tables.found(LEAST_EPOCHS, at_ms)
    if at_ms is None and not any(broker.counts for broker in found.brokers.values()):  # all have stopped
        at_ms = (found.epoch - 1) * found.epoch_ms
        try:
            found = tables.found(LEAST_EPOCHS, at_ms)
        except TableError:
            return found.epoch * found.epoch_ms * 1000, [], tables
    first = found.epoch - LOOK_BACK * LEAST_EPOCHS + 1
    hour_epochs = 3_600_000 // found.epoch_ms or 1
    read.note(
        "rg_usage",
        "SELECT broker_id, group_id, class, admitted_msgs, admitted_bytes, offered_msgs, offered_bytes, limit_msgs, "  # noqa: S608
        "limit_bytes, throttled_msgs, throttled_bytes, epoch FROM (SELECT *, row_number() OVER "
        "(PARTITION BY broker_id, "
        "group_id, class ORDER BY incarnation DESC, epoch DESC, seq DESC) AS place FROM rg_usage WHERE "
        f"hour BETWEEN {first // hour_epochs} AND {found.epoch // hour_epochs} AND epoch BETWEEN "
        f"{first} AND {found.epoch}) "
        "WHERE place = 1 AND group_id <> 0 ORDER BY group_id, class, broker_id",
    )
    cells = cells_of(found.reports, found.brokers, found.limits, found.config, found.group_names)
    shown = [cell for cell in cells if group in {None, cell.group}]
    return found.epoch * found.epoch_ms * 1000, shown, tables
