"""How far time has come for the protocol's keys, and how it goes on where nothing comes that would move it."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from headgate.conf import LiveSettings
from headgate.keyed.live import certain_us
from headgate.protocol.state import NOT_YET


@dataclass
class Clock:
    """The highest time that any key heard of, the watermark, and whether anything waits for it to go on."""

    high_ms: int = NOT_YET
    done_ms: int = NOT_YET
    is_open: bool = False

    def take(self, progress: pa.Table) -> None:
        """PROGRESS of all keys, of one batch."""
        if len(progress):
            self.high_ms = max(self.high_ms, pc.max(progress["high_ms"]).as_py())
            self.done_ms = pc.min(progress["done_ms"]).as_py()
            waits = pc.or_(pc.greater(progress["kept"], 0), pc.is_valid(progress["due_ms"]))
            self.is_open = bool(pc.any(waits).as_py())

    def due_tick(self, live: LiveSettings, now_ms: int, *, is_idle: bool) -> int | None:
        """`keyed.live.certain_us` where something waits for it. None where nothing does, or the input is not live."""
        at_us = certain_us(live, self.high_ms * 1000, now_ms * 1000, is_idle=is_idle)
        return at_us // 1000 if self.is_open and at_us is not None and at_us > self.done_ms * 1000 else None
