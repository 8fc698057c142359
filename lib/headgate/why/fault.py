"""Who filled the limiter that held a topic, whose fault that was, and what would have helped."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from headgate.core.numbers import SECOND_NS
from headgate.core.quota.config_tables import ConfigTables
from headgate.core.topic_names import Topic, topic_of
from headgate.quota.usage.contention import Reason
from headgate.quota.usage.excess import OWN, UNITS, Limiter
from headgate.quota.usage.topic_query import TopicUsage, charged_to
from headgate.quota.usage.topic_view import tenant_name
from headgate.tables.query import text
from headgate.why.answer import Filled, Filler, HeldBy, Level, Remedy, Verdict, Window
from headgate.why.chain import broker_limits
from headgate.why.charged import Charged
from headgate.why.remedies import Held, remedies, would_hold
from headgate.why.tables import OutputTables, of_topic

FILLED_S = 300
"""Who filled a limiter is asked of so many seconds at most: the first ones of the longest span in which it held."""
FOLLOWED_BACK_S = 300
"""How far a backlog or debt is followed back to who made it, while anything was held."""
_WARM_S = 30
"""So long before these the rules are run to know how full the limiter was."""
SHOWN_FILLERS = 20
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


@dataclass(frozen=True)
class Fault:
    """Of whom and when it is asked. config: groups and attachments of shared quotas at that time."""

    tables: OutputTables
    topic: Topic
    looked_at: Window
    config: ConfigTables


@dataclass(frozen=True)
class Found:
    """What fault_of found."""

    filled: Filled
    verdict: Verdict
    remedies: tuple[Remedy, ...]


def fault_of(asked: Fault, held: HeldBy, own: Level | None) -> Found:
    """Of the limiter that held the topic longest, in its longest span. own: the topic's own limit in force."""
    longest = max(held.spans, key=lambda one: one.last - one.first)
    first_s = max(int(longest.first.timestamp()), int(asked.looked_at.first.timestamp()))
    last_s = min(int(longest.last.timestamp()), first_s + FILLED_S - 1, int(asked.looked_at.last.timestamp()))
    limiter = OWN if held.scope == "topic" else (held.scope, held.limiter)
    charged = _charged(asked, limiter, first_s - _WARM_S, last_s + 1)
    verdict = _verdict(asked, limiter, held.unit, first_s, last_s)
    others = _others(asked, limiter, held.unit, first_s - _WARM_S, last_s + 1) if held.scope == "broker" else None
    tenants = {topic: tenant_name(topic) for topic in charged.names("topic")}
    rates = _rates(asked, held)
    ran = Held(
        *(held.scope, held.limiter, held.unit, rates, charged, first_s, tenants),
        culprit=verdict.excess[0][0] if verdict.kind == "victim" else None,
        others=others,
    )
    window = Window(*(datetime.fromtimestamp(one, UTC) for one in (first_s, last_s)))
    filled = _filled(held, window, charged.since(first_s), tenants, rates[held.unit])
    found = tuple(remedies(ran))
    return Found(filled, verdict, (*found, *_then(asked, held, own, first_s, last_s)) if found else ())


def _then(asked: Fault, held: HeldBy, own: Level | None, first_s: int, last_s: int) -> Iterator[Remedy]:
    """What is needed besides, if the topic's own limit would hold it once the shared one does not. own: in force."""
    if held.scope == "topic" or own is None:
        return
    rates = dict(zip(UNITS, (own.messages_per_s, own.bytes_per_s), strict=True))
    charged = _charged(asked, OWN, first_s - _WARM_S, last_s + 1)
    for unit in UNITS:
        ran = Held("topic", asked.topic.name, unit, rates, charged, first_s, {})
        if would_hold(ran):
            yield from (replace(one, words=f"then its own limit would hold it; {one.words}") for one in remedies(ran))
            return


def _filled(held: HeldBy, window: Window, charged: Charged, tenants: Mapping[str, str], rate: int | None) -> Filled:
    sums = charged.sums(held.unit)
    topics, by_tenant = _fillers(sums), _fillers(_by_tenant(sums, tenants))
    return Filled(
        *(held.scope, held.limiter, held.unit, window),
        tuple(by_tenant[:SHOWN_FILLERS]),
        tuple(topics[:SHOWN_FILLERS]),
        max(len(topics) - SHOWN_FILLERS, 0),
        sum(let_in for _, _, let_in in sums) / window.seconds,
        rate,
    )


def _charged(asked: Fault, limiter: Limiter, first_s: int, end_s: int) -> Charged:
    scope, name = limiter
    if limiter == OWN:
        return Charged.read(asked.tables, first_s, end_s, of_topic(asked.topic.name), lambda _: True)
    where = charged_to(limiter, asked.config)
    if scope == "broker":
        return Charged.read(asked.tables, first_s, end_s, where, lambda _: True)

    def is_charged(topic: str) -> bool:
        parsed = topic_of(topic)
        return parsed is not None and asked.config.resolve(parsed).group == name

    return Charged.read(asked.tables, first_s, end_s, where, is_charged)


def _rates(asked: Fault, held: HeldBy) -> dict[str, int | None]:
    """Those that held the topic; of a group whose quota is known, that, unless it was blocked."""
    rates = dict(zip(UNITS, (held.messages_per_s, held.bytes_per_s), strict=True))
    known = asked.config.groups.get(held.limiter) if held.scope == "group" else None
    if known is None:
        return rates
    return {unit: 0 if rates[unit] == 0 else quota for unit, quota in zip(UNITS, known.rates[:2], strict=True)}


def _others(asked: Fault, limiter: Limiter, unit: str, first_s: int, end_s: int) -> dict[str, tuple[int, Charged]]:
    """The limiters of the other brokers that have a rate: that, and what was charged to them."""
    where = f"broker <> {text(limiter[1])}"
    charged = Charged.read(asked.tables, first_s, end_s, where, lambda _: True)
    limits = broker_limits(asked.tables, charged.names("broker"), end_s * SECOND_NS - 1)
    rates = {name: one.messages_per_s if unit == UNITS[0] else one.bytes_per_s for name, one in limits.items()}
    return {name: (rate, charged.of("broker", name)) for name, rate in rates.items() if rate}


def _verdict(asked: Fault, limiter: Limiter, unit: str, first_s: int, last_s: int) -> Verdict:
    if limiter == OWN:
        return Verdict("own_limit", _RULES["own_limit"])
    usage = TopicUsage(asked.tables.output, asked.tables.patience)
    contention = usage.contention(last_s, last_s - first_s + 1, asked.config, limiter, FOLLOWED_BACK_S)
    tenant = asked.topic.tenant
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


def _by_tenant(sums: Iterable[tuple[str, int, int]], tenants: Mapping[str, str]) -> Iterator[tuple[str, int, int]]:
    by_tenant: dict[str, list[int]] = {}
    for topic, *amounts in sums:
        of_tenant = by_tenant.setdefault(tenants[topic], [0, 0])
        of_tenant[:] = (whole + more for whole, more in zip(of_tenant, amounts, strict=True))
    for tenant, (came, let_in) in by_tenant.items():
        yield tenant, came, let_in
