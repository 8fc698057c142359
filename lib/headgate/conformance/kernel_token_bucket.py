"""Kind token_bucket on the array form: what the readable bucket checks is checked here, the rest is the kernels'."""

from collections.abc import Mapping
from typing import Any

from headgate.conformance.adapters.operations import OperationTable
from headgate.conformance.timed import TimedAdapter, UnsupportedVectorError
from headgate.core.kernels import token_bucket as kernels
from headgate.core.numbers import at_least, int64
from headgate.core.token_bucket import TokenBucket
from headgate.errors import InvalidArgument


def build_array_form(config: Mapping[str, Any]) -> TimedAdapter:
    """The operations of a fresh array of one bucket. Raises UnsupportedVectorError for profile pip322."""
    parameters = dict(config)
    profile = parameters.pop("profile", "g3")
    if profile != "g3":
        raise UnsupportedVectorError(f"profile {profile} has no array form")
    return ArrayBucketOperations(kernels.pack([TokenBucket(**parameters)]))


class ArrayBucketOperations(OperationTable):
    """Operations of section 2.3 on the first bucket of an array; a refused one reaches no kernel."""

    def __init__(self, buckets: kernels.Buckets) -> None:
        super().__init__(
            {
                "consume": lambda _, given: kernels.consume(buckets, 0, at_least(0, given["n"], "n")),
                "consume_check": lambda at_ns, given: kernels.consume_check(
                    buckets, 0, at_least(0, given["n"], "n"), at_ns
                ),
                "balance": lambda at_ns, _: kernels.balance_at(buckets, 0, at_ns),
                "contains": lambda at_ns, _: kernels.contains(buckets, 0, at_ns),
                "pause": lambda at_ns, given: kernels.pause_ns(buckets, 0, at_ns, _wanted(buckets, given.get("need"))),
                "refund": lambda _, given: kernels.refund(buckets, 0, at_least(0, given["n"], "n")),
                "refill_due": lambda _, __: kernels.refill_due_ns(buckets, 0),
                "set_rate": lambda _, given: _set_rate(buckets, given["rate"], given.get("period_ns")),
            }
        )

    def perform(self, op: str, at_ns: int, arguments: Mapping[str, Any]) -> Any:
        """Run `op` on the bucket."""
        return super().perform(op, int64(at_ns, "at_ns"), arguments)


def _wanted(buckets: kernels.Buckets, need: int | None) -> int:
    return int(kernels.target(buckets, 0)) if need is None else at_least(0, need, "need")


def _set_rate(buckets: kernels.Buckets, rate: int, period_ns: int | None) -> None:
    if not buckets["dynamic"][0]:
        raise InvalidArgument("set_rate: the bucket is not dynamic; replace it with a new one")
    new_period_ns = int(buckets["period_ns"][0]) if period_ns is None else at_least(1, period_ns, "period_ns")
    kernels.set_rate(buckets, 0, at_least(1, rate, "rate"), new_period_ns)
