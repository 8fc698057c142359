"""Brokers whose clock seems to be wrong, as a live job sees it by their rows."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa

from headgate.report.screen import plain, zulu

AHEAD_S = 60
JUDGED_ROWS = 10
RIGHT_AGAIN = timedelta(minutes=5)
SHOWN_LINES = 5


class WrongClocks:
    """Names a broker once when it is more than AHEAD_S ahead of the clock here, and once when most of its rows come
    late; again only after it has been right for RIGHT_AGAIN.

    Late rows are judged by at least JUDGED_ROWS, of as many batches as bring them. One row ahead is enough: it moves
    its broker's clock for good.
    """

    def __init__(self) -> None:
        self._ahead, self._late = dict[str, datetime](), dict[str, datetime]()
        """Brokers that were named, with the time when each was last wrong."""
        self._not_judged: dict[str, tuple[int, int]] = {}
        """Rows, and how many of them came late."""

    def lines(self, progress: pa.Table, now: datetime) -> list[str]:
        """What is to be said of a batch. progress: schemas.PROGRESS."""
        sums = progress.group_by("broker", use_threads=False).aggregate(
            [("rows", "sum"), ("late", "sum"), ("event_time_us", "max")]
        )
        lines = []
        columns = [sums[name].to_pylist() for name in ("broker", "rows_sum", "late_sum", "event_time_us_max")]
        for broker, of_batch, late_of_batch, reached_us in zip(*columns, strict=True):
            reached = datetime.fromtimestamp((reached_us or 0) / 1e6, UTC)
            ahead_s = (reached - now).total_seconds()
            if _begins(self._ahead, broker, now, is_wrong=ahead_s > AHEAD_S, is_right=ahead_s <= AHEAD_S):
                wrong = f"{plain(broker)} is {ahead_s:,.0f} s ahead of the clock here"
                lines.append(f"{wrong}: its rows with the right time will be late; see its clock, and the one here")
            rows, late = self._not_judged.pop(broker, (0, 0))
            rows, late = rows + of_batch, late + late_of_batch
            if rows < JUDGED_ROWS:
                self._not_judged[broker] = rows, late
            elif _begins(self._late, broker, now, is_wrong=2 * late > rows, is_right=late == 0):
                came = f"{plain(broker)}: {late:,} of {rows:,} rows came late"
                lines.append(f"{came}, behind a row of {zulu(reached)}; see its clock, and whether that row was right")
        more = len(lines) - SHOWN_LINES
        return [*lines[:SHOWN_LINES], *([f"wrong clocks: {more:,} more such lines"] if more > 0 else [])]


def _begins(named: dict[str, datetime], broker: str, now: datetime, *, is_wrong: bool, is_right: bool) -> bool:
    if is_right and broker in named and now - named[broker] >= RIGHT_AGAIN:
        del named[broker]
    if not is_wrong:
        return False
    is_new = broker not in named
    named[broker] = now
    return is_new
