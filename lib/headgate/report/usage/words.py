"""What a reason, a verdict and an instant are in words; names as a terminal may get them."""

from collections.abc import Mapping
from datetime import UTC, datetime

from headgate.core.quota.evaluation.step_parameters import Reason
from headgate.quota.usage.contention import Shared
from headgate.quota.usage.excess import Limiter
from headgate.quota.usage.topic_view import Consumer
from headgate.quota.usage.view import Broker, Cell, Part
from headgate.report.screen import plain
from headgate.report.sharers import listed
from headgate.report.throttling.causes import cause_of, let_through

UNITS = ("messages", "bytes")
_NAMED = 5
REASONS = {
    Reason.UNSET: "not limited",
    Reason.BLOCKED: "the quota is 0, which blocks",
    Reason.CLUSTER_SHARE: "its part of the cluster, as long as nobody uses the group",
    Reason.ENTRY: "has just come: the floor, until its first report is read",
    Reason.TARGET: "what the allocation grants it",
    Reason.GATED: "on its way up: only what others are known to have released",
    Reason.DEAD_BAND: "as before: the raise would be too small",
    Reason.FENCED: "most brokers are silent: no more than its part by weight",
    Reason.FLOOR: "the floor that every broker keeps",
    Reason.PROFILE: "as the allocation profile says",
    Reason.NO_TRANSPORT: "no usage table: an equal part",
}


