"""Rows of `marks` and `topic_usage` from what a form returned."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.runs import with_times
from headgate.arrow.schemas import TIMESTAMP
from headgate.core.kernels.publish.types import MARK
from headgate.core.numbers import SECOND_NS
from headgate.core.publish.publish_limiter import Scope
from headgate.core.publish.throttle_tracker import SCOPE_TYPES
from headgate.core.usage import USAGE_COLUMNS
from headgate.throttle.form import Result
from headgate.throttle.keys import scopes_and_names
from headgate.throttle.schemas import MARKS, OFFERED_ONLY, TOPIC_USAGE
from headgate.throttle.state import DomainState

_SCOPES = pa.array([str(scope) for scope in Scope])
_TYPES = pa.array([str(SCOPE_TYPES[scope]) for scope in Scope])


def marks_table(
    domain: DomainState, result: Result, producer_name: pa.StringArray, producer_connection: pa.StringArray
) -> pa.Table:
    """MARKS, equal ones as one row (arrow.runs)."""
    n = len(result.mark_at_ns)
    keys = domain.keys.take(pa.array(result.mark_limiter))
    scopes, names = scopes_and_names(keys, domain.broker)
    rows = pa.table(
        [
            result.mark_at_ns,
            pa.array(result.mark_at_ns // 1000, pa.int64()).cast(TIMESTAMP),
            pa.repeat(domain.broker, n),
            domain.keys.take(pa.array(result.mark_topic)),
            producer_name.take(pa.array(result.mark_producer)),
            producer_connection.take(pa.array(result.mark_producer)),
            scopes,
            names,
            _TYPES.take(pc.index_in(scopes, value_set=_SCOPES)),
            np.where(result.mark_action == MARK, "mark", "unmark"),
            pa.array(result.mark_seq, mask=result.mark_action != MARK),
            *_balances_and_rates(result),
        ],
        MARKS,
    )
    return with_times(rows, result.mark_times)


def _balances_and_rates(result: Result) -> Iterator[pa.Int64Array]:
    """By dimension; null where it is not limited, and on unmarks. A rate of 0 is a group that lets nothing pass."""
    for balance, rate in zip(result.mark_balance.T, result.mark_rate.T, strict=True):
        is_unlimited = rate == 0
        yield pa.array(balance, mask=is_unlimited)
        yield pa.array(np.maximum(rate, 0), mask=is_unlimited)


def usage_table(domain: DomainState, result: Result, *, offered: bool) -> pa.Table:
    """Counts that only offered traffic has are null in admitted traffic."""
    n = len(result.closed_topic)
    by_column = np.ascontiguousarray(result.closed_counts.T)
    counts = [
        pa.nulls(n, pa.int64()) if column in OFFERED_ONLY and not offered else pa.array(by_column[column])
        for column in range(USAGE_COLUMNS)
    ]
    return pa.table(
        [
            pa.array(result.closed_second * (SECOND_NS // 1000), pa.int64()).cast(TIMESTAMP),
            pa.repeat(domain.broker, n),
            domain.keys.take(pa.array(result.closed_topic)),
            *counts,
        ],
        TOPIC_USAGE,
    )
