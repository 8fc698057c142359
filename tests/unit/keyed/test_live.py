"""The time that has certainly come in live input, at the bounds of what is live."""

import pytest

from headgate.conf import LiveSettings
from headgate.keyed.live import certain_us

LIVE = LiveSettings(live_within_ms=60_000, live_lag_ms=2000)
NOW, LAG, WITHIN, HELD = 10**12, 2_000_000, 60_000_000, 5_000_000


@pytest.mark.parametrize(
    ("high", "hold_back_ms", "idle", "busy"),
    [
        (NOW - WITHIN, 0, None, None),
        (NOW - WITHIN + 1, 0, NOW - LAG, NOW - WITHIN + 1 - LAG),
        (NOW, 0, NOW - LAG, NOW - LAG),
        (NOW + LAG, 0, NOW - LAG, NOW),
        (NOW + LAG + 1, 0, None, None),
        (NOW, 1000, NOW - LAG, NOW - LAG),
        (NOW, 5000, NOW - HELD, NOW - HELD),
        (NOW + HELD, 5000, NOW - HELD, NOW),
        (NOW + HELD + 1, 5000, None, None),
    ],
    ids=["recorded", "just live", "now", "ahead by the lag", "ahead by more", "held back less", "held back longer",
         "ahead by what is held back", "ahead by more than that"],
)  # fmt: skip
def test_the_time_is_the_clocks_or_the_newest_rows_less_the_lag_in_live_input_alone(high, hold_back_ms, idle, busy):
    told = [certain_us(LIVE, high, NOW, is_idle=is_idle, hold_back_ms=hold_back_ms) for is_idle in (True, False)]
    assert [idle, busy] == told
