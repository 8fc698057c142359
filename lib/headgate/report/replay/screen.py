"""The replay job's screen: what it is about to do, what the trace holds, and the confs side by side at the end."""

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.table import Table

from headgate.replay.job import Replayed
from headgate.replay.plan import EVERYTHING, Plan
from headgate.replay.run import Trace
from headgate.report.replay import words
from headgate.report.screen import Screen, command, empty_table, plain

GROUPS = 'SELECT * FROM replay_groups ORDER BY "group" IS NULL, "group", conf'
SHOWN_FILES = 5


class ReplayScreen(Screen):
    """Lines of one run."""

    def __init__(self, console: Console) -> None:
        super().__init__(console, "replay")
        self._began_s = time.monotonic()
        self._place = self._folder = ""

    def begin(self, plans: Sequence[Plan], place: str, start: str, folder: str) -> None:
        """What each folder makes of it, as far as that decides how long it takes and how far it is like a live job.

        start: what is done now with the place of the input. folder: the first conf folder.
        """
        for plan in plans:
            sharing = (
                f"brokers share {len(plan.quotas())} groups, new shares hold {plan.delay_ms} ms after an epoch's end"
            )
            if not plan.shares:
                sharing = "brokers share nothing" + (", each enforces groups alone" if plan.has_groups else "")
            self.say(f"replay: conf {plan.name}: {sharing}")
            if plan.ties and plan.has_groups:
                self.say(
                    f"replay: conf {plan.name}: a broker-wide limit ties all groups and brokers together, so it is "
                    f"replayed as one key ({EVERYTHING}), on one core"
                )
        self._place, self._folder = place, folder
        self.say(f"replay: {start} {place}")

    def counted(self, trace: Trace, rows: int, dead_letters: int, others: int, lost: Sequence[str]) -> None:
        """What the trace holds."""
        first, last = (f"{datetime.fromtimestamp(at / 1e6, UTC):%Y-%m-%d %H:%M:%S}" for at in _ends(trace))
        self.say(
            f"replay: {rows:,} publishes on {len(trace.brokers)} brokers from {first} to {last} UTC, "
            f"{dead_letters:,} dead letters"
        )
        for file in lost[:SHOWN_FILES]:
            self.say(f"replay: warning: left out, as it cannot be read to its end: {plain(file)}")
        if len(lost) > SHOWN_FILES:
            self.say(f"replay: warning: left out likewise, with the reason in dead_letters: {len(lost):,} files in all")
        if others:
            self.say(f"replay: {others:,} rows of other kinds are left out: publishes alone are replayed")

    def end(self, replayed: Replayed, plans: Sequence[Plan], report: str, within: str) -> None:
        """The confs side by side, and where the report and the rows are. within: what the time told includes."""
        took_s = time.monotonic() - self._began_s
        times = f" x {len(plans)} confs" if len(plans) > 1 else ""
        self.say(f"replay: {replayed.rows:,} rows{times} in {took_s:.1f} s{within}")
        offered = any(plan.rules.offered for plan in plans)
        self.table(_table(replayed.tables.query(GROUPS).to_pylist(), plans, offered=offered))
        output = replayed.tables.output
        self.say(f"\nReport: {report}")
        self.say(f"Tables (Delta): {output}/replay_groups  replay_tenants  replay_seconds  replay_limits  dead_letters")
        trial = command("try", self._place, "--conf-dir", self._folder)
        self.say(f"Tenants and topics, and whose fault it is, if all rows are in one order of event_time: {trial}")
        self.say(f"The smallest limits that would do, by topic and tenant: {trial} --recommend DIR")


def _ends(trace: Trace) -> tuple[int, int]:
    return trace.first_us, trace.last_us


def _table(rows: Sequence[dict[str, Any]], plans: Sequence[Plan], *, offered: bool) -> Table:
    """A line for each group and conf; messages, in percent of what was offered."""
    table = empty_table("Messages by group")
    table.add_column("group", overflow="fold")
    if len(plans) > 1:
        table.add_column("conf", overflow="fold")
    table.add_column("quota", overflow="fold")
    results = ("failed", "delayed", "p50", "p99", "admitted") if offered else ("throttled",)
    for name in ("offered", *results, "overshoot", "worst s", "fairness"):
        table.add_column(name, justify="right")
    table.add_column("throttled by", overflow="fold")
    place = {plan.name: number for number, plan in enumerate(plans)}
    before = None
    for row in sorted(rows, key=lambda row: (row["group"] is None, row["group"] or "", place[row["conf"]])):
        if len(plans) > 1 and before not in {None, words.group_name(row)}:
            table.add_row()
        name = words.group_name(row)
        conf = [plain(row["conf"])] if len(plans) > 1 else []
        table.add_row("" if name == before else name, *conf, *_cells(row, offered=offered))
        before = name
    return table


def _cells(row: dict[str, Any], *, offered: bool) -> list[str]:
    results = (
        [
            words.percent(words.part(row, "failed_msgs")),
            words.percent(words.part(row, "delayed_msgs")),
            words.duration(row["delay_p50_ms"]),
            words.duration(row["delay_p99_ms"]),
            words.percent(words.part(row, "admitted_msgs")),
        ]
        if offered
        else [words.percent(words.part(row, "throttled_publishes", "offered_publishes"))]
    )
    return [
        words.quota_of(row) if row["group"] else "",
        f"{row['offered_msgs']:,}",
        *results,
        words.percent(row["overshoot_percent"]),
        words.percent(row["overshoot_max_percent"]),
        "-" if row["fairness"] is None else f"{row['fairness']:.3f}",
        words.limiters_of(row),
    ]
