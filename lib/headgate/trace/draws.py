"""Randomness that never depends on what was drawn before: each block of events has its own stream."""

import math
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]

TABLE_SIZE = 4_096
SIZE_SIGMA = 0.7
MOST_MESSAGES = 1_000  # batchingMaxMessages of Pulsar's producers


def uniforms(seed: int, stream: int, block: int, columns: int, count: int) -> Floats:
    """Uniforms in [0, 1) as a (columns, count) array, the same for equal arguments in every numpy release.

    Raw Philox words are used because numpy promises their stability, and not that of its distributions.
    """
    words = np.random.Philox(key=[seed, block], counter=[0, 0, 0, stream]).random_raw(columns * count)
    return ((words >> np.uint64(11)).astype(np.float64) * 2.0**-53).reshape(columns, count)


def pick(uniform: Floats, table: Longs) -> Longs:
    """The quantile table's entry of each uniform."""
    return table[(uniform * len(table)).astype(np.int64)]


def batch_table(mean: float) -> Longs:
    """Quantiles of messages per publish: geometric from 1, with this mean (less what MOST_MESSAGES cuts off)."""
    if mean == 1:
        return np.ones(TABLE_SIZE, np.int64)
    stay = math.log1p(-1 / mean)
    counts = [math.ceil(math.log1p(-_middle(entry)) / stay) for entry in range(TABLE_SIZE)]
    return np.clip(np.array(counts, np.int64), 1, MOST_MESSAGES)


def size_table(median_bytes: int) -> Longs:
    """Quantiles of bytes per message: log-normal with this median."""
    normal = NormalDist(math.log(median_bytes), SIZE_SIGMA)
    sizes = [round(math.exp(normal.inv_cdf(_middle(entry)))) for entry in range(TABLE_SIZE)]
    return np.maximum(np.array(sizes, np.int64), 1)


def zipf_cumulative(topics: int, exponent: float) -> Floats:
    """Cumulative popularity of topics 0, 1, ...: topic i has weight (i + 1) ** -exponent; the last entry is 1."""
    cumulative = np.cumsum(np.arange(1, topics + 1, dtype=np.float64) ** -exponent)
    return np.asarray(cumulative / cumulative[-1], np.float64)


def _middle(entry: int) -> float:
    return (entry + 0.5) / TABLE_SIZE
