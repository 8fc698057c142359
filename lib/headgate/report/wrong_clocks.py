"""Brokers whose clock seems to be wrong, as a live job sees it by their rows."""

from datetime import UTC, datetime

import pyarrow as pa

from headgate.report.screen import plain, zulu

AHEAD_S = 60
SHOWN_LINES = 5


class WrongClocks:
    """Names a broker once when it is more than AHEAD_S ahead of the clock here, and once when most of its rows of a
    batch come late; again after a batch without that.
    """

    def __init__(self) -> None:
        self._ahead, self._late = set[str](), set[str]()

    def lines(self, progress: pa.Table, now: datetime) -> list[str]:
        """What is to be said of a batch. progress: schemas.PROGRESS."""
        sums = progress.group_by("broker", use_threads=False).aggregate(
            [("rows", "sum"), ("late", "sum"), ("event_time_us", "max")]
        )
        lines = []
        columns = [sums[name].to_pylist() for name in ("broker", "rows_sum", "late_sum", "event_time_us_max")]
        for broker, rows, late, reached_us in zip(*columns, strict=True):
            reached = datetime.fromtimestamp((reached_us or 0) / 1e6, UTC)
            ahead_s = (reached - now).total_seconds()
            if _begins(self._ahead, broker, holds=ahead_s > AHEAD_S, ends=ahead_s <= AHEAD_S):
                wrong = f"{plain(broker)} is {ahead_s:,.0f} s ahead of the clock here"
                lines.append(f"{wrong}: its rows with the right time will be late; see its clock, and the one here")
            if _begins(self._late, broker, holds=2 * late > rows, ends=rows > 0 and late == 0):
                came = f"{plain(broker)}: {late:,} of {rows:,} rows of a batch came late"
                lines.append(f"{came}, behind a row of {zulu(reached)}; see its clock, and whether that row was right")
        more = len(lines) - SHOWN_LINES
        return [*lines[:SHOWN_LINES], *([f"wrong clocks: {more:,} more such lines"] if more > 0 else [])]


def _begins(told: set[str], broker: str, *, holds: bool, ends: bool) -> bool:
    if ends:
        told.discard(broker)
    if not holds or broker in told:
        return False
    told.add(broker)
    return True
