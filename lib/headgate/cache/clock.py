"""How far time has come for the brokers of the entry cache's job, and how it goes on where no rows move it."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from headgate.conf import LiveSettings


@dataclass
class Clock:
    """The highest time of all rows that were heard of, and the brokers that wait for time to go on, with theirs."""

    high: datetime | None = None
    waiting: dict[str, datetime] = field(default_factory=dict)

    def take(self, progress: pa.Table) -> None:
        """PROGRESS of one batch."""
        for row in progress.to_pylist():
            if row["event_time"] is not None:
                self.high = max(self.high or row["event_time"], row["event_time"])
            self.waiting.pop(row["broker"], None)
            if row["is_open"]:
                self.waiting[row["broker"]] = row["watermark"]

    def due_tick(
        self, live: LiveSettings, now: datetime, hold_back: timedelta = timedelta(0), *, is_idle: bool
    ) -> datetime | None:
        """The time that has certainly come in live input, for brokers that bring nothing: less the lag that rows may
        have, or the longer time for which rows are held back, the wall clock if nothing more is there to be taken in,
        else the highest time of the others. None where nothing waits for it, or the input is not live.
        """
        within, lag = (timedelta(milliseconds=ms) for ms in (live.live_within_ms, live.live_lag_ms))
        lag = max(lag, hold_back)
        if self.high is None or not now - within < self.high <= now + lag:
            return None
        at = (now if is_idle else self.high) - lag
        return at if any(at > done for done in self.waiting.values()) else None


def now() -> datetime:
    """The wall clock."""
    return datetime.now(UTC)
