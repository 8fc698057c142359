"""Of two producers in front of a broker: which messages count as those of a span of time."""

import pytest

from two_producers import Sent

SENT = Sent(offered=6, acknowledged_s=[4.9, 5.2, 6.0, 8.5, 9.25], latencies_s=[0.25, 0.2, 1.0, 0.5, 0.25])
"""Due at 4.65, 5, 5, 8 and 9 s, and one that was never acknowledged."""


@pytest.mark.parametrize(
    ("from_s", "to_s", "latencies"),
    [(5, 9, [0.2, 0.5, 1.0]), (4, 5, [0.25]), (9, 10, [0.25]), (0, 4, [])],
)
def test_a_message_belongs_to_when_it_was_due_not_to_when_it_was_acknowledged(from_s, to_s, latencies):
    assert SENT.of_due(from_s, to_s) == latencies
