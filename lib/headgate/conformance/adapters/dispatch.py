"""Kinds dispatch_limiter and classic_window (rate-limiters 6, 7)."""

from collections.abc import Mapping
from typing import Any

from headgate.conformance.adapters.operations import CoreKind, OperationTable, rate
from headgate.conformance.oracles.dispatch_limiter import DispatchLimiter
from headgate.conformance.timed import TimedAdapter
from headgate.core.dispatch.classic_window import ClassicWindow


def build_limiter(config: Mapping[str, Any]) -> DispatchLimiter:
    """A limiter whose levels are examined in the order of the config's list."""
    parameters = dict(config)
    levels = parameters.pop("levels")
    limiter = DispatchLimiter(**parameters)
    for level in levels:
        options = {name: value for name, value in level.items() if name not in {"name", "messages", "bytes"}}
        messages, bytes_ = rate(level.get("messages")), rate(level.get("bytes"))
        limiter.add_level(level["name"], messages, bytes_, config["created_ns"], **options)
    return limiter


def limiter_operations(limiter: DispatchLimiter) -> TimedAdapter:
    """The operations of the kind on a limiter."""
    return OperationTable(
        {
            "advance": lambda at_ns, _: limiter.advance(at_ns),
            "available": lambda at_ns, given: limiter.available(given["level"], at_ns),
            "effective": lambda at_ns, given: limiter.effective(given["level"], at_ns),
            "may_dispatch": lambda at_ns, given: limiter.may_dispatch(at_ns, caught_up=given.get("caught_up", False)),
            "read_limits": lambda at_ns, given: limiter.read_limits(
                given["messages"], given["bytes"], at_ns, caught_up=given.get("caught_up", False)
            ),
            "dispatched": lambda at_ns, given: limiter.dispatched(
                given["messages"],
                given["bytes"],
                at_ns,
                entries=given.get("entries"),
                caught_up=given.get("caught_up", False),
            ),
            "reserve": lambda at_ns, given: limiter.reserve(given["messages"], given["bytes"], at_ns),
            "settle": lambda at_ns, given: limiter.settle(
                given["granted"], given["messages"], given["bytes"], at_ns, entries=given.get("entries")
            ),
            "publish_rate": lambda at_ns, given: limiter.publish_rate(
                given["level"], given["messages"], given["bytes"], at_ns
            ),
            "update": lambda at_ns, given: limiter.update(
                given["level"],
                rate(given["messages"]),
                rate(given["bytes"]),
                at_ns,
                period_s=given.get("period_s", 1),
                relative=given.get("relative", False),
            ),
            "try_acquire": lambda at_ns, given: limiter.try_acquire(
                given["level"], given["messages"], given["bytes"], at_ns
            ),
        }
    )


def build_window(config: Mapping[str, Any]) -> ClassicWindow:
    """One window."""
    return ClassicWindow(**config)


def window_operations(window: ClassicWindow) -> TimedAdapter:
    """The operations of the kind; what attributes tell is read after the renewals that are due."""

    def attribute(name: str, at_ns: int) -> Any:
        window.advance(at_ns)
        return getattr(window, name)

    return OperationTable(
        {
            "advance": lambda at_ns, _: window.advance(at_ns),
            "try": lambda at_ns, given: window.try_acquire(given["n"], at_ns),
            "available": lambda at_ns, _: window.available(at_ns),
            "set_rate": lambda at_ns, given: window.set_rate(given["permits"], given["period_ns"], at_ns),
            "set_updater": lambda at_ns, given: window.set_updater(given["permits"], at_ns),
            "next_renewal": lambda at_ns, _: attribute("next_renewal_ns", at_ns),
            "renewals": lambda at_ns, _: attribute("renewals", at_ns),
            "close": lambda at_ns, _: window.close(at_ns),
            "closed": lambda at_ns, _: attribute("closed", at_ns),
        }
    )


KINDS: dict[str, CoreKind[Any]] = {
    "dispatch_limiter": CoreKind(build_limiter, limiter_operations),
    "classic_window": CoreKind(build_window, window_operations),
}
