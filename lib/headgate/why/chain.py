"""The chain of limits of a topic at a time, from the rows of `control`: each with where it was set and last changed."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from headgate.core.numbers import SECOND_NS
from headgate.core.topic_names import Topic
from headgate.quota.usage.excess import UNITS
from headgate.quota.usage.limiter_rates import QuotaOf
from headgate.quota.usage.topic_query import text
from headgate.why.answer import Level
from headgate.why.tables import OutputTables, listed

OF_CONF = {
    "default": "broker.conf",
    "broker": "broker.conf",
    "namespace": "policies.json",
    "topic": "policies.json",
    "group": "resource-groups.json",
    "tenant": "resource-groups.json",
}
_FROM_THE_START_S = 1
"""What applies from 1970 on applied before the first row of traffic."""
_COLUMNS = "effective_time, seq, kind, scope, name, broker, group_name, messages_per_s, bytes_per_s, source"

Rates = tuple[int | None, int | None]


class _Set(NamedTuple):
    """What rows say of one place: rates or a group, where that was set, since when, and what was said before."""

    rates: Rates
    group: str | None
    source: str
    since: datetime | None
    was: Rates | None


def chain_of(
    tables: OutputTables, topic: Topic, brokers: Sequence[str], at_ns: int, quota_of: QuotaOf
) -> tuple[Level, ...]:
    """The narrowest first: topic, namespace and default, of which the first that is set applies, broker, group.

    brokers: with the topic's traffic. quota_of: of whole groups.
    """
    if not tables.has("control"):
        return ()
    names = {"topic": topic.name, "namespace": topic.namespace, "tenant": topic.tenant}
    policies = _rows(tables, at_ns, f"(scope IN ('default', 'broker') OR name IN ({listed([*names.values()])}))")
    group, attached_to = _group(policies, names)
    shares = [] if group is None else _rows(tables, at_ns, f"scope = 'group' AND name = {text(group)}")
    found = [*_policies(policies, names)]
    for broker in brokers:
        found += _of_broker("broker", broker, _newest(policies, "limit", "broker", "", broker), is_quota=False)
    if group is not None and attached_to is not None:
        quota = quota_of(group, UNITS[0]), quota_of(group, UNITS[1])
        found.append(_group_level(group, *attached_to, quota if any(one is not None for one in quota) else None))
        for broker in brokers:
            found += _of_broker(group, broker, _newest(shares, "limit", "group", group, broker), is_quota=True)
    return tuple(found)


def _rows(tables: OutputTables, at_ns: int, where: str) -> list[dict[str, Any]]:
    """Limits and attachments that apply at that time or before, in the order in which they were set."""
    until = f"effective_time <= arrow_cast({at_ns // 1000}, 'Timestamp(Microsecond, Some(\"UTC\"))')"
    sql = f"SELECT {_COLUMNS} FROM t WHERE kind IN ('limit', 'attachment') AND {until} AND {where}"  # noqa: S608  own names, quoted text
    return sorted(tables.dicts("control", sql), key=lambda row: (row["effective_time"], row["seq"]))


def _newest(rows: Iterable[dict[str, Any]], kind: str, scope: str, name: str, broker: str | None) -> _Set | None:
    """What the last row of one place says; None where nothing was ever set. A broker heeds rows of all brokers, too."""
    now: _Set | None = None
    for row in rows:
        is_of_place = (row["kind"], row["scope"], row["name"] or "") == (kind, scope, name)
        if not is_of_place or row["broker"] not in {None, broker}:
            continue
        rates = row["messages_per_s"], row["bytes_per_s"]
        said = rates, row["group_name"]
        if now is None or (now.rates, now.group) != said:
            since = row["effective_time"] if row["effective_time"].timestamp() > _FROM_THE_START_S else None
            now = _Set(*said, row["source"] or "control", since, None if now is None else now.rates)
    return now


def _group(rows: Sequence[dict[str, Any]], names: dict[str, str]) -> tuple[str | None, tuple[str, _Set] | None]:
    """The group that the topic is charged to, and where it is attached: the narrowest place counts."""
    for scope in ("topic", "namespace", "tenant"):
        found = _newest(rows, "attachment", scope, names[scope], None)
        if found is not None and found.group is not None:
            return found.group, (f"{scope} {names[scope]}", found)
    return None, None


def _policies(rows: Sequence[dict[str, Any]], names: dict[str, str]) -> Iterator[Level]:
    """Of these the first that is set applies."""
    is_in_force = True
    for scope, name in (("topic", names["topic"]), ("namespace", names["namespace"]), ("default", "")):
        found = _newest(rows, "limit", scope, name, None)
        if found is not None and (found.rates != (None, None) or found.was is not None):
            is_set = found.rates != (None, None)
            yield _level(scope, name, None, found, is_in_force=is_in_force and is_set)
            is_in_force = is_in_force and not is_set


def _of_broker(name: str, broker: str, found: _Set | None, *, is_quota: bool) -> Iterator[Level]:
    if found is not None:
        yield _level("share" if is_quota else "broker", name if is_quota else broker, broker, found, is_in_force=True)


def _group_level(group: str, place: str, found: _Set, quota: Rates | None) -> Level:
    rates = (None, None) if quota is None else quota
    set_in = f"{_source('tenant', found)}, attached to {place}"
    return Level("group", group, None, *rates, is_in_force=True, set_in=set_in, since=found.since)


def _level(scope: str, name: str, broker: str | None, found: _Set, *, is_in_force: bool) -> Level:
    rates = found.rates if scope == "share" else _limited(found.rates)
    was = found.was if found.was is None or scope == "share" else _limited(found.was)
    set_in = _source(scope, found)
    return Level(scope, name, broker, *rates, is_in_force=is_in_force, set_in=set_in, since=found.since, was=was)


def _limited(rates: Rates) -> Rates:
    """0 is no limit, but of groups."""
    return rates[0] or None, rates[1] or None


def _source(scope: str, found: _Set) -> str:
    if found.source == "conf":
        return OF_CONF[scope]
    if found.source == "quota":
        return "sharing of the quota" if scope == "share" else "resource groups"
    return f"table control: {found.source}"


def end_of(at_s: int) -> int:
    """The end of a second in ns."""
    return (at_s + 1) * SECOND_NS - 1
