"""Delays by size: a bucket is narrow, and percentiles are those of the sorted delays to its width."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.replay.histogram import BUCKETS, LONGEST_US, buckets_of, percentile_ms, upper_us

delays_us = st.integers(1, 25 * 86_400 * 1_000_000)


@given(delays_us)
def test_a_bucket_ends_at_most_a_sixty_fourth_above_a_delay_in_it(delay_us):
    bucket = int(buckets_of(np.array([delay_us * 1000]))[0])
    assert bucket < BUCKETS
    assert delay_us <= upper_us(bucket) <= delay_us * (1 + 1 / 64)


@given(st.lists(delays_us, min_size=2, max_size=2))
def test_longer_delays_are_in_no_lower_bucket(pair):
    low, high = buckets_of(np.array(sorted(pair)) * 1000).tolist()
    assert low <= high


def test_longer_delays_than_all_buckets_are_in_the_last_ones():
    assert [BUCKETS - 1] * 2 == buckets_of(np.array([2**62, LONGEST_US * 1000])).tolist()


@given(st.lists(delays_us, min_size=1, max_size=50), st.sampled_from([1, 50, 99, 100]))
def test_a_percentile_is_the_delay_at_its_rank(found, percent):
    counts = Counter(buckets_of(np.array(found) * 1000).tolist())
    exact = sorted(found)[-(-len(found) * percent // 100) - 1]
    assert percentile_ms(counts, percent) == pytest.approx(exact / 1000, rel=1 / 64)


def test_nothing_delayed_has_no_percentile():
    assert percentile_ms({}, 50) is None
