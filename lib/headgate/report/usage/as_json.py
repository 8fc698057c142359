"""Usage for programs: everything that is known, unrounded; null is not limited or not known."""

from collections.abc import Iterable, Sequence
from typing import Any

from headgate.quota.usage.query import Found
from headgate.quota.usage.topic_view import Consumer
from headgate.quota.usage.view import Broker, Cell, Part
from headgate.report.usage.words import UNITS, instant


def usage_json(found: Found, cells: Sequence[Cell]) -> dict[str, Any]:
    """Brokers, and quotas with what each broker does in them: what the views by group and by broker show."""
    return {
        "time": instant(found.epoch * found.epoch_ms),
        "epoch": found.epoch,
        "epochMillis": found.epoch_ms,
        "configVersion": found.config.version,
        "brokers": [_broker(broker) for broker in found.brokers.values()],
        "quotas": [_cell(cell) for cell in cells],
    }


def consumers_json(by: str, time_ms: int, seconds: int, consumers: Iterable[Consumer]) -> dict[str, Any]:
    """Tenants or topics, with sums over the seconds up to `time_ms`."""
    return {
        "time": instant(time_ms),
        "seconds": seconds,
        f"{by}s": [_consumer(by, one) for one in consumers],
    }


def _broker(broker: Broker) -> dict[str, Any]:
    return {
        "id": broker.broker_id,
        "name": broker.name,
        "state": broker.state,
        "heardEpoch": broker.heard,
        "age": broker.age,
        "configVersion": broker.config_version,
    }


def _cell(cell: Cell) -> dict[str, Any]:
    return {
        "group": cell.group,
        "groupId": cell.group_id,
        "class": cell.traffic_class.name.lower(),
        "unit": UNITS[cell.dimension],
        "exists": cell.exists,
        "quota": cell.quota,
        "admitted": cell.admitted,
        "demand": cell.demand,
        "demandAtLeast": cell.demand_at_least,
        "used": cell.used,
        "throttledBrokers": len(cell.throttled),
        "brokers": [_part(part) for part in cell.parts],
    }


def _part(part: Part) -> dict[str, Any]:
    outcome = part.outcome
    return {
        "id": part.broker.broker_id,
        "name": part.broker.name,
        "limit": part.limit,
        "admitted": part.admitted,
        "demand": part.demand,
        "throttled": part.throttled,
        "victim": part.is_victim,
        "burst": part.is_burst,
        "topics": part.topics,
        "age": part.broker.age,
        "reportEpoch": part.report_epoch,
        "reason": None if outcome is None else str(outcome.reason),
        "target": None if outcome is None else outcome.target,
        "safe": None if outcome is None else outcome.safe_share,
        "missing": None if outcome is None else outcome.missing,
        "silent": None if outcome is None else outcome.silent,
        "reportAge": None if outcome is None else outcome.report_age,
    }


def _consumer(by: str, one: Consumer) -> dict[str, Any]:
    scope, name = one.limiter or (None, None)
    return {
        by: one.name,
        "tenant": one.tenant,
        "group": one.group,
        "publishes": one.publishes,
        "messages": one.messages,
        "bytes": one.bytes,
        "admittedMessages": one.admitted_messages,
        "admittedBytes": one.admitted_bytes,
        "throttledPublishes": one.throttled,
        "settledPublishes": one.settled,
        "heldPublishes": one.held,
        "throttledNs": one.throttled_ns,
        "limiterScope": scope,
        "limiter": name or None,
        "blame": one.blame,
        "excess": [
            {"unit": shared.unit, "part": shared.part(one.tenant), "withinRate": shared.is_within}
            for shared in one.shared
        ],
        "victim": one.is_victim,
    }
