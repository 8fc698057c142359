"""Kinds report_decision and usage_map: what is sent, and what a reader makes of it (resource-groups 6, 7, 18)."""

from collections.abc import Iterator, Mapping
from typing import Any

from headgate.core.quota.evaluation.cell_view import CellMember
from headgate.core.quota.evaluation.view import active_members, cell_view, missing_members
from headgate.core.quota.groups import HEARTBEAT_GROUP, Dimension, TrafficClass, UsageKey
from headgate.core.quota.settings import QuotaSettings
from headgate.core.quota.usage.reports import (
    Measured,
    ReportParameters,
    ReportReason,
    ReportRule,
    decide_at_close,
    decide_early,
    decide_released,
)
from headgate.core.quota.usage.usage import Usage
from headgate.core.quota.usage.usage_history import AcceptedRow
from headgate.core.quota.usage.usage_map import Member, UsageMap
from headgate.core.quota.usage.usage_report import ReportKind
from headgate.core.quota.usage.usage_row import UsageRow
from headgate.errors import ConformanceError

PERIOD_S = 60
MILLISECONDS = 1000
LONG_AGO_MS = 2**62
SETTINGS = {
    "periodMillis": "epoch_ms",
    "maxSuppressRounds": "suppress_rounds",
    "staleMillis": "stale_report_ms",
    "lingerRounds": "linger_rounds",
    "membership": "membership",
}
REPORT_PARAMETERS = {
    "maxSuppressRounds": "suppress_rounds",
    "tolerancePercent": "tolerance_percent",
    "eventChangePercent": "event_change_percent",
    "eventMinIntervalMillis": "event_min_interval_ms",
}
CLASSES = {"publish": TrafficClass.PUBLISH, "dispatch": TrafficClass.DISPATCH}
KINDS = {"periodic": ReportKind.PERIODIC, "event": ReportKind.EVENT, "leave": ReportKind.LEAVE}


def map_of(config: Mapping[str, Any]) -> UsageMap:
    """An empty map by the settings that a vector's config names in short form."""
    settings = QuotaSettings(**{SETTINGS[key]: value for key, value in config.items() if key in SETTINGS})
    return UsageMap(settings.map_parameters())


def report_parameters(config: Mapping[str, Any]) -> ReportParameters:
    """What decides about rows, by the keys of a vector's config."""
    named = {REPORT_PARAMETERS[key]: value for key, value in config.items() if key in REPORT_PARAMETERS}
    return ReportParameters(**named)


def report_decision(config: Mapping[str, Any], inputs: Mapping[str, Any]) -> Any:
    """One decision, or one for each of successive closes."""
    decide = _released_decision if inputs.get("rule", config.get("rule")) == ReportRule.PULSAR else _own_decision
    if "rounds" not in inputs:
        reason = decide(config, inputs)
        return {"report": reason is not None, "reason": reason}
    last, rounds = inputs.get("last"), inputs.get("roundsSinceLast", 0)
    reasons = []
    for current in inputs["rounds"]:
        rounds += 1
        asked = {"current": current, "last": last, "roundsSinceLast": rounds, "leaving": current.get("leaving", False)}
        reasons.append(decide(config, asked))
        if reasons[-1] is not None:
            last, rounds = None if reasons[-1] == ReportReason.LEAVE else current, 0
    return {"reasons": reasons}


def _own_decision(config: Mapping[str, Any], inputs: Mapping[str, Any]) -> ReportReason | None:
    parameters, leaving = report_parameters(config), inputs.get("leaving", False)
    current, given_last = _measured(inputs["current"]), inputs.get("last")
    last = None if given_last is None else _measured(given_last)
    if inputs.get("phase", "close") == "early":
        return decide_early(parameters, current, last, inputs.get("msSinceLast", LONG_AGO_MS), leaving=leaving)
    return decide_at_close(parameters, current, last, inputs.get("roundsSinceLast", 1), leaving=leaving)


def _released_decision(config: Mapping[str, Any], inputs: Mapping[str, Any]) -> ReportReason | None:
    period_ms = config.get("periodSeconds", PERIOD_S) * MILLISECONDS
    given_last = inputs.get("last")
    last = None if given_last is None else (given_last["msgs"], given_last["bytes"])
    elapsed_ms = inputs.get("elapsedMs", inputs.get("roundsSinceLast", LONG_AGO_MS) * period_ms)
    counts = inputs["current"]["msgs"], inputs["current"]["bytes"]
    return decide_released(report_parameters(config), counts, last, elapsed_ms, period_ms)


