"""Numbers, times and names as a page shows them, and the addresses of what they name."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from headgate.core.reasons import HeldReason
from headgate.quota.usage.topic_view import NO_TENANT
from headgate.service.pages.span import SECOND_US, iso
from headgate.why.meanings import MEANINGS

NONE = "-"
_TOPIC = re.compile(r"(persistent|non-persistent)://(.*)", re.DOTALL)
_BYTES = ("B", "KB", "MB", "GB", "TB", "PB")


def number(value: float | None) -> str:
    """With thousands apart; small ones with a digit behind the point."""
    if value is None:
        return NONE
    if 0 < value < 0.05:
        return "<0.1"
    if abs(value) < 10 and round(value, 1) != round(value):
        return f"{value:.1f}"
    return f"{round(value):,}"


def in_bytes(value: float | None) -> str:
    """In the largest unit of thousands of which it has one."""
    if value is None:
        return NONE
    power = 0
    while abs(value) >= 1000 and power < len(_BYTES) - 1:
        value, power = value / 1000, power + 1
    return f"{value:.1f} {_BYTES[power]}" if power and value < 100 else f"{value:.0f} {_BYTES[power]}"


def quantity(value: float | None, unit: str) -> str:
    """unit: one that begins with bytes is shown as bytes."""
    return in_bytes(value) if unit.startswith("bytes") else number(value)


def percent(value: float | None) -> str:
    """Of a part of 1."""
    if value is None:
        return NONE
    return f"{100 * value:.1f} %" if 0 < value < 0.1 else f"{100 * value:,.0f} %"


def seconds(value: float | None) -> str:
    if value is None:
        return NONE
    if value < 1:
        return f"{1000 * value:.0f} ms"
    return f"{value:.1f} s" if value < 60 else f"{value / 60:,.1f} min"


def instant(time_us: int | None) -> str:
    """To the second, in UTC."""
    return NONE if time_us is None else f"{datetime.fromtimestamp(time_us // SECOND_US, UTC):%Y-%m-%d %H:%M:%S}"


def clock(time_us: int | None) -> str:
    """The time of day alone."""
    return NONE if time_us is None else f"{datetime.fromtimestamp(time_us // SECOND_US, UTC):%H:%M:%S}"


def machine_time(time_us: int | None) -> str:
    return "" if time_us is None else iso(time_us)


def held_by(reason: HeldReason) -> str:
    """A reason in words."""
    return MEANINGS[HeldReason(reason)].title


def capitalized(words: str) -> str:
    """With a capital letter at its beginning."""
    return words[:1].upper() + words[1:]


def scale(rows: Iterable[Any]) -> float:
    """What a full bar stands for: 100 %, or the largest `share` of the rows if that is more."""
    shares: list[float] = [row.share for row in rows if row.share is not None]
    return max([1.0, *shares])


def short_topic(topic: str) -> str:
    """Without persistent://, which nearly all have."""
    return topic.removeprefix("persistent://")


def topic_path(topic: str) -> str:
    """Where the page of a topic is."""
    full = _TOPIC.fullmatch(topic)
    if full is None:
        return f"/topics/{quote(topic, safe='')}"
    return f"/topics/{full[1]}/{'/'.join(quote(part, safe='') for part in full[2].split('/', 2))}"


def why_path(topic: str) -> str:
    """Where it is said why a topic is held."""
    return f"/why{topic_path(topic).removeprefix('/topics')}"


def why_subscription_path(topic: str, subscription: str, range_query: str = "") -> str:
    """The same of one of its subscriptions. range_query: as other links append it, empty or with its "?"."""
    path = f"/why-subscription{topic_path(topic).removeprefix('/topics')}"
    return f"{path}{range_query + '&' if range_query else '?'}subscription={quote(subscription, safe='')}"


def why_connection_path(broker: str, connection: str) -> str:
    """Where it is said why a connection is held."""
    return f"/why-connection/{quote(broker, safe='')}/{quote(connection, safe='')}"


def why_cache_path(topic: str) -> str:
    """Where it is said why entries of a topic left the entry cache."""
    return f"/why-cache{topic_path(topic).removeprefix('/topics')}"


def topic_of(path: str) -> str:
    """The topic that such an address, decoded, is of; full names as they are count, too."""
    scheme, _, rest = path.partition("/")
    is_short = scheme in {"persistent", "non-persistent"} and rest
    return f"{scheme}://{rest}" if is_short else path


def tenant_path(tenant: str | None) -> str:
    return f"/tenants/{quote(tenant or NO_TENANT, safe='')}"


def group_path(group: str) -> str:
    return f"/groups/{quote(group, safe='')}"


FILTERS = {
    function.__name__: function
    for function in (
        *(number, in_bytes, quantity, percent, seconds, instant, clock, machine_time, held_by, capitalized, scale),
        *(short_topic, topic_path, why_path, why_subscription_path, why_connection_path, why_cache_path),
        *(tenant_path, group_path),
    )
}
"""For templates."""
