"""`why`: the answer about a topic, the one function behind the command, the endpoint and the page."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from headgate.core.numbers import SECOND_MS, SECOND_NS
from headgate.core.quota.config_tables import ConfigTables
from headgate.core.quota.settings import QuotaSettings
from headgate.core.reasons import HeldReason
from headgate.core.topic_names import topic_of
from headgate.errors import TableError
from headgate.quota.usage.contention import Reason
from headgate.quota.usage.excess import OWN, UNITS, Limiter
from headgate.quota.usage.parser import EPOCHS
from headgate.quota.usage.query import UsageTables
from headgate.quota.usage.topic_query import SECOND_US, TopicUsage, charged_to, text
from headgate.quota.usage.topic_view import tenant_name
from headgate.why.answer import Filled, Filler, HeldBy, Level, Traffic, Verdict, Why, Window
from headgate.why.chain import chain_of
from headgate.why.charged import Charged
from headgate.why.holds import SHOWN_PRODUCERS, Holds, holds_of
from headgate.why.known import check_known, window_of
from headgate.why.remedies import Held, remedies
from headgate.why.tables import OutputTables, of_topic, within

MOST_S = 3600
"""Of a longer window that hour is looked at in which the topic was held longest."""
FILLED_S = 300
"""Who filled a limiter is asked of so many seconds at most: of those in which it held the topic longest."""
FOLLOWED_BACK_S = 300
"""How far a backlog or debt is followed back to who made it, while anything was held."""
_WARM_S = 30
"""So long before these the rules are run to know how full the limiter was."""
SHOWN_FILLERS = 20
_UNIT_OF = {True: "bytes", False: "messages"}
_RULES = {
    "own_limit": "the limit is of this topic alone: nobody else uses it",
    "cause": "its tenant exceeded a fair share of the limiter, and no other one did by a tenth of that",
    "shared": "its tenant and others exceeded a fair share of the limiter, each by a tenth of the largest or more",
    "victim": "its tenant did not exceed a fair share of the limiter, or by less than a tenth of what another one did",
    "unknown": "the tables do not say how much came for the limiter",
}
_NOBODY = {
    Reason.BLOCKED: "the quota is 0, which blocks everybody",
    Reason.BACKLOG: "nobody exceeded a fair share: a backlog came at once that another limiter had held",
    Reason.SHARES: "nobody exceeded a fair share: it fits into the quota, but not into the shares of brokers",
    Reason.ABOVE: "nobody exceeded a fair share: somewhat more than the rate came, no more than a second saves up",
}


def why(
    output: str, name: str, *, at_s: int | None = None, first_s: int | None = None, last_s: int | None = None
) -> Why:
    """Why a topic is or was held. name: full or without a scheme; a topic is all its partitions.

    at_s: an instant, since 1970; or first_s to last_s, both included. Without them the last minutes of live traffic,
    or all of recorded traffic. Raises TableError for a topic that was never seen, a time without rows, and tables that
    cannot be read.
    """
    return _Question(OutputTables(output), name, at_s, first_s, last_s).answer()


class _Question:
    def __init__(
        self, tables: OutputTables, name: str, at_s: int | None, first_s: int | None, last_s: int | None
    ) -> None:
        self._tables = tables
        self._topic = check_known(tables, name)
        self._window, self._notes = window_of(tables, at_s, first_s, last_s)
        self._sums, self._looked_at = self._traffic()
        self._first_s, self._last_s = (int(one.timestamp()) for one in (self._looked_at.first, self._looked_at.last))

    def answer(self) -> Why:
        traffic = self._sums
        was_held = bool(traffic.throttled_s or traffic.throttled_publishes or traffic.failed_publishes)
        first_ns, end_ns = self._first_s * SECOND_NS, (self._last_s + 1) * SECOND_NS
        holds = holds_of(self._tables, self._topic.name, first_ns, end_ns, is_held=was_held)
        held_by = tuple(holds.held_by())
        if was_held and not held_by:
            self._notes.append("the rows of marks that say what held it are gone by retention, or were never written")
        found = Why(
            self._topic.name,
            self._window,
            self._looked_at,
            held_by[0].reason if held_by else HeldReason.NOT_HELD,
            holds.held_s,
            traffic,
            held_by,
            self._chain(held_by),
            tuple(holds.balances()),
            producers=tuple(holds.producers()[:SHOWN_PRODUCERS]),
            is_held_at=self._is_held_at(holds),
            notes=tuple(self._notes),
        )
        return self._with_fault(found, held_by[0]) if held_by else found

    def _is_held_at(self, holds: Holds) -> bool | None:
        """At any time in the second asked about."""
        at = self._window.at
        return None if at is None else holds.is_held_in(int(at.timestamp()))

    def _where(self, window: Window) -> str:
        """SQL: rows of the topic in the window."""
        first_s, end_s = int(window.first.timestamp()), int(window.last.timestamp()) + 1
        return f"{of_topic(self._topic.name)} AND {within(first_s * SECOND_NS, end_s * SECOND_NS)}"

    def _traffic(self) -> tuple[Traffic, Window]:
        """Sums over the window, and what of it is looked at: of more than an hour that in which the topic was held
        longest, of equal ones the first.
        """
        names = [
            *("publishes", "messages", "bytes", "admitted_messages", "admitted_bytes", "throttled_publishes"),
            *("delayed_publishes", "failed_publishes", "delay_ns", "throttled_ns"),
        ]
        let_in = {f"admitted_{unit}": f"coalesce(admitted_{unit}, {unit})" for unit in UNITS}
        sums = ", ".join(f"sum({let_in.get(name, name)}) AS {name}" for name in names)
        hour = f"arrow_cast(event_time, 'Int64') / {MOST_S * SECOND_US} AS hour"
        sql = f"SELECT {hour}, {sums} FROM t WHERE {self._where(self._window)} GROUP BY hour"  # noqa: S608
        rows = list(self._tables.dicts("topic_usage", sql))
        total = {name: sum(row[name] or 0 for row in rows) for name in names}
        delay_ns, throttled_ns, delayed = total.pop("delay_ns"), total.pop("throttled_ns"), total["delayed_publishes"]
        mean_delay_s = delay_ns / delayed / SECOND_NS if delayed else None
        traffic = Traffic(**total, throttled_s=throttled_ns / SECOND_NS, mean_delay_s=mean_delay_s)
        return traffic, self._window if self._window.seconds <= MOST_S else self._worst_hour(rows)

    def _worst_hour(self, rows: Iterable[Mapping[str, Any]]) -> Window:
        held: dict[int, int] = defaultdict(int)
        for row in rows:
            held[row["hour"]] += row["throttled_ns"] or 0
        if not held:
            return self._window
        worst_s = MOST_S * min(held, key=lambda hour: (-held[hour], hour))
        first, last = (datetime.fromtimestamp(one, UTC) for one in (worst_s, worst_s + MOST_S - 1))
        return Window(max(first, self._window.first), min(last, self._window.last), self._window.at)

    @cached_property
    def _brokers(self) -> list[str]:
        """Those with traffic of the topic."""
        sql = f"SELECT DISTINCT broker FROM t WHERE {self._where(self._looked_at)}"  # noqa: S608  quoted text
        return sorted({row["broker"] for row in self._tables.dicts("topic_usage", sql)})

    @cached_property
    def _config(self) -> ConfigTables:
        """Groups and attachments as they were known at the end of the window; none where no quota is shared."""
        with suppress(TableError):
            shared = UsageTables(self._tables.output, QuotaSettings())
            with suppress(TableError):
                return shared.config(shared.config_version_at(EPOCHS, self._last_s * SECOND_MS))
            return shared.config()
        return ConfigTables()

    def _quota_of(self, group: str, unit: str) -> int | None:
        known = self._config.groups.get(group)
        return None if known is None else known.rates[UNITS.index(unit)]

    def _chain(self, held_by: Iterable[HeldBy]) -> tuple[Level, ...]:
        at_ns = (self._last_s + 1) * SECOND_NS - 1
        binding = {(one.scope, one.limiter, one.broker) for one in held_by}
        of_topic_ = {broker for scope, _, broker in binding if scope == "topic"}

        def is_binding(level: Level) -> bool:
            if level.level in {"topic", "namespace", "default"}:
                return level.is_in_force and bool(of_topic_)
            if level.level == "group":
                return any(scope == "group" and name == level.name for scope, name, _ in binding)
            scope = "group" if level.level == "share" else level.level
            return (scope, level.name, level.broker) in binding

        chain = chain_of(self._tables, self._topic, self._brokers, at_ns, self._quota_of)
        return tuple(replace(level, is_binding=is_binding(level)) for level in chain)

    def _with_fault(self, found: Why, held: HeldBy) -> Why:
        """The answer with who filled the limiter that held the topic longest, whose fault that was, and what helps."""
        longest = max(held.spans, key=lambda one: one.last - one.first)
        first_s = max(int(longest.first.timestamp()), self._first_s)
        last_s = min(int(longest.last.timestamp()), first_s + FILLED_S - 1, self._last_s)
        looked_at = Window(datetime.fromtimestamp(first_s, UTC), datetime.fromtimestamp(last_s, UTC))
        unit = _UNIT_OF[held.reason.endswith("BYTES")]
        limiter = OWN if held.scope == "topic" else (held.scope, held.limiter)
        charged = self._charged(limiter, first_s - _WARM_S, last_s + 1)
        in_time = charged.since(first_s)
        tenants = {topic: tenant_name(topic) for topic in charged.names("topic")}
        topics = _fillers(in_time.sums(unit))
        filled = Filled(
            held.scope,
            held.limiter,
            unit,
            looked_at,
            tuple(_fillers(_together(in_time.sums(unit), tenants))[:SHOWN_FILLERS]),
            tuple(topics[:SHOWN_FILLERS]),
            max(len(topics) - SHOWN_FILLERS, 0),
        )
        verdict = self._verdict(limiter, unit, first_s, last_s)
        largest = verdict.excess[0][0] if verdict.kind == "victim" else None
        rate = self._rate(found.chain, limiter, unit)
        others = self._others(limiter, unit, first_s - _WARM_S, last_s + 1) if limiter[0] == "broker" else None
        asked = Held(held.scope, held.limiter, unit, rate, charged, tenants, largest, others)
        return replace(found, filled=filled, verdict=verdict, remedies=tuple(remedies(asked)))

    def _charged(self, limiter: Limiter, first_s: int, end_s: int) -> Charged:
        scope, name = limiter
        if limiter == OWN:
            return Charged.read(self._tables, first_s, end_s, of_topic(self._topic.name), lambda _: True)
        where = charged_to(limiter, self._config)
        if scope == "broker":
            return Charged.read(self._tables, first_s, end_s, where, lambda _: True)
        return Charged.read(self._tables, first_s, end_s, where, lambda topic: self._group_of(topic) == name)

    def _group_of(self, topic: str) -> str | None:
        parsed = topic_of(topic)
        return None if parsed is None else self._config.resolve(parsed).group

    def _rate(self, chain: Iterable[Level], limiter: Limiter, unit: str) -> int | None:
        if limiter[0] == "group":
            return self._quota_of(limiter[1], unit)
        levels = (one for one in chain if one.is_in_force and one.level == "broker" and one.name == limiter[1])
        return next((one.messages_per_s if unit == "messages" else one.bytes_per_s for one in levels), None)

    def _others(self, limiter: Limiter, unit: str, first_s: int, end_s: int) -> Mapping[str, tuple[int, Charged]]:
        """The limiters of the other brokers that have a rate: that, and what was charged to them."""
        charged = Charged.read(self._tables, first_s, end_s, f"broker <> {text(limiter[1])}", lambda _: True)
        brokers = charged.names("broker")
        chain = chain_of(self._tables, self._topic, brokers, end_s * SECOND_NS - 1, self._quota_of)
        rates = {broker: self._rate(chain, ("broker", broker), unit) for broker in brokers}
        return {broker: (rate, charged.of("broker", broker)) for broker, rate in rates.items() if rate}

    def _verdict(self, limiter: Limiter, unit: str, first_s: int, last_s: int) -> Verdict:
        if limiter == OWN:
            return Verdict("own_limit", _RULES["own_limit"])
        usage = TopicUsage(self._tables.output)
        contention = usage.contention(last_s, last_s - first_s + 1, self._config, limiter, FOLLOWED_BACK_S)
        tenant = self._topic.tenant
        seconds = contention.held_seconds(tenant, limiter)
        shared = contention.shared(tenant, limiter, [unit])
        if not shared or not seconds:
            return Verdict("unknown", _RULES["unknown"])
        first = shared[0]
        if first.is_within:
            return Verdict("nobody", _NOBODY[contention.why_within(limiter, first.unit, seconds).reason])
        excess = tuple((name, first.part(name)) for name in first.sharers)
        kind = "victim" if first.is_victim(tenant) else "cause" if first.sharers == [tenant] else "shared"
        return Verdict(kind, _RULES[kind], excess)


def _fillers(sums: Iterable[tuple[str, int, int]]) -> list[Filler]:
    """By name, what came and what was let in: the largest part first."""
    rows = list(sums)
    whole = sum(let_in for _, _, let_in in rows)
    found = [Filler(name, came, let_in, let_in / whole if whole else 0.0) for name, came, let_in in rows]
    return sorted(found, key=lambda one: (-one.let_in, -one.came, one.name))


def _together(sums: Iterable[tuple[str, int, int]], tenants: Mapping[str, str]) -> Iterator[tuple[str, int, int]]:
    by_tenant: dict[str, list[int]] = {}
    for topic, *amounts in sums:
        of_tenant = by_tenant.setdefault(tenants[topic], [0, 0])
        of_tenant[:] = (whole + more for whole, more in zip(of_tenant, amounts, strict=True))
    for tenant, (came, let_in) in by_tenant.items():
        yield tenant, came, let_in
