"""Kinds subscribe_limiter, unload_limiter and connection_conditions (rate-limiters 8, 9, 10)."""

from collections.abc import Mapping
from typing import Any

from headgate.conformance.adapters.operations import CoreKind, OperationTable
from headgate.conformance.oracles.connection_conditions import ConnectionConditions
from headgate.conformance.oracles.subscribe_limiter import SubscribeLimiter
from headgate.conformance.timed import TimedAdapter
from headgate.core.connections.connection_limits import ConditionLimits
from headgate.core.unload_limiter import UnloadLimiter

UNLOAD_KEYS = {
    "created_ns": "created_ns",
    "maxConcurrentUnload": "max_concurrent_unload",
    "namespaceBundleUnloadingTimeoutMs": "timeout_ms",
}
LIMIT_KEYS = {
    "maxPendingPublishRequestsPerConnection": "max_pending_publish_requests",
    "maxMessagePublishBufferSizeInMB": "max_publish_buffer_mib",
    "numIOThreads": "io_threads",
    "pulsarChannelPauseReceivingRequestsIfUnwritable": "pause_if_unwritable",
    "pulsarChannelPauseReceivingCooldownMs": "cooldown_ms",
    "pulsarChannelPauseReceivingCooldownRateLimitPermits": "cooldown_permits",
    "pulsarChannelPauseReceivingCooldownRateLimitPeriodMs": "cooldown_period_ms",
}


def build_subscribe(config: Mapping[str, Any]) -> SubscribeLimiter:
    """One limiter with a bucket per consumer."""
    return SubscribeLimiter(**config)


def subscribe_operations(limiter: SubscribeLimiter) -> TimedAdapter:
    """The operations of the kind on a limiter."""
    return OperationTable(
        {
            "advance": lambda at_ns, _: limiter.advance(at_ns),
            "attempt": lambda at_ns, given: limiter.attempt(given["host"], given["consumer"], given["id"], at_ns),
            "available": lambda at_ns, given: limiter.available(given["host"], given["consumer"], given["id"], at_ns),
            "update": lambda at_ns, given: limiter.update(given["rate"], given["period_s"], at_ns),
            "buckets": lambda at_ns, _: len(limiter.keys(at_ns)),
        }
    )


def build_unload(config: Mapping[str, Any]) -> UnloadLimiter:
    """One limiter, configured by broker.conf keys."""
    return UnloadLimiter(**{UNLOAD_KEYS[key]: value for key, value in config.items()})


def unload_operations(limiter: UnloadLimiter) -> TimedAdapter:
    """The operations of the kind on a limiter."""
    return OperationTable(
        {
            "advance": lambda at_ns, _: limiter.advance(at_ns),
            "unload": lambda at_ns, given: limiter.unload(given["duration_ns"], at_ns),
        }
    )


def build_conditions(config: Mapping[str, Any]) -> ConnectionConditions:
    """The connections of one broker, configured by broker.conf keys."""
    parameters = dict(config)
    connections, created_ns = parameters.pop("connections"), parameters.pop("created_ns")
    limits = ConditionLimits(**{LIMIT_KEYS[key]: value for key, value in parameters.items()})
    return ConnectionConditions(connections, created_ns=created_ns, limits=limits)


def conditions_operations(conditions: ConnectionConditions) -> TimedAdapter:
    """The operations of the kind on a broker's connections."""
    return OperationTable(
        {
            "advance": lambda at_ns, _: conditions.advance(at_ns),
            "start": lambda at_ns, given: conditions.start(given["connection"], given["bytes"], at_ns),
            "finish": lambda at_ns, given: conditions.finish(given["connection"], given["bytes"], at_ns),
            "writable": lambda at_ns, given: conditions.writable(given["connection"], given["value"], at_ns),
            "command": lambda at_ns, given: conditions.command(given["connection"], given["command"], at_ns),
            "join": lambda at_ns, given: conditions.join(given["connection"], given["thread"], at_ns),
            "close": lambda at_ns, given: conditions.close(given["connection"], at_ns),
            "throttled": lambda at_ns, given: conditions.throttled(given["connection"], at_ns),
            "auto_read": lambda at_ns, given: conditions.auto_read(given["connection"], at_ns),
        }
    )


KINDS: dict[str, CoreKind[Any]] = {
    "subscribe_limiter": CoreKind(build_subscribe, subscribe_operations),
    "unload_limiter": CoreKind(build_unload, unload_operations),
    "connection_conditions": CoreKind(build_conditions, conditions_operations),
}
