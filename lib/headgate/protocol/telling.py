"""What the kernels of the machines told, as rows for the tables (throttle-protocol 6, 14)."""

import numpy as np
import pyarrow as pa

from headgate.arrow.schemas import DEAD_LETTERS
from headgate.core.kernels.columns import Ints, Records
from headgate.core.kernels.protocol.types import COMMAND, NONE
from headgate.core.numbers import MAX
from headgate.core.protocol.broker import broker_metrics as metrics
from headgate.core.protocol.broker.outputs import BadInput, Cause, CommandKind
from headgate.core.protocol.counters import Labels
from headgate.core.protocol.reasons import Reason
from headgate.protocol.feeding import KINDS, Row
from headgate.protocol.operations import Operations
from headgate.protocol.parse import written
from headgate.protocol.schemas import COUNTS, DECISIONS
from headgate.protocol.step import Result, StepOutput

_KINDS = pa.array(["command", "pause", "resume"])
_COMMANDS = pa.array([str(kind) for kind in CommandKind])
_CAUSES = pa.array([str(cause) for cause in Cause])
_ERRORS = [str(error) for error in BadInput]
_REASONS = Reason.BrokerProduceQuotaExceeded + 1
"""Reasons that are told."""
_COUNTERS: list[tuple[str, Labels]] = [
    *((metrics.CONNECTION_LIMIT, ((metrics.OPERATION, operation),)) for operation in metrics.OPERATIONS),
    *((metrics.RECEIPTS, (("outcome", outcome),)) for outcome in metrics.OUTCOMES),
    (metrics.READS_OFF, ()),
    *((metrics.FALLBACKS, (("cause", str(cause)),)) for cause in list(Cause)[:-1]),
    *((metrics.REJECTED, (("error", error),)) for error in _ERRORS),
    *(
        (metrics.COMMANDS, (("kind", str(kind)), ("reason", Reason(code).name)))
        for kind in CommandKind
        for code in range(_REASONS)
    ),
]
"""Names and labels of the counters, as `core.kernels.protocol.types` numbers them."""
_COUNTER_NAMES = pa.array([name for name, _ in _COUNTERS])
_COUNTER_LABELS = pa.array([labels for _, labels in _COUNTERS], COUNTS.field("labels").type)
_BREACH_KEYS = pa.array(["pulsar.publish.rate_limiter", "pulsar.topic"])
_LIMITERS = pa.array([metrics.LIMITERS.get(reason) for reason in Reason])


def told_of(rows: pa.Table, fed: Operations, result: Result) -> StepOutput:
    """Rows for the tables. `rows`: those that were fed, for dead letters."""
    return StepOutput(decisions_of(result.decisions, fed), _counts(result, fed), _letters(rows, fed, result.letters))


def decisions_of(told: Records, fed: Operations) -> pa.Table:
    """DECISIONS, in the order of each connection's `seq`."""
    is_command, pause_ms = told["kind"] == COMMAND, told["pause_ms"]
    until_ms = np.where(pause_ms > MAX - told["at_ms"], MAX, told["at_ms"] + np.maximum(pause_ms, 0))
    columns = {
        "connection": fed.connection.take(pa.array(told["connection"])),
        "kind": _KINDS.take(pa.array(told["kind"])),
        "producer_id": _or_null(told["producer"]),
        "topic": _taken(fed.names, told["topic"]),
        "reason": _or_null(told["reason"], pa.int32()),
        "pause_for_millis": _or_null(pause_ms),
        "until_ms": pa.array(until_ms, mask=~is_command | (pause_ms == 0)),
        "command_kind": _taken(_COMMANDS, told["command"]),
        "cause": _taken(_CAUSES, told["cause"]),
    }
    return pa.table([columns[name] if name in columns else _or_null(told[name]) for name in DECISIONS.names], DECISIONS)


def _or_null(values: Ints, of_type: pa.DataType | None = None) -> pa.Array:
    return pa.array(values, of_type or pa.int64(), mask=values == NONE)


def _taken(values: pa.StringArray, places: Ints) -> pa.StringArray:
    return values.take(_or_null(places))


def counters_of(result: Result, fed: Operations) -> tuple[Ints, pa.Array, pa.Array, pa.Array]:
    """What counters rose by: connection's place, name, labels, value; each once a connection."""
    counts, breaches = result.counts, result.breaches
    keys, sums = np.unique(_breach_codes(breaches, len(fed.names)), return_counts=True)
    pairs, limiter = np.divmod(keys, _REASONS)
    connection, topic = np.divmod(pairs, max(1, len(fed.names)))
    labels = pa.concat_arrays([_COUNTER_LABELS.take(pa.array(counts["counter"])), _breach_labels(limiter, topic, fed)])
    names = pa.concat_arrays(
        [_COUNTER_NAMES.take(pa.array(counts["counter"])), pa.repeat(pa.scalar(metrics.PUBLISH_LIMIT), len(keys))]
    )
    return np.append(counts["connection"], connection), names, labels, pa.array(np.append(counts["value"], sums))


def _breach_codes(breaches: Records, topics: int) -> Ints:
    codes: Ints = (breaches["connection"] * max(1, topics) + breaches["topic"]) * _REASONS + breaches["reason"]
    return codes


def _breach_labels(limiter: Ints, topic: Ints, fed: Operations) -> pa.Array:
    values = pa.concat_arrays([_LIMITERS, fed.names])
    items = np.stack([limiter, topic + len(_LIMITERS)], axis=1).ravel()
    keys = _BREACH_KEYS.take(pa.array(np.tile([0, 1], len(limiter)), pa.int64()))
    offsets = pa.array(np.arange(0, 2 * len(limiter) + 1, 2), pa.int32())
    return pa.MapArray.from_arrays(offsets, keys, values.take(pa.array(items)))


def _counts(result: Result, fed: Operations) -> pa.Table:
    places, *columns = counters_of(result, fed)
    return pa.table([fed.connection.take(pa.array(places)), *columns], COUNTS)


def _letters(rows: pa.Table, fed: Operations, letters: Records) -> pa.Table:
    refused = [
        *((place, str(BadInput.UNKNOWN_CONNECTION)) for place in fed.of_no_connection.tolist()),
        *((place, None) for place in fed.of_no_kind.tolist()),
        *((place, _ERRORS[error]) for place, error, _ in letters.tolist()),
    ]
    told = rows.take(pa.array([place for place, _ in refused], pa.int64())).to_pylist()
    found = [dead_letter(row, reason or unknown_kind(row)) for row, (_, reason) in zip(told, refused, strict=True)]
    return pa.Table.from_pylist(found, DEAD_LETTERS)


def unknown_kind(row: Row) -> str:
    """What is wrong with a row whose kind is none."""
    return f"unknown_kind: got {row['kind']!r}, allowed are {', '.join(KINDS)}"


def dead_letter(row: Row, reason: str) -> Row:
    """DEAD_LETTERS of a row of ROWS."""
    return {"reason": reason, "raw": written(row), "source": "marks" if row["by_marks"] else "inputs"}
