"""What an allocation accepts: one error for the first mistake, before anything is computed (resource-groups 16)."""

from collections.abc import Iterable, Sequence

from headgate.core.quota.rates import WEIGHT_MAX
from headgate.errors import BadAllocation

BAD_VALUE = "bad_value"
NEGATIVE_USAGE = "negative_usage"
BAD_QUOTA = "bad_quota"
BAD_WEIGHT = "bad_weight"
DUPLICATE_BROKER = "duplicate_broker"


def check_values(values: Iterable[object], *, unbounded_allowed: bool) -> None:
    """Each of `values`, in order, is an integer >= 0, or None where that stands for unbounded demand."""
    for row, value in enumerate(values):
        if value is None and unbounded_allowed:
            continue
        if type(value) is not int:
            allowed = "an integer or None" if unbounded_allowed else "an integer"
            raise BadAllocation(BAD_VALUE, f"value {row}: got {value!r}, allowed is {allowed}")
        if value < 0:
            raise BadAllocation(NEGATIVE_USAGE, f"value {row}: got {value}, allowed is 0 and above")


def check_quota(quota: object) -> None:
    """The quota is an integer >= 0, or None for not limited."""
    if quota is None:
        return
    if type(quota) is not int:
        raise BadAllocation(BAD_VALUE, f"quota: got {quota!r}, allowed is an integer or None")
    if quota < 0:
        raise BadAllocation(BAD_QUOTA, f"quota: got {quota}, allowed is 0 and above, or None for not limited")


def check_weights(weights: Iterable[object]) -> None:
    """Each of `weights` is an integer from 1 to 1000."""
    for row, weight in enumerate(weights):
        if type(weight) is not int or not 1 <= weight <= WEIGHT_MAX:
            raise BadAllocation(BAD_WEIGHT, f"weight {row}: got {weight!r}, allowed is an integer from 1 to 1000")


def check_ids(ids: Iterable[object]) -> None:
    """Each of `ids` is an integer and stands there once."""
    seen = set()
    for row, id_ in enumerate(ids):
        if type(id_) is not int:
            raise BadAllocation(BAD_VALUE, f"id {row}: got {id_!r}, allowed is an integer")
        if id_ in seen:
            raise BadAllocation(DUPLICATE_BROKER, f"id {row}: {id_} occurs twice; name each broker once")
        seen.add(id_)


def check_lengths(count: int, *columns: Sequence[object]) -> None:
    """Every column has `count` rows."""
    for column in columns:
        if len(column) != count:
            raise BadAllocation(BAD_VALUE, f"got {count} values beside {len(column)} weights or ids")
