"""How far time has come for the protocol's keys, and how it goes on where nothing comes that would move it."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from headgate.conf import LiveSettings
from headgate.protocol.state import NEVER


@dataclass
class Clock:
    """The highest time that any key heard of, the watermark, and whether anything waits for it to go on."""

    high_ms: int = NEVER
    done_ms: int = NEVER
    is_open: bool = False

    def take(self, progress: pa.Table) -> None:
        """PROGRESS of all keys, of one batch."""
        if len(progress):
            self.high_ms = max(self.high_ms, pc.max(progress["high_ms"]).as_py())
            self.done_ms = pc.min(progress["done_ms"]).as_py()
            waits = pc.or_(pc.greater(progress["kept"], 0), pc.is_valid(progress["due_ms"]))
            self.is_open = bool(pc.any(waits).as_py())

    def due_tick(self, live: LiveSettings, now_ms: int, *, is_idle: bool) -> int | None:
        """The time that has certainly come in live input, for sources that bring nothing: less the lag that rows may
        have, the wall clock if nothing more is there to be taken in, else the highest time of the others. None where
        nothing waits for it, or the input is not live.
        """
        is_live = now_ms - live.live_within_ms < self.high_ms <= now_ms + live.live_lag_ms
        at_ms = (now_ms if is_idle else self.high_ms) - live.live_lag_ms
        return at_ms if self.is_open and is_live and at_ms > self.done_ms else None
