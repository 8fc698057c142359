"""The chain of limits of a topic at a time, from the rows of `control`: each with where it was set and last changed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

from headgate.core.quota.config_tables import ConfigTables
from headgate.core.topic_names import Topic
from headgate.tables.query import text
from headgate.why.answer import Level
from headgate.why.tables import OutputTables, instant_sql, listed

OF_CONF = {
    "default": "broker.conf",
    "broker": "broker.conf",
    "namespace": "policies.json",
    "topic": "policies.json",
    "group": "resource-groups.json",
    "share": "resource-groups.json",
}
_FROM_THE_START_S = 1
"""What applies from 1970 on applied before the first row of traffic."""
_COLUMNS = "effective_time, seq, kind, scope, name, broker, group_name, messages_per_s, bytes_per_s, source"
_ATTACHED = ("topic", "namespace", "tenant")

Rates = tuple[int | None, int | None]
Rows = Sequence[dict[str, Any]]


class _Set(NamedTuple):
    """What rows say of one place: rates or a group, where that was set, since when, and what was said before."""

    rates: Rates
    group: str | None
    source: str
    since: datetime | None
    was: Rates | None


@dataclass(frozen=True)
class Chain:
    """levels: the narrowest first: topic, namespace and default, of which the first that is set applies; broker; group
    and its share on each broker. What is the same on all brokers stands once. group: that the topic is charged to.
    """

    levels: tuple[Level, ...] = ()
    group: str | None = None


def chain_of(tables: OutputTables, topic: Topic, brokers: Sequence[str], at_ns: int, config: ConfigTables) -> Chain:
    """brokers: with the topic's traffic. config: groups and attachments of shared quotas, as they were known then."""
    if not tables.has("control"):
        return Chain()
    names = {"topic": topic.name, "namespace": topic.namespace, "tenant": topic.tenant}
    rows = _rows(tables, at_ns, f"(scope IN ('default', 'broker') OR name IN ({listed([*names.values()])}))")
    groups = tables.dicts("control", "SELECT DISTINCT name FROM control WHERE kind = 'limit' AND scope = 'group'")
    group, attached = _group(rows, topic, names, config, {row["name"] for row in groups})
    places: Sequence[str | None] = brokers or [None]
    levels = list(_same_once([list(_policies(rows, names, broker)) for broker in places]))
    for broker in brokers:
        levels += _of_broker("broker", broker, _newest(rows, "limit", "broker", "", broker), is_quota=False)
    if group is not None:
        known = config.groups.get(group)
        quota = (None, None) if known is None else known.rates[:2]
        levels.append(_group_level(group, attached, quota))
        on = f"(broker IS NULL OR broker IN ({listed(brokers)}))"
        shares = _rows(tables, at_ns, f"scope = 'group' AND name = {text(group)} AND {on}")
        for broker in brokers:
            levels += _of_broker(group, broker, _newest(shares, "limit", "group", group, broker), is_quota=True)
    return Chain(tuple(levels), group)


def broker_limits(tables: OutputTables, brokers: Sequence[str], at_ns: int) -> Mapping[str, Level]:
    """The limits of brokers, of those that have one."""
    rows = _rows(tables, at_ns, "scope = 'broker'") if tables.has("control") else []
    found = {broker: _newest(rows, "limit", "broker", "", broker) for broker in brokers}
    return {
        broker: level
        for broker, limit in found.items()
        for level in _of_broker("broker", broker, limit, is_quota=False)
    }


def _rows(tables: OutputTables, at_ns: int, where: str) -> Rows:
    """Limits and attachments that apply at that time or before, in the order in which they were set. Rows of a broker's
    own job are of that broker.
    """
    until = f"effective_time <= {instant_sql(at_ns)}"
    sql = f"SELECT {_COLUMNS} FROM control WHERE kind IN ('limit', 'attachment') AND {until} AND {where}"  # noqa: S608  own names, quoted text
    found = [
        row if broker is None or row["broker"] is not None else row | {"broker": broker}
        for broker, rows in tables.by_job("control", sql)
        for row in rows
    ]
    return sorted(found, key=lambda row: (row["effective_time"], row["seq"]))


def _newest(rows: Rows, kind: str, scope: str, name: str, broker: str | None) -> _Set | None:
    """What the last row of one place says; None where nothing was ever set. A broker heeds rows of all brokers, too;
    without one, rows of any count.
    """
    now: _Set | None = None
    for row in rows:
        is_of_place = (row["kind"], row["scope"], row["name"] or "") == (kind, scope, name)
        if not is_of_place or (broker is not None and row["broker"] not in {None, broker}):
            continue
        rates = row["messages_per_s"], row["bytes_per_s"]
        said = rates, row["group_name"]
        if now is None or (now.rates, now.group) != said:
            since = row["effective_time"] if row["effective_time"].timestamp() > _FROM_THE_START_S else None
            now = _Set(*said, row["source"] or "control", since, None if now is None else now.rates)
    return now


def _group(
    rows: Rows, topic: Topic, names: dict[str, str], config: ConfigTables, limited: set[str]
) -> tuple[str | None, tuple[str, _Set] | None]:
    """The group that the topic is charged to, and where it is attached: the narrowest place whose group exists counts
    (resource-groups 3.2). limited: groups with any limit.
    """
    exists = {*config.groups, *limited}
    of_config = config.resolve(topic).group
    for scope in _ATTACHED:
        found = _newest(rows, "attachment", scope, names[scope], None)
        if found is not None and found.group in exists and of_config in {None, found.group}:
            return found.group, (f"{scope} {names[scope]}", found)
    return of_config, None


def _policies(rows: Rows, names: dict[str, str], broker: str | None) -> Iterator[Level]:
    """Of these the first that is set applies."""
    is_in_force = True
    for scope, name in (("topic", names["topic"]), ("namespace", names["namespace"]), ("default", "")):
        found = _newest(rows, "limit", scope, name, broker)
        if found is not None and (found.rates != (None, None) or found.was is not None):
            is_set = found.rates != (None, None)
            yield _level(scope, name, broker, found, is_in_force=is_in_force and is_set)
            is_in_force = is_in_force and not is_set


def _same_once(by_broker: Sequence[list[Level]]) -> Iterator[Level]:
    """Levels of several brokers: those that are the same on all stand once, without a broker."""
    each = [[replace(level, broker=None) for level in levels] for levels in by_broker]
    if all(levels == each[0] for levels in each):
        yield from each[0] if each else ()
    else:
        yield from (level for levels in by_broker for level in levels)


def _of_broker(name: str, broker: str, found: _Set | None, *, is_quota: bool) -> Iterator[Level]:
    if found is not None:
        yield _level("share" if is_quota else "broker", name if is_quota else broker, broker, found, is_in_force=True)


def _group_level(group: str, attached: tuple[str, _Set] | None, quota: Rates) -> Level:
    if attached is None:
        return Level("group", group, None, *quota, is_in_force=True, set_in="resource groups")
    place, found = attached
    source = _source("group", found)
    set_in = f"{source}, attached to {place}"
    return Level("group", group, None, *quota, is_in_force=True, set_in=set_in, since=found.since)


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
