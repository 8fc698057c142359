"""Slots, the state keys of a job: their names, which one a broker begins with, and which one a connection belongs to.

Consecutive slots lie in consecutive partitions, and brokers whose names differ by a number have consecutive slots, so
that the brokers of a cluster are shared out evenly. No engine.
"""

import re
import zlib
from collections.abc import Callable, Sequence
from functools import cache
from itertools import count

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headgate.arrow.columns import distinct, encoded
from headgate.core.kernels.columns import Ints

PARTITIONS = 840
"""Divided by every number from 1 to 8, and most to 30: the numbers of partitions that slots are spread over evenly."""
TRIES = 1024
SEED = 42
FIXED_SLOTS = 32
"""Of jobs whose conf does not set their number: what a checkpoint has in one slot stays there."""


@cache
def home_of(broker: str, slots: int) -> str:
    """The slot that a broker begins with."""
    return slot_keys(slots)[place_of(broker) % slots]


@cache
def slot_keys(slots: int) -> tuple[str, ...]:
    """A name for each slot, such that Spark puts slot `i` into partition `i mod n` of n, for divisors n of PARTITIONS.

    Spark takes a key's hash modulo the number of partitions; the number at a name's end is chosen for that.
    """
    return tuple(_slot_key(slot) for slot in range(slots))


def _slot_key(slot: int) -> str:
    for first in count(step=TRIES):
        names: list[str] = [f"slot-{slot:04}-{number:06}" for number in range(first, first + TRIES)]
        found = np.flatnonzero(_spark_hash(names) % PARTITIONS == slot % PARTITIONS)
        if len(found):
            return names[int(found[0])]
    raise AssertionError


def _spark_hash(names: list[str]) -> Ints:
    """Spark's hash of names of 16 ASCII characters: Murmur3 with 32 bits, as a signed number."""
    words = np.frombuffer("".join(names).encode(), "<u4").reshape(len(names), 4)
    state = np.full(len(names), SEED, np.uint32)
    for word in words.T:
        mixed = _rotated(word * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
        state = _rotated(state ^ mixed, 13) * np.uint32(5) + np.uint32(0xE6546B64)
    state ^= np.uint32(16)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        state = (state ^ (state >> np.uint32(shift))) * np.uint32(factor)
    state ^= state >> np.uint32(16)
    return state.view(np.int32).astype(np.int64)


def _rotated(values: NDArray[np.uint32], bits: int) -> NDArray[np.uint32]:
    return (values << np.uint32(bits)) | (values >> np.uint32(32 - bits))


def place_of(broker: str) -> int:
    """A number >= 0 for a broker: where names differ in one number (broker-3, 10.0.0.3), it differs by as much."""
    numbers = re.findall(r"[0-9]{1,9}", broker)
    return zlib.crc32(re.sub(r"[0-9]+", "", broker).encode()) + sum(map(int, numbers))


def slots_of_names(names: Sequence[str]) -> Ints:
    """The slot of each connection, by a name of its own among those of all brokers."""
    return np.array([zlib.crc32(name.encode()) % FIXED_SLOTS for name in names], np.int64)


def slots_of_marks(marks: pa.Table, name_of: Callable[[str, str], str]) -> Ints:
    """The slot of each mark's connection. name_of: its name among all, of its broker's and its own."""
    (brokers, of_broker), (names, of_name) = encoded(marks["broker"]), encoded(marks["connection"])
    first, codes = distinct(of_broker, of_name)
    pairs = zip(of_broker[first].tolist(), of_name[first].tolist(), strict=True)
    return slots_of_names([name_of(brokers[broker].as_py(), names[name].as_py()) for broker, name in pairs])[codes]
