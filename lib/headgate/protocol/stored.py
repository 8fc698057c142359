"""What is kept of the machines behind one key, as columns: a row a connection, producer, limiter and so on."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from headgate.core.kernels.protocol.types import LIMITER

Columns = dict[str, NDArray[Any]]

LIMITER_FIELDS = tuple(LIMITER.names or ())
_NAMES = {
    "connections": (
        *("now_ms", "off_at_ms", "stood_ms", "issued", "seq", "due_ms", "closed_ms", "heard_ms"),
        *("settings", "is_open", "supports"),
    ),
    "producers": ("connection", "id", "topic", "is_open", "phase", "reason", "end_ms"),
    "limiters": ("producer", "code", *LIMITER_FIELDS),
    "ids": ("producer", "request_id", "due_ms"),
    "queued": ("connection", "request_id"),
    "conditions": ("connection", "reason", "marked", "released", "begun", "is_set"),
    "named": ("connection", "topic", "name", "producer"),
}
_UNSIGNED = {("producers", "end_ms"), ("ids", "due_ms")}


def no_machines() -> dict[str, Columns]:
    """The columns of STORED by table, without rows. `core.kernels.protocol.types` says what is in them.

    connection, producer: rows of those tables. topic, name: places in the state's names. settings: in its settings.
    limiters: those that are not as they began; code: the reason. Rows are in the order of connections; producers
    by id, ids by due time, producer and number, queued by arrival. A producer that is not open is there for its name.
    """
    return {table: {name: np.empty(0, type_of(table, name)) for name in names} for table, names in _NAMES.items()}


def type_of(table: str, name: str) -> type[np.int64] | type[np.uint64]:
    """The type of a column: ends and deadlines may be above 2^63-1."""
    return np.uint64 if (table, name) in _UNSIGNED else np.int64
