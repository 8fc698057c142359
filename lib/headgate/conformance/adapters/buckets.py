"""Kinds token_bucket (both profiles) and clock (rate-limiters 2, 3.2, 13)."""

from collections.abc import Mapping
from typing import Any

from headgate.conformance.adapters.operations import OperationTable
from headgate.conformance.timed import TimedAdapter, TimedFactory
from headgate.core.clock import HighWaterClock, LeapTolerantClock
from headgate.core.numbers import int64
from headgate.core.pip322 import Pip322Bucket
from headgate.core.token_bucket import TokenBucket
from headgate.errors import InvalidArgument


def token_bucket(config: Mapping[str, Any]) -> TimedAdapter:
    """A bucket of the config's profile, `g3` by default."""
    parameters = dict(config)
    profile = parameters.pop("profile", "g3")
    if profile == "g3":
        return TokenBucketAdapter(TokenBucket(**parameters))
    if profile == "pip322":
        return pip322_bucket(parameters)
    raise InvalidArgument(f"profile: got {profile!r}, allowed are g3, pip322")


class TokenBucketAdapter(OperationTable):
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


def pip322_bucket(parameters: dict[str, Any]) -> TimedAdapter:
    """A bucket of the first generation: no debt bound, not dynamic, no need, no refund, no rate change."""
    if parameters.pop("max_debt", None) is not None or parameters.pop("dynamic", False):
        raise InvalidArgument("max_debt, dynamic: profile pip322 has neither; leave them out")
    bucket = Pip322Bucket(**parameters)

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


def clock(config: Mapping[str, Any]) -> TimedAdapter:
    """A clock of the config's policy, `high_water` by default; `at_ns` is the source's reading."""
    parameters = dict(config)
    policy = parameters.pop("policy", "high_water")
    if policy == "high_water":
        high_water = HighWaterClock()
        return OperationTable({"observe": lambda at_ns, _: high_water.observe(at_ns)})
    if policy == "leap_tolerant":
        tolerant = LeapTolerantClock(**parameters)
        return OperationTable({"update": lambda at_ns, given: tolerant.update(at_ns, waited=given["waited"])})
    raise InvalidArgument(f"policy: got {policy!r}, allowed are high_water, leap_tolerant")


FACTORIES: dict[str, TimedFactory] = {"token_bucket": token_bucket, "clock": clock}