def instant(time_ms: int) -> str:
    """ISO 8601 in UTC, with milliseconds where there are any."""
    moment = datetime.fromtimestamp(time_ms // 1000, UTC)
    fraction = f".{time_ms % 1000:03}" if time_ms % 1000 else ""
    return f"{moment:%Y-%m-%dT%H:%M:%S}{fraction}Z"


def named(names: list[str]) -> str:
    """The first names, and how many more there are."""
    shown = ", ".join(map(plain, names[:_NAMED]))
    return shown if len(names) <= _NAMED else f"{shown} and {len(names) - _NAMED} more"


def rate(value: int | None, none: str = "-") -> str:
    return none if value is None else f"{value:,}"


def demand(cell_or_part: Cell | Part) -> str:
    """What shares go by; + where it may be more, since arrivals do not show it."""
    if isinstance(cell_or_part, Cell):
        return f"{cell_or_part.demand_at_least:,}{'+' if cell_or_part.demand is None else ''}"
    return f"{cell_or_part.admitted:,}+" if cell_or_part.demand is None else f"{cell_or_part.demand:,}"


def cell_name(cell: Cell) -> str:
    return f"{plain(cell.group)} {cell.traffic_class.name.lower()} {UNITS[cell.dimension]}"


def cell_verdict(cell: Cell) -> str:
    """Why a cell throttles, in a few words; empty where it does not."""
    if not cell.exists:
        return "the group is gone; its last reports are not"
    if not cell.throttled:
        return ""
    if cell.quota is None:
        return "not limited now; its brokers have still to read that"
    if cell.quota == 0:
        return "the quota is 0, which blocks"
    if cell.arrived is not None and cell.demand_at_least > cell.quota >= cell.arrived:
        return "what came fits into the quota: a backlog is worked off"
    if cell.demand_at_least > cell.quota:
        return "demand is above the quota"
    if cell.demand is None:
        return "how far demand is above the quota does not show"
    return "demand was not above the quota just then: a burst, a backlog, or limits of brokers that lag"


def part_verdict(part: Part, quota: int | None) -> str:
    """Why a broker has its limit, and what that makes of it where it is throttled. quota: of the cell."""
    if part.throttled and part.limit is None and quota is not None:
        return "told no share yet: it goes by the whole quota"
    words = [] if part.outcome is None else [REASONS[part.outcome.reason]]
    if part.outcome is not None and part.outcome.missing:
        words.append(f"reports missing: {part.outcome.missing}")
    if part.is_burst:
        words.insert(0, "BURST or backlog, within its limit")
    elif part.is_victim:
        own = part.outcome.safe_share if part.outcome is not None else None
        words.insert(0, f"VICTIM, below its part of {own:,}" if own else "VICTIM, below its part")
    if part.broker.silent:
        words.insert(0, "SILENT, as it was at its last report")
    return "; ".join(words)


def cell_lines(cell: Cell) -> list[str]:
    """A throttled cell for somebody in a hurry: its demand, who takes it, who is only a victim."""
    first = f"{cell_name(cell)}: demand {demand(cell)}/s, quota {rate(cell.quota, 'none')}; {cell_verdict(cell)}"
    heard = [part for part in cell.throttled if not part.broker.silent]
    groups = {
        "over their limit": [part for part in heard if not part.is_victim and not part.is_burst],
        "only victims": [part for part in heard if part.is_victim],
        "only bursts or backlogs": [part for part in heard if part.is_burst],
        "silent, throttled at their last report": [part for part in cell.throttled if part.broker.silent],
    }
    said = [f"{label}: {named([part.broker.name for part in parts])}" for label, parts in groups.items() if parts]
    return [first, f"  {'; '.join(said)}"]


def broker_state(broker: Broker) -> str:
    """What is wrong with a broker; empty where nothing is."""
    if not broker.counts:
        return f"{plain(broker.state or '')}, {_heard(broker)}"
    return "" if broker.age is not None and broker.age <= 1 else _heard(broker)


def limiter_name(consumer: Consumer) -> str:
    if consumer.limiter is None:
        return "-"
    words = "topic limit" if consumer.limiter[0] == "topic" else _name(*consumer.limiter)
    return words if consumer.blame >= 1 else f"{words} ({consumer.blame:.0%})"


def _name(scope: str, name: str) -> str:
    """Of a group that a topic has left usage does not know the name."""
    return f"{scope} {plain(name)}" if name else f"a {scope} it was in"


def consumer_name(consumer: Consumer, lines_of: Mapping[str, int]) -> str:
    """With its group, if the name has several lines."""
    if lines_of[consumer.name] == 1:
        return consumer.name
    return f"{consumer.name} ({'no group' if consumer.group is None else f'group {consumer.group}'})"


def consumer_verdict(consumer: Consumer, lines_of: Mapping[str, int]) -> str:
    """What the limiter that throttled somebody makes of it. lines_of: how many a name has, a group each.

    Whose fault a limiter of a broker is goes by all groups of a name together.
    """
    also = "; ".join(f"at fault in {_name(*limiter)}" for limiter in consumer.also_at_fault)
    if consumer.limiter is None or not consumer.shared:
        return also
    verdict = _verdict(consumer, consumer.limiter, lines_of)
    return f"{verdict}; {also}" if also else verdict


def _verdict(consumer: Consumer, limiter: Limiter, lines_of: Mapping[str, int]) -> str:
    what = _name(*limiter)
    if consumer.within is not None:
        return cause_of(consumer.within).briefly
    if not consumer.rivals:
        return f"alone in {what}"
    parts = f"{', '.join(_part(consumer, shared) for shared in consumer.shared)} of {what}"
    parts += let_through(consumer.let_through)
    is_one_of_several = lines_of[consumer.name] > 1 and limiter[0] == "broker"
    return f"of {plain(consumer.name)} as a whole: {parts}" if is_one_of_several else parts


def _part(consumer: Consumer, shared: Shared) -> str:
    if shared.is_victim(consumer.tenant):
        return f"VICTIM: {listed(shared)} of the excess {shared.unit}"
    who = "" if consumer.name == consumer.tenant else f"its tenant {plain(consumer.tenant)} "
    return f"{who}has {shared.part(consumer.tenant):.0%} of the excess {shared.unit}"


def _heard(broker: Broker) -> str:
    return "not heard of lately" if broker.age is None else f"heard {broker.age} epochs ago"
