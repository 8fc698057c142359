"""How time goes on in live input where no row moves it: one rule for every job, in microseconds."""

from headgate.conf import LiveSettings


def lag_us(live: LiveSettings, hold_back_ms: int = 0) -> int:
    """How far behind the wall clock rows may come, and how far ahead of it those are that still count as live."""
    return max(live.live_lag_ms, hold_back_ms) * 1000


def certain_us(live: LiveSettings, high_us: int, now_us: int, *, is_idle: bool, hold_back_ms: int = 0) -> int | None:
    """The time that has certainly come, for sources that bring nothing. None where the input is not live.

    That is the wall clock if nothing more is there to be taken in (`is_idle`), else the highest time of the others,
    less the lag that rows may have, or the longer time for which they are held back. Input is live if its newest row is
    of these minutes (conf [live]) and not ahead of the wall clock by more than that lag: what is recorded, or waits to
    be taken in, is not moved by the wall clock.
    """
    may_lag_us = lag_us(live, hold_back_ms)
    if not now_us - live.live_within_ms * 1000 < high_us <= now_us + may_lag_us:
        return None
    return (now_us if is_idle else high_us) - may_lag_us
