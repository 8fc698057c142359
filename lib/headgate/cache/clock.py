"""How far time has come for the brokers of the entry cache's job, and how it goes on where no rows move it."""

from dataclasses import dataclass, field
from datetime import UTC, datetime

import pyarrow as pa

from headgate.cache.control import MICROSECOND
from headgate.conf import LiveSettings
from headgate.keyed.live import certain_us

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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

    def due_tick(self, live: LiveSettings, now: datetime, hold_back_ms: int = 0, *, is_idle: bool) -> datetime | None:
        """`keyed.live.certain_us` where something waits for it. None where nothing does, or the input is not live."""
        if self.high is None:
            return None
        certain = certain_us(live, _us(self.high), _us(now), is_idle=is_idle, hold_back_ms=hold_back_ms)
        if certain is None or not any(certain > _us(done) for done in self.waiting.values()):
            return None
        return _EPOCH + certain * MICROSECOND


def _us(at: datetime) -> int:
    return (at - _EPOCH) // MICROSECOND


def now() -> datetime:
    """The wall clock."""
    return datetime.now(UTC)
