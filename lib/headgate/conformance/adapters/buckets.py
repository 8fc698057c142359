"""Kinds token_bucket (both profiles) and clock (rate-limiters 2, 3.2, 13)."""

from collections.abc import Mapping
from typing import Any

from headgate.conformance.adapters.operations import CoreKind, OperationTable
from headgate.conformance.oracles.clock_policies import HighWaterClock, LeapTolerantClock
from headgate.conformance.oracles.pip322 import Pip322Bucket
from headgate.conformance.timed import TimedAdapter
from headgate.core.numbers import int64
from headgate.core.token_bucket import TokenBucket
from headgate.errors import InvalidArgument

Bucket = TokenBucket | Pip322Bucket
Clock = HighWaterClock | LeapTolerantClock


def build_bucket(config: Mapping[str, Any]) -> Bucket:
    """A bucket of the config's profile: `g3` (the default) or `pip322`, which has no debt bound and is not dynamic."""
    parameters = dict(config)
    profile = parameters.pop("profile", "g3")
    if profile == "g3":
        return TokenBucket(**parameters)
    if profile != "pip322":
        raise InvalidArgument(f"profile: got {profile!r}, allowed are g3, pip322")
    if parameters.pop("max_debt", None) is not None or parameters.pop("dynamic", False):
        raise InvalidArgument("max_debt, dynamic: profile pip322 has neither; leave them out")
    return Pip322Bucket(**parameters)


def bucket_operations(bucket: Bucket) -> TimedAdapter:
    """The operations that the bucket's profile has."""
    return pip322_operations(bucket) if isinstance(bucket, Pip322Bucket) else TokenBucketOperations(bucket)


class TokenBucketOperations(OperationTable):
    """Operations of section 2.3; `at_ns` is checked even where the operation does not read it."""

    def __init__(self, bucket: TokenBucket) -> None:
        super().__init__(
            {
                "consume": lambda _, given: bucket.consume(given["n"]),
                "consume_check": lambda at_ns, given: bucket.consume_check(given["n"], at_ns),
                "balance": lambda at_ns, _: bucket.balance_at(at_ns),
                "contains": lambda at_ns, _: bucket.contains(at_ns),
                "pause": lambda at_ns, given: bucket.pause_ns(at_ns, given.get("need")),
                "refund": lambda _, given: bucket.refund(given["n"]),
                "refill_due": lambda _, __: bucket.refill_due_ns(),
                "set_rate": lambda at_ns, given: bucket.set_rate(given["rate"], at_ns, given.get("period_ns")),
            }
        )

    def perform(self, op: str, at_ns: int, arguments: Mapping[str, Any]) -> Any:
        """Run `op` on the bucket."""
        return super().perform(op, int64(at_ns, "at_ns"), arguments)


def pip322_operations(bucket: Pip322Bucket) -> TimedAdapter:
    """The operations of the first generation: no need, no refund, no rate change."""

    def pause(at_ns: int, given: Mapping[str, Any]) -> int:
        if given.get("need") is not None:
            raise InvalidArgument("need: profile pip322 has no other target than its own; leave it out")
        return bucket.pause_ns(at_ns)

    return OperationTable(
        {
            "consume": lambda at_ns, given: bucket.consume(given["n"], at_ns),
            "consume_check": lambda at_ns, given: bucket.consume_check(given["n"], at_ns),
            "balance": lambda at_ns, _: bucket.balance_at(at_ns),
            "contains": lambda at_ns, _: bucket.contains(at_ns),
            "pause": pause,
        }
    )


def build_clock(config: Mapping[str, Any]) -> Clock:
    """A clock of the config's policy: `high_water` (the default) or `leap_tolerant`."""
    parameters = dict(config)
    policy = parameters.pop("policy", "high_water")
    if policy == "high_water":
        return HighWaterClock()
    if policy == "leap_tolerant":
        return LeapTolerantClock(**parameters)
    raise InvalidArgument(f"policy: got {policy!r}, allowed are high_water, leap_tolerant")


def clock_operations(clock: Clock) -> TimedAdapter:
    """The operation that the clock's policy has; `at_ns` is the source's reading."""
    if isinstance(clock, HighWaterClock):
        return OperationTable({"observe": lambda at_ns, _: clock.observe(at_ns)})
    return OperationTable({"update": lambda at_ns, given: clock.update(at_ns, waited=given["waited"])})


KINDS: dict[str, CoreKind[Any]] = {
    "token_bucket": CoreKind(build_bucket, bucket_operations),
    "clock": CoreKind(build_clock, clock_operations),
}
