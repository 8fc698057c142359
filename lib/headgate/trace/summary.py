"""What a written trace holds."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from headgate.trace.defects import Defects, count_defects
from headgate.trace.events import Rows
from headgate.trace.spec import EPOCH


@dataclass
class TraceSummary:
    """Counts of the files added so far. `bad` has an entry for every defect of the format; its sum is all bad rows.

    Messages, bytes and times are those of the rows before they were spoiled.
    """

    files: int = 0
    rows: int = 0
    bad: Counter[str] = field(default_factory=Counter)
    messages: int = 0
    bytes: int = 0
    first: datetime | None = None
    last: datetime | None = None

    def add(self, rows: Rows, defects: Defects, kinds: Sequence[str]) -> None:
        """Count one file, which has at least one row."""
        times = rows.table["event_time"].cast(pa.int64()).to_numpy()
        begin, end = (EPOCH + timedelta(microseconds=int(edge)) for edge in (times.min(), times.max()))
        self.files += 1
        self.rows += rows.table.num_rows
        self.bad.update(count_defects(defects, kinds))
        self.messages += pc.sum(rows.table["messages"]).as_py() or 0
        self.bytes += pc.sum(rows.table["bytes"]).as_py() or 0
        self.first = begin if self.first is None else min(self.first, begin)
        self.last = end if self.last is None else max(self.last, end)

    def describe(self) -> str:
        """Four lines for people."""
        first, last = (f"{edge:%Y-%m-%dT%H:%M:%S.%fZ}" if edge else "none" for edge in (self.first, self.last))
        bad = ", ".join(f"{kind} {count:,}" for kind, count in self.bad.items() if count) or "none"
        return (
            f"rows        {self.rows:,} in {self.files:,} file{'' if self.files == 1 else 's'}\n"
            f"event time  {first} to {last}\n"
            f"traffic     {self.messages:,} messages, {self.bytes:,} bytes\n"
            f"bad rows    {self.bad.total():,} ({bad})"
        )
