"""Kinds publish_limiter and throttle_tracker (rate-limiters 4, 5)."""

from collections.abc import Mapping
from typing import Any

from headgate.conformance.adapters.operations import CoreKind, OperationTable, rate
from headgate.conformance.oracles.publish_limiters import PublishLimiters
from headgate.conformance.timed import TimedAdapter
from headgate.core.publish.throttle_tracker import MarkResult, ThrottleTracker


def build_limiters(config: Mapping[str, Any]) -> PublishLimiters:
    """A set of limiters and producers, registered in the order of the config's lists at its first instant."""
    parameters = dict(config)
    limiters, producers = parameters.pop("limiters"), parameters.pop("producers")
    limiter_set = PublishLimiters(**parameters)
    for limiter in limiters:
        limiter_set.add_limiter(
            limiter["name"],
            limiter["scope"],
            rate(limiter.get("messages")),
            rate(limiter.get("bytes")),
            config["created_ns"],
            on_rate_change=limiter.get("on_rate_change", "replace"),
        )
    for producer in producers:
        limiter_set.add_producer(
            producer["name"], producer["connection"], producer.get("limiters", []), config["created_ns"]
        )
    return limiter_set


def limiters_operations(limiters: PublishLimiters) -> TimedAdapter:
    """The operations of the kind on a set of limiters."""
    return OperationTable(
        {
            "advance": lambda at_ns, _: limiters.advance(at_ns),
            "publish": lambda at_ns, given: limiters.publish(
                given["producer"], given["messages"], given["bytes"], at_ns
            ),
            "update": lambda at_ns, given: limiters.update(
                given["limiter"], rate(given["messages"]), rate(given["bytes"]), at_ns
            ),
            "releases": lambda at_ns, _: limiters.releases(at_ns),
            "drain": lambda at_ns, given: limiters.drain(given["limiter"], at_ns),
            "balance": lambda at_ns, given: limiters.balance(given["limiter"], at_ns),
            "pause": lambda at_ns, given: limiters.pause_ns(given["limiter"], at_ns),
            "next_drain": lambda at_ns, given: limiters.next_drain_ns(given["limiter"], at_ns),
            "queue": lambda at_ns, given: limiters.queue(given["limiter"], at_ns),
            "marks": lambda at_ns, given: limiters.marks(given["connection"], at_ns),
            "auto_read": lambda at_ns, given: limiters.auto_read(given["connection"], at_ns),
            "metrics": lambda at_ns, given: limiters.metrics(given["connection"], at_ns),
            "attach": lambda at_ns, given: limiters.attach(given["producer"], given["limiter"], at_ns),
            "detach": lambda at_ns, given: limiters.detach(given["producer"], given["limiter"], at_ns),
            "close_connection": lambda at_ns, given: limiters.close_connection(given["connection"], at_ns),
        }
    )


def build_tracker(config: Mapping[str, Any]) -> ThrottleTracker:
    """One connection's tracker; time does not matter to it."""
    return ThrottleTracker(**config)


def tracker_operations(tracker: ThrottleTracker) -> TimedAdapter:
    """The operations of the kind on a tracker."""

    def outcome(result: MarkResult) -> dict[str, Any]:
        return {"result": str(result), "auto_read": tracker.auto_read, "total": tracker.total}

    return OperationTable(
        {
            "mark": lambda _, given: outcome(tracker.mark(given["type"])),
            "unmark": lambda _, given: outcome(tracker.unmark(given["type"])),
            "close": lambda _, __: tracker.close(),
            "counts": lambda _, __: tracker.counts(),
            "metrics": lambda _, __: tracker.metrics(),
        }
    )


KINDS: dict[str, CoreKind[Any]] = {
    "publish_limiter": CoreKind(build_limiters, limiters_operations),
    "throttle_tracker": CoreKind(build_tracker, tracker_operations),
}
