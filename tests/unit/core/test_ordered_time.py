"""One ordered time (rate-limiters 3.1)."""

import pytest

from headgate.core.numbers import MAX
from headgate.core.ordered_time import enter
from headgate.errors import InvalidArgument


@pytest.mark.parametrize(("now_ns", "high_ns", "at_ns"), [(5, 3, 5), (3, 5, 5), (-7, -9, -7)])
def test_an_operation_acts_at_the_highest_time_seen(now_ns, high_ns, at_ns):
    assert enter(now_ns, high_ns) == at_ns


def test_only_an_instant_that_is_no_integer_of_64_bits_is_refused():
    with pytest.raises(InvalidArgument):
        enter(MAX + 1, 0)
