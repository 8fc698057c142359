"""Columns of state as objects of the core, and back: what the readable forms of publishes and dispatches share."""

from collections.abc import Sequence

import numpy as np

from headgate.core.group_waits import OpenWait
from headgate.core.kernels.columns import Ints
from headgate.core.kernels.publish.types import TOLD
from headgate.core.token_bucket import TokenBucket


def columns(rows: Sequence[tuple[int, ...]], width: int) -> list[Ints]:
    """The columns of rows of `width` numbers."""
    return list(np.ascontiguousarray(np.array(rows, np.int64).reshape(-1, width).T))


def read_bucket(bucket: TokenBucket | None, limiters: dict[str, Ints], place: tuple[int, int]) -> None:
    """Set a bucket to what the columns hold at `place`: position and dimension."""
    if bucket is not None:
        bucket.balance = int(limiters["balance"][place])
        bucket.last_ns = int(limiters["last_ns"][place])
        bucket.remainder_ns = int(limiters["remainder_ns"][place])


def write_bucket(bucket: TokenBucket | None, limiters: dict[str, Ints], place: tuple[int, int]) -> None:
    """The other way round; zeros without a bucket."""
    limiters["balance"][place] = 0 if bucket is None else bucket.balance
    limiters["last_ns"][place] = 0 if bucket is None else bucket.last_ns
    limiters["remainder_ns"][place] = 0 if bucket is None else bucket.remainder_ns


def open_waits(limiters: dict[str, Ints]) -> dict[int, OpenWait]:
    """The waits that limiters or levels are in, by position."""
    waits = {}
    for position in np.flatnonzero(limiters["cause"]).tolist():
        cause, held_ns = int(limiters["cause"][position]), int(limiters["held_ns"][position])
        waits[position] = OpenWait(cause & ~TOLD, held_ns, is_told=cause & TOLD != 0)
    return waits


def write_waits(waits: dict[int, OpenWait], limiters: dict[str, Ints]) -> None:
    """The other way round; 0 without a wait."""
    limiters["cause"][:] = limiters["held_ns"][:] = 0
    for position, wait in waits.items():
        limiters["cause"][position] = wait.causes + TOLD * wait.is_told
        limiters["held_ns"][position] = wait.since_ns
