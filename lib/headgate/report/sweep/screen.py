"""The sweep's screen: what it is about to try, how far it is, and what follows."""

import time
from collections.abc import Sequence
from datetime import UTC, datetime

from rich.console import Console

from headgate.report.screen import Screen, empty_table
from headgate.report.sweep import words
from headgate.sizing.advice import Advice, RowOfSweep, advise, miss_ratio
from headgate.sizing.sweep import StagedTrace

TOLD_S = 5.0
"""Progress is told no more often."""
SHOWN = 12


class SweepScreen(Screen):
    """Lines of one run. job: what it is called in them. assumed: what was made of the input, if anything."""

    def __init__(self, console: Console, job: str, assumed: str = "") -> None:
        super().__init__(console, job)
        self._assumed = assumed
        self._began_s = time.monotonic()
        self._runs_began_s = self._told_s = self._began_s
        self._combinations = 0
        self.about = ""

    def begin(self, combinations: int, place: str, every: int, start: str) -> None:
        """What is tried on what. start: what is done now with that."""
        sample = f", on a sample of one entry in {every}" if every > 1 else ""
        self.say(f"{self._job}: {combinations:,} combinations{sample}; {start} {place}")
        self._combinations = combinations

    def staged(self, trace: StagedTrace) -> None:
        """What the trace holds."""
        first, last = (datetime.fromtimestamp(at / 1e6, UTC) for at in (trace.span.first_us, trace.span.last_us))
        brokers = len(trace.folders)
        self.about = (
            f"{trace.rows:,} row{'s' * (trace.rows != 1)} on {brokers} broker{'s' * (brokers != 1)}, "
            f"{first:%Y-%m-%d %H:%M:%S} to {last:%Y-%m-%d %H:%M:%S} UTC; {self._combinations:,} combinations."
        )
        if self._assumed:
            self.about += f" {self._assumed}"
        self.say(f"{self._job}: {self.about}")
        if trace.bad:
            self.say(f"{self._job}: warning: {trace.bad:,} rows that can change nothing are in dead_letters")
        for file in trace.lost["source"].to_pylist():
            self.say(
                f"{self._job}: warning: {file} cannot be read to its end and is left out; dead_letters has the reason"
            )
        if trace.left_out:
            what = "1 row of kind conf is" if trace.left_out == 1 else f"{trace.left_out:,} rows of kind conf are"
            self.say(f"{self._job}: {what} left out: a combination holds throughout")
        self._runs_began_s = self._told_s = time.monotonic()

    def ended(self, done: int, count: int) -> None:
        """How far it is. How long the rest takes nobody knows: runs differ tenfold, and the slow ones come first."""
        now_s = time.monotonic()
        if done < count and now_s - self._told_s < TOLD_S:
            return
        self._told_s = now_s
        took_s = now_s - self._runs_began_s
        self.say(f"{self._job}: {done:,} of {count:,} runs in {took_s:.0f} s")

    def end(self, rows: Sequence[RowOfSweep], report: str, output: str) -> None:
        """The best by size, the recommendation, and where the report and the rows are."""
        together = [row for row in rows if row["broker"] is None]
        advice = advise(together)
        if refused := advice.present["dead"]:
            self.say(f"{self._job}: warning: {refused:,} rows were refused; dead_letters has them with the reasons")
        self._table(together, advice)
        self.say("")
        for line in words.recommendation(advice):
            self.say(line)
        for line in words.why(advice):
            self.say(f"  {line}")
        for line in (*words.at_other_sizes(advice), *words.of_sample(advice.present)):
            self.say(f"  {line}")
        self.say(f"\nReport: {report}")
        self.say(f"Tables (Delta): {output}/cache_sweep  dead_letters")

    def _table(self, rows: Sequence[RowOfSweep], advice: Advice) -> None:
        """Misses by policy and size, with the keys as they are now."""
        table = empty_table("Entries from storage, of those read, with the keys of now")
        table.add_column("policy")
        sizes = sorted({row["max_bytes"] for row in rows})
        shown = [at for at in sizes if at == advice.present["max_bytes"] or at in sizes[:SHOWN]]
        for at in shown:
            table.add_column(words.size(at), justify="right")
        as_now = {(row["policy"], row["max_bytes"]): row for row in rows if not words.changes(row)}
        for policy in dict.fromkeys(row["policy"] for row in rows):
            cells = [as_now.get((policy, at)) for at in shown]
            table.add_row(policy, *("" if row is None else words.percent(miss_ratio(row)) for row in cells))
        self.table(table)
