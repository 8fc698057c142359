"""Which slot a connection belongs to, by its name: many connections are one call. No engine."""

import zlib
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from headgate.core.kernels.columns import Ints
from headgate.throttle.columns import distinct, encoded

SLOTS = 32
"""The same for every job: what a checkpoint has in one slot stays there."""


def slots_of_names(names: Sequence[str]) -> Ints:
    """The slot of each connection, by a name of its own among those of all brokers."""
    return np.array([zlib.crc32(name.encode()) % SLOTS for name in names], np.int64)


def slots_of_marks(marks: pa.Table, name_of: Callable[[str, str], str]) -> Ints:
    """The slot of each mark's connection. name_of: its name among all, of its broker's and its own."""
    (brokers, of_broker), (names, of_name) = encoded(marks["broker"]), encoded(marks["connection"])
    first, codes = distinct(of_broker, of_name)
    pairs = zip(of_broker[first].tolist(), of_name[first].tolist(), strict=True)
    return slots_of_names([name_of(brokers[broker].as_py(), names[name].as_py()) for broker, name in pairs])[codes]
