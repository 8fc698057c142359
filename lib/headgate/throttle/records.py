"""Columns of state as records of the kernels, and back: what the array forms of publishes and dispatches share."""

import numpy as np

from headgate.arrow.columns import BUCKET_FIELDS
from headgate.core.kernels.columns import Ints, Records
from headgate.core.kernels.dispatch.types import DispatchArrays
from headgate.core.kernels.publish.publish_limiter import debt_floors
from headgate.core.kernels.publish.types import ADMISSION_ROWS, SET_LIMIT, WAIT_ROWS, DomainArrays, Operations
from headgate.core.kernels.token_bucket import BUCKET
from headgate.throttle.form import Admissions, Waits


def buckets_of(columns: dict[str, Ints], max_debt_ms: int) -> Records:
    """BUCKET by limiter and dimension, with floors, of the columns of limiters or levels."""
    buckets = np.zeros(columns["rate"].shape, BUCKET)
    for name in BUCKET_FIELDS:
        buckets[name] = columns[name]
    buckets["floor"] = debt_floors(columns["rate"], max_debt_ms)
    return buckets


def columns_of(arrays: DomainArrays | DispatchArrays, names: dict[str, Ints]) -> dict[str, Ints]:
    """The columns of these names: of buckets and of what else belongs to a limiter or level."""
    return {
        name: (arrays.buckets if name in (BUCKET.names or ()) else arrays.limiters)[name].astype(np.int64)
        for name in names
    }


def floors_of(operations: Operations, max_debt_ms: int) -> Ints:
    """Debt bounds of the new rates, by operation; other operations than SET_LIMIT have none."""
    floors = np.zeros((len(operations.at_ns), 2), np.int64)
    changes = np.flatnonzero(operations.kind == SET_LIMIT)
    rates = np.stack([operations.messages[changes], operations.bytes[changes]], axis=1)
    floors[changes] = debt_floors(rates, max_debt_ms)
    return floors


def waits_of(arrays: DomainArrays | DispatchArrays) -> Waits:
    """The waits of groups that the kernel told."""
    waits = arrays.group_waits[: arrays.used[WAIT_ROWS]]
    return Waits._make(waits[name].copy() for name in Waits._fields)


def admissions_of(arrays: DomainArrays) -> Admissions:
    """The arrivals that the kernel let in."""
    admissions = arrays.admissions[: arrays.used[ADMISSION_ROWS]]
    return Admissions._make(admissions[name].copy() for name in Admissions._fields)
