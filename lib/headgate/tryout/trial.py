"""One conf tried on one trace."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Event

import pyarrow.compute as pc

from headgate.conf import Conf
from headgate.engines.batches import BatchResult
from headgate.engines.local_throttle import LocalThrottle
from headgate.engines.tables import BufferedTables, LocalTables, SummedTables
from headgate.quota.usage.share_courses import QuotaCourse
from headgate.report.modes import mode_line
from headgate.report.throttle_screen import shown_sums
from headgate.report.throttling.blame import USAGE, Throttling, throttling
from headgate.report.throttling.dispatch_throttling import READS
from headgate.report.throttling.unused import has_publish_limits, unused
from headgate.report.try_screen import other_measures
from headgate.tables.sums import Summed
from headgate.throttle.tables import SCHEMAS
from headgate.tryout.batches import Batch

FIRST_PROGRESS_S, PROGRESS_S = 2.0, 5.0


@dataclass(frozen=True)
class Trial:
    """What came of it. rows: good ones that were taken in. is_whole: False where a stop came before the end.

    mode: of its traffic, in words. has_limits: any publish could have been held. is_offered: see Ended. unused: limits
    that no row came under, in words. others: what limits did beside throttling publishes, by name
    (try_screen.other_measures). late: rows so far behind others that quotas were not shared as live.
    """

    name: str
    tables: Summed
    throttling: Throttling
    mode: str
    has_limits: bool
    is_offered: bool
    unused: Sequence[str]
    others: Mapping[str, int]
    share_courses: Callable[[], list[QuotaCourse]]
    rows: int
    dead_letters: int
    took_s: float
    is_whole: bool
    late: int = 0

    @property
    def courses(self) -> list[QuotaCourse]:
        """How the shares of quotas went: read when it is asked for."""
        return self.share_courses()


def run_trial(  # noqa: PLR0917  what a trial has
    name: str, conf: Conf, batches: Iterable[Batch], output: str | None, stop: Event, say: Callable[[str], None]
) -> Trial:
    """Take the batches in until they end or `stop` is set, and close what is open.

    output: a new folder to keep tables in, None: they are not kept. say: hears of progress, once it takes longer than
    FIRST_PROGRESS_S.
    """
    taken = _Taken(name, say)
    tables: LocalTables = (
        SummedTables(shown_sums(conf.resource_groups)) if output is None else BufferedTables(output, SCHEMAS)
    )
    local = LocalThrottle(conf, tables, taken.hear, output)
    operator = conf.settings.operator
    is_whole = True
    for batch in batches:
        if stop.is_set():
            is_whole = False
            break
        local.take(batch)
    local.end()
    return Trial(
        name,
        tables,
        throttling(tables, conf.resource_groups),
        mode_line(operator.traffic, operator.send_timeout_ms),
        has_publish_limits(conf),
        operator.traffic == "offered",
        unused(conf, _topics(tables)),
        other_measures(tables),
        local.quota_courses,
        taken.rows,
        taken.dead_letters,
        time.monotonic() - taken.began_s,
        is_whole,
    )


def _topics(tables: Summed) -> set[str]:
    """All that publish, or that dispatches are read from."""
    return {topic for sums in (USAGE, READS) for topic in pc.unique(tables.totals(sums)["topic"]).to_pylist()}


class _Taken:
    """Counts batches, and says from time to time how far the run is."""

    def __init__(self, name: str, say: Callable[[str], None]) -> None:
        self.began_s = time.monotonic()
        self.rows = self.dead_letters = 0
        self._name, self._say = name, say
        self._due_s = self.began_s + FIRST_PROGRESS_S

    def hear(self, batch: BatchResult) -> None:
        self.rows += batch.rows
        self.dead_letters += batch.dead_letters
        now_s = time.monotonic()
        if now_s >= self._due_s:
            self._due_s = now_s + PROGRESS_S
            rate = self.rows / (now_s - self.began_s)
            reached = "" if batch.event_time_us is None else f" up to {_instant(batch.event_time_us)}"
            self._say(f"{self._name}: {self.rows:,} rows{reached} so far, {rate:,.0f} rows/s")


def _instant(time_us: int) -> str:
    return f"{datetime.fromtimestamp(time_us / 1e6, UTC):%Y-%m-%d %H:%M:%S} UTC"
