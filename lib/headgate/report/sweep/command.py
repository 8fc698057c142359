"""A sweep from what was asked for to its report, under any engine: what `headgate sweep` and jobs/cache_sweep.py do."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from headgate.engines.compiling import Loading
from headgate.engines.sweep import LocalSweep
from headgate.report.screen import terminal_console
from headgate.report.sweep.html import write_report
from headgate.report.sweep.screen import SweepScreen
from headgate.sizing.asked import Asked
from headgate.sizing.lags import told
from headgate.sizing.sweep import StagedTrace, SweepEngine, load_rules, run_sweep


class SweepRunner(NamedTuple):
    """What runs a sweep. name: begins the screen's lines. start: what the screen says before it."""

    name: str
    engine: Callable[[], SweepEngine]
    start: str


LOCAL = SweepRunner("sweep", LocalSweep, "reading")


def sweep(options: Asked, runner: SweepRunner) -> int:
    """Exit status 0 when the report is written. Raises HeadgateError for wrong input."""
    job, tried, place = options
    screen = SweepScreen(terminal_console(), runner.name, told(job.lags))
    screen.begin(len(tried), place, job.every, runner.start)
    rules = Loading(partial(load_rules, tried), lambda line: screen.say(f"{runner.name}: {line}"))

    def staged(trace: StagedTrace) -> None:
        rules.wait()
        screen.staged(trace)

    swept = run_sweep(runner.engine(), job, tried, staged, screen.ended)
    report = write_report(swept.rows, job.output, screen.about)
    screen.end(swept.rows, report, job.output)
    return 0
