"""The rules run once more over what was charged to a limiter in each second."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from headgate.core.numbers import SECOND_NS
from headgate.core.token_bucket import TokenBucket
from headgate.why.charged import Charged, runs_out, smallest_rate, sure_rate

AMOUNTS = st.lists(st.integers(0, 300), min_size=1, max_size=12).map(np.array)


@pytest.mark.parametrize(
    ("amounts", "rate", "expected"),
    [
        ([0], 1, False),
        ([10], 10, False),
        ([20], 10, True),
        ([10, 10, 10, 10], 10, False),
        ([19, 10, 10, 10], 10, True),
        ([9, 11, 9, 11], 10, False),
        ([15, 15, 15], 10, True),
        ([20, 0, 0, 20], 11, False),
        ([30, 0, 0, 0], 10, True),
    ],
)
def test_a_bucket_runs_out_when_more_comes_than_its_rate_and_what_it_saved_up(amounts, rate, expected):
    assert expected is runs_out(np.array(amounts), rate)


@given(AMOUNTS)
def test_the_smallest_rate_is_the_first_that_does_not_run_out(amounts):
    rate = smallest_rate(amounts)

    assert not runs_out(amounts, rate)
    assert rate == 1 or runs_out(amounts, rate - 1)


@given(AMOUNTS, st.data())
def test_a_sure_rate_never_runs_out_however_publishes_fall_within_their_seconds(amounts, data):
    assume(amounts.any())
    bucket = TokenBucket(sure_rate(amounts), created_ns=0)
    publishes = []
    for second, amount in enumerate(amounts.tolist()):
        left = amount
        while left:
            size = data.draw(st.integers(1, left))
            place_ns = data.draw(st.sampled_from([0, SECOND_NS - 1]) | st.integers(0, SECOND_NS - 1))
            publishes.append((second * SECOND_NS + place_ns, size))
            left -= size

    assert all(bucket.consume_check(size, at_ns) for at_ns, size in sorted(publishes))


@given(AMOUNTS)
def test_a_sure_rate_is_at_least_the_smallest_and_not_twice_what_comes_in_two_seconds(amounts):
    two = max(amounts[place : place + 2].sum() for place in range(len(amounts)))

    assert smallest_rate(amounts) <= sure_rate(amounts) <= 1.02 * two + 2


def test_amounts_begin_with_the_first_second_and_silent_ones_are_zero():
    rows = {"second_s": [7, 9, 9], "topic": ["a", "a", "b"], "broker": ["x"] * 3}
    charged = Charged(
        pa.table(rows | {f"{what}_{unit}": [1, 2, 3] for what in ("came", "let_in") for unit in ("messages", "bytes")})
    )

    assert [1, 0, 5] == charged.amounts("messages").tolist()
    assert [1, 0, 2] == charged.but(["b"]).amounts("messages").tolist()
    assert [5] == charged.since(8).amounts("bytes").tolist()
    assert [] == charged.of("broker", "y").amounts("messages").tolist()
    assert [("a", 3, 3), ("b", 3, 3)] == sorted(charged.sums("messages"))
