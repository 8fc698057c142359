"""Delays as counts by size, which add up whatever order and parts they come in, and percentiles of them."""

from collections.abc import Mapping

import numpy as np

from headgate.core.kernels.columns import Ints

_PARTS_BITS = 6
_PARTS = 1 << _PARTS_BITS
_OCTAVES = 41
LONGEST_US = (1 << (_OCTAVES + _PARTS_BITS)) - 1
"""Four years; a longer delay counts as that."""
BUCKETS = (_OCTAVES + 1) * _PARTS
"""A bucket is a 64th of an octave of microseconds, or one microsecond below 64: percentiles are right to 1.6 %."""
_US_NS = 1000
_MS_US = 1000


def buckets_of(delay_ns: Ints) -> Ints:
    """The bucket of each delay; longer ones than LONGEST_US are in the last."""
    delay_us = np.minimum(-(-delay_ns // _US_NS), LONGEST_US)
    octave = np.maximum(np.frexp(delay_us.astype(np.float64))[1] - 1 - _PARTS_BITS, 0).astype(np.int64)
    buckets: Ints = octave * _PARTS + (delay_us >> octave)
    return buckets


def upper_us(bucket: int) -> int:
    """The longest delay of a bucket, us."""
    octave = max(bucket // _PARTS - 1, 0)
    part = bucket - octave * _PARTS
    return ((part + 1) << octave) - 1


def percentile_ms(counts: Mapping[int, int], percent: int) -> float | None:
    """The delay that so many percent of what is counted do not exceed, rounded up to the end of its bucket.

    None where nothing is counted. counts: by bucket. percent: 1 to 100.
    """
    rank = -(-sum(counts.values()) * percent // 100)
    reached = 0
    for bucket, count in sorted(counts.items()):
        reached += count
        if 0 < rank <= reached:
            return upper_us(bucket) / _MS_US
    return None