def _measured(given: Mapping[str, Any]) -> Measured:
    usage = Usage(
        tuple(given["admitted"]),
        _pair(given, "offered"),
        _pair(given, "limit"),
        _pair(given, "throttled", missing=False),
    )
    return Measured(usage, given.get("configVersion", 0))


def _pair(given: Mapping[str, Any], name: str, *, missing: Any = None) -> Any:
    """The pair called `name`; what is no list stays as it is, to be refused."""
    pair = given.get(name)
    if pair is None:
        return missing, missing
    return tuple(pair) if isinstance(pair, list) else pair


def usage_map(config: Mapping[str, Any], inputs: Mapping[str, Any]) -> Any:
    """The map after all messages, what was dropped, and the view as of an epoch if one is asked for."""
    built = map_of(config)
    built.set_groups(inputs.get("groups"))
    built.set_members({int(id_): Member(incarnation) for id_, incarnation in inputs.get("members", {}).items()}, 0)
    for message in inputs["messages"]:
        receive(built, message)
    expected = {
        "map": {
            _name(key): {str(broker_id): _entry(row) for broker_id, row in entries.items()}
            for key, entries in built.entries().items()
        },
        "dropped": {str(reason): count for reason, count in built.dropped.items()},
    }
    return expected if "asOf" not in inputs else {**expected, "asOf": _as_of(built, inputs["asOf"])}


def receive(built: UsageMap, message: Mapping[str, Any]) -> None:
    """Let a message of a vector act on the map."""
    match message["op"]:
        case "report" | "heartbeat":
            built.receive(row_of(message), message.get("at"))
        case "member_lost":
            built.lose(message["broker"], message["at"])
        case "member_joined":
            built.join(message["broker"], Member(message["inc"]), message["at"])
        case "tick":
            built.expire(message["at"])
        case op:
            raise ConformanceError(f"malformed vector: unknown message {op!r}")


def row_of(message: Mapping[str, Any]) -> UsageRow:
    """The row that a message stands for, as it would be read."""
    is_heartbeat = message["op"] == "heartbeat"
    traffic_class, kind = message.get("class", "publish"), message.get("kind", "periodic")
    return UsageRow(
        message.get("broker"),
        message.get("inc"),
        message.get("seq"),
        message.get("epoch"),
        message.get("published"),
        HEARTBEAT_GROUP if is_heartbeat else message.get("group"),
        CLASSES.get(traffic_class, traffic_class),
        KINDS.get(kind, kind),
        _pair(message, "admitted"),
        _pair(message, "offered"),
        _pair(message, "limit"),
        _pair(message, "throttled", missing=False),
    )


def _name(key: UsageKey) -> str:
    return f"{key[0]}/{TrafficClass(key[1]).name.lower()}"


def _entry(row: AcceptedRow) -> dict[str, Any]:
    usage = row.usage
    return {
        "epoch": row.epoch,
        "seq": row.seq,
        "admitted": usage.admitted,
        "offered": usage.offered,
        "throttled": usage.throttled,
    }


def _as_of(built: UsageMap, epoch: int) -> dict[str, Any]:
    keys = sorted({key for broker in built.members().values() for key in broker.histories})
    demand, active = {}, {}
    for key in keys:
        views = [cell_view(built, key, dimension, epoch).members for dimension in Dimension]
        busy = dict(_busy(*views))
        if busy:
            demand[_name(key)] = busy
        if members := active_members(built, key, epoch):
            active[_name(key)] = members
    return {"demand": demand, "active": active, "missing": missing_members(built, epoch)}


def _busy(messages: tuple[CellMember, ...], of_bytes: tuple[CellMember, ...]) -> Iterator[tuple[str, Any]]:
    """Demand of those that are not idle, by broker."""
    for in_messages, in_bytes in zip(messages, of_bytes, strict=True):
        if in_messages.row is not None and in_bytes.row is not None and not in_messages.row.idle:
            yield str(in_messages.broker_id), [in_messages.row.demand, in_bytes.row.demand]
