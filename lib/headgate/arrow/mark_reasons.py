"""Why a mark holds what it holds, of many rows of `marks` at once. `core/reasons.py` has the closed list."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headgate.core.publish.publish_limiter import Scope
from headgate.core.reasons import CONDITIONS, HeldReason, publish_reason

UNITS = MESSAGES, BYTES = "messages", "bytes"
_PUBLISH = {f"{scope} {unit}": publish_reason(scope, unit) for scope in Scope for unit in UNITS}


def unit_of(marks: pa.Table) -> pa.ChunkedArray:
    """The unit of which a mark's limiter has none left; of both, that which takes longer to come back.

    `messages` where there are no balances. quota/usage/topic_query.RAN_OUT says the same in SQL.
    """
    (messages, messages_per_s), (bytes_, bytes_per_s) = (
        (marks[f"{unit}_balance"].cast(pa.float64()), marks[f"{unit}_per_s"]) for unit in UNITS
    )
    bytes_later = pc.less(pc.multiply(bytes_, messages_per_s), pc.multiply(messages, bytes_per_s))
    alone_or_later = pc.or_(pc.fill_null(pc.greater(messages, 0), True), pc.fill_null(bytes_later, False))
    return pc.if_else(pc.and_(pc.fill_null(pc.less_equal(bytes_, 0), False), alone_or_later), BYTES, MESSAGES)


def reasons_of(marks: pa.Table) -> Any:
    """The HeldReason of each row whose action is `mark`; of others it has no meaning.

    A group blocks if either of its rates is 0.
    """
    publish = _looked_up(_PUBLISH, pc.binary_join_element_wise(marks["scope"], unit_of(marks), " "))
    is_zero = (pc.fill_null(pc.equal(marks[f"{unit}_per_s"], 0), False) for unit in UNITS)
    is_blocked = pc.and_(pc.fill_null(pc.equal(marks["scope"], str(Scope.GROUP)), False), pc.or_(*is_zero))
    of_limiter = pc.if_else(is_blocked, str(HeldReason.GROUP_BLOCKED), publish)
    return pc.coalesce(of_limiter, _looked_up(CONDITIONS, marks["type"]))


def _looked_up(reasons: Mapping[str, HeldReason], keys: Any) -> Any:
    """Null for a key that is not in `reasons`."""
    places = pc.index_in(keys, value_set=pa.array(reasons, pa.string()))
    return pa.array(map(str, reasons.values()), pa.string()).take(places)
