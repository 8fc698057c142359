"""`why`: the answer about a topic, the one function behind the command, the endpoint and the page."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from headgate.core.numbers import SECOND_MS, SECOND_NS
from headgate.core.quota.config_tables import ConfigTables
from headgate.core.quota.settings import QuotaSettings
from headgate.core.reasons import HeldReason, publish_reason
from headgate.core.topic_names import Topic
from headgate.quota.tables.opened import Locations
from headgate.quota.tables.topic_tables import is_table
from headgate.quota.usage.excess import SCOPES, UNITS
from headgate.quota.usage.query import UsageTables
from headgate.quota.usage.topic_query import SECOND_US
from headgate.why.answer import HeldBy, Level, Traffic, Why, Window
from headgate.why.chain import Chain, chain_of
from headgate.why.fault import Fault, fault_of
from headgate.why.holds import SHOWN_PRODUCERS, Holds, holds_of
from headgate.why.known import check_known, window_of
from headgate.why.tables import OutputTables, end_ns, first_ns, in_window, of_topic

MOST_S = 3600
"""Of a longer window that clock hour is looked at in which the topic was held longest."""
_OWN = ("topic", "namespace", "default")
_NO_MARKS = "the rows of marks that say since when it was held are gone by retention, or were never written"
_ADMITTED = "this traffic was let in: clients that were held would have sent more, so rates that help are lower bounds"
_UNKNOWN = {f"throttled_by_{scope}": publish_reason(scope, None) for scope in SCOPES}
"""The unit that ran out stands in marks alone."""
_SUMMED = (
    *("publishes", "messages", "bytes", "admitted_messages", "admitted_bytes", "throttled_publishes"),
    *("delayed_publishes", "failed_publishes", "delay_ns", *_UNKNOWN),
)


def why(
    tables: OutputTables,
    name: str,
    settings: QuotaSettings | None = None,
    *,
    at_s: int | None = None,
    first_s: int | None = None,
    last_s: int | None = None,
) -> Why:
    """Why a topic is or was held. name: full or without a scheme; a topic is all its partitions.

    settings: where tables of groups are, if they are not in the output. at_s: an instant, since 1970; or first_s to
    last_s, both included. Without them the last minutes of live traffic, or all of recorded traffic. Raises
    NotFoundError for a topic that was never seen and a time without rows, TableError for tables that cannot be read.
    """
    topic = check_known(tables, name)
    window, notes = window_of(tables, at_s, first_s, last_s)
    return _Question(tables, topic, settings or QuotaSettings(), window, notes).answer()


class _Question:
    def __init__(
        self, tables: OutputTables, topic: Topic, settings: QuotaSettings, window: Window, notes: list[str]
    ) -> None:
        self._tables, self._topic, self._settings, self._window, self._notes = tables, topic, settings, window, notes
        self._traffic, self._looked_at, self._unknown = self._summed()

    def answer(self) -> Why:
        where = of_topic(self._topic.name)
        holds = holds_of(self._tables, where, first_ns(self._looked_at), end_ns(self._looked_at))
        held_by = tuple(holds.held_by())
        reason = held_by[0].reason if held_by else self._unknown
        if reason is not HeldReason.NOT_HELD and not held_by:
            self._notes.append(_NO_MARKS)
        last_mark = held_by[0].last_mark if held_by else None  # a limit that is raised ends the hold: it is none of it
        chain_at = min(max(last_mark or self._looked_at.last, self._looked_at.first), self._looked_at.last)
        config = self._config_at(int(chain_at.timestamp()))
        brokers = sorted({*self._brokers, *(one.broker for one in held_by)})
        chain = chain_of(self._tables, self._topic, brokers, _ns(chain_at), config)
        found = Why(
            *(self._topic.name, self._window, self._looked_at, reason, holds.held_s, self._traffic, held_by),
            tuple(_bound(chain, held_by)),
            chain_at,
            tuple(holds.balances()),
            producers=tuple(holds.producers()[:SHOWN_PRODUCERS]),
            is_held_at=self._is_held_at(holds),
        )
        if held_by:
            own = next((one for one in found.chain if one.level in _OWN and one.is_in_force), None)
            fault = fault_of(Fault(self._tables, self._topic, self._looked_at, config), held_by[0], own)
            if self._is_admitted and fault.remedies:
                self._notes.append(_ADMITTED)
            found = replace(found, filled=fault.filled, verdict=fault.verdict, remedies=fault.remedies)
        return replace(found, notes=tuple(self._notes))

    def _is_held_at(self, holds: Holds) -> bool | None:
        """At any time in the second asked about."""
        at = self._window.at
        return None if at is None else holds.is_held_in(int(at.timestamp()))

    def _summed(self) -> tuple[Traffic, Window, HeldReason]:
        """Sums over the window; what of it is looked at: of more than an hour that in which the topic was held longest,
        of equal ones the first; and by what it was held, as far as topic_usage says so.

        A row tells of the time since the topic's row before, so those of more than a second are spread back over it.
        """
        let_in = {f"admitted_{unit}": f"coalesce(admitted_{unit}, {unit})" for unit in UNITS}
        sums = ", ".join(f"sum({let_in.get(name, name)}) AS {name}" for name in _SUMMED)
        by = f"arrow_cast(event_time, 'Int64') / {MOST_S * SECOND_US} AS hour"
        long = f"CASE WHEN throttled_ns > {SECOND_NS} THEN arrow_cast(event_time, 'Int64') END AS long_us"
        held = "sum(throttled_ns) AS throttled_ns, bool_or(admitted_publishes IS NULL) AS is_admitted"
        where = f"{of_topic(self._topic.name)} AND {in_window(self._window)}"
        sql = f"SELECT {by}, {long}, broker, topic, {held}, {sums} FROM topic_usage WHERE {where} GROUP BY 1, 2, 3, 4"  # noqa: S608
        rows = list(self._tables.dicts("topic_usage", sql))
        total = {name: sum(row[name] or 0 for row in rows) for name in _SUMMED}
        by_scope = {name: total.pop(name) for name in _UNKNOWN}
        delay_ns, delayed = total.pop("delay_ns"), total["delayed_publishes"]
        by_hour = _held_by_hour(rows, first_ns(self._window))
        throttled_s = sum(by_hour.values()) / SECOND_NS
        mean_delay_s = delay_ns / delayed / SECOND_NS if delayed else None
        traffic = Traffic(**total, throttled_s=throttled_s, mean_delay_s=mean_delay_s)
        self._is_admitted = any(row["is_admitted"] for row in rows)
        scope = max(by_scope, key=lambda name: by_scope[name])
        unknown = _UNKNOWN[scope] if by_scope[scope] else HeldReason.NOT_HELD
        looked_at = self._window if self._window.seconds <= MOST_S else self._worst_hour(by_hour)
        return traffic, looked_at, unknown

    def _worst_hour(self, held_ns: Mapping[int, int]) -> Window:
        """held_ns: by the number of the hour since 1970."""
        first_hour = int(self._window.first.timestamp()) // MOST_S
        worst_s = MOST_S * min(held_ns, key=lambda hour: (-held_ns[hour], hour), default=first_hour)
        first, last = (datetime.fromtimestamp(one, UTC) for one in (worst_s, worst_s + MOST_S - 1))
        return Window(max(first, self._window.first), min(last, self._window.last), self._window.at)

    @cached_property
    def _brokers(self) -> set[str]:
        """Those with traffic of the topic."""
        where = f"{of_topic(self._topic.name)} AND {in_window(self._looked_at)}"
        sql = f"SELECT DISTINCT broker FROM topic_usage WHERE {where}"  # noqa: S608  quoted text
        return {row["broker"] for row in self._tables.dicts("topic_usage", sql)}

    def _config_at(self, at_s: int) -> ConfigTables:
        """Groups and attachments as they were known then; as they are now if no report says so, none where no quota is
        shared.
        """
        output, patience = self._tables.output, self._tables.patience
        groups = Locations.of(output, self._settings).groups
        if not is_table(groups, patience):
            return ConfigTables()
        config, _ = UsageTables(output, self._settings, patience=patience).config_at(at_s * SECOND_MS)
        return config


def _held_by_hour(rows: Iterable[Mapping[str, Any]], from_ns: int) -> dict[int, int]:
    """By the number of the hour since 1970, in ns: how long producers of the topic's partitions waited on each broker.

    rows: sums by hour, and of each row of more than a second alone. from_ns: what was before does not count.
    """
    hour_ns = MOST_S * SECOND_NS
    found: dict[int, int] = defaultdict(int)
    for row in rows:
        if row["long_us"] is None:
            found[row["hour"]] += row["throttled_ns"] or 0
            continue
        end = row["long_us"] * 1000 + SECOND_NS
        begin = max(end - row["throttled_ns"], from_ns)
        for hour in range(begin // hour_ns, -(-end // hour_ns)):
            found[hour] += min(end, (hour + 1) * hour_ns) - max(begin, hour * hour_ns)
    return {hour: held for hour, held in found.items() if held > 0}


def _bound(chain: Chain, held_by: Iterable[HeldBy]) -> Iterator[Level]:
    """The levels, each with whether it held the topic: of those that apply, at the rates that marks had."""
    held = {(one.scope, one.limiter, one.broker): (one.messages_per_s, one.bytes_per_s) for one in held_by}
    own = [(broker, rates) for (scope, _, broker), rates in held.items() if scope == "topic"]
    for level in chain.levels:
        rates = level.messages_per_s, level.bytes_per_s
        if level.level in _OWN:
            is_binding = level.is_in_force and any(
                rates == of_mark and level.broker in {None, broker} for broker, of_mark in own
            )
        elif level.level == "group":
            is_binding = any((scope, name) == ("group", level.name) for scope, name, _ in held)
        else:
            scope = "group" if level.level == "share" else level.level
            is_binding = (scope, level.name, level.broker) in held
        yield replace(level, is_binding=is_binding)


def _ns(at: datetime) -> int:
    return int(at.timestamp()) * SECOND_NS + at.microsecond * 1000
