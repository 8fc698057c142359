"""A sweep from its options to its report, under any engine: what `headgate sweep` and jobs/cache_sweep.py do."""

import argparse
import shutil
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from headgate.conf import load_conf
from headgate.engines.compiling import Loading
from headgate.engines.stops import broken_off_by_signals
from headgate.engines.sweep import LocalSweep
from headgate.errors import ConfError, InputError
from headgate.options import input_format
from headgate.places import check_new, check_places
from headgate.report.screen import terminal_console
from headgate.report.sweep_html import write_report
from headgate.report.sweep_screen import SweepScreen
from headgate.sizing.arguments import DEFAULT_OUTPUT, MADE_UP
from headgate.sizing.combinations import combinations
from headgate.sizing.grid_file import read_grid
from headgate.sizing.lags import told
from headgate.sizing.sweep import Generated, StagedTrace, SweepEngine, SweepJob, load_rules, run_sweep


class SweepRunner(NamedTuple):
    """What runs a sweep. name: begins the screen's lines. start: what the screen says before it."""

    name: str
    engine: Callable[[], SweepEngine]
    start: str


LOCAL = SweepRunner("sweep", LocalSweep, "reading")


def run(options: argparse.Namespace) -> int:
    """`headgate sweep`: exit status 0 when the report is written, 3 if stopped. Raises HeadgateError."""
    return broken_off_by_signals("sweep", lambda: sweep(options, LOCAL))


def sweep(options: argparse.Namespace, runner: SweepRunner) -> int:
    """Exit status 0 when the report is written. Raises HeadgateError for wrong options, conf or input."""
    if options.input is not None and any(getattr(options, name) != value for name, value in MADE_UP.items()):
        raise InputError(f"--{', --'.join(MADE_UP)} are of made-up traffic: leave them out, or --input")
    if options.assume_lag and (options.input is None or runner is not LOCAL):
        raise InputError(
            "--assume-lag: needs an --input with publishes, and headgate sweep: the job has no cursors to assume"
        )
    screen = SweepScreen(terminal_console(), runner.name, told(options.assume_lag))
    present = load_conf(options.conf_dir).cache
    tried = combinations(read_grid(options.grid, present), present)
    job = _given(options)
    place = options.input or f"made-up traffic, family {options.family}"
    screen.begin(len(tried), place, job.every, runner.start)
    rules = Loading(partial(load_rules, tried), lambda line: screen.say(f"{runner.name}: {line}"))

    def staged(trace: StagedTrace) -> None:
        rules.wait()
        screen.staged(trace)

    swept = run_sweep(runner.engine(), job, tried, staged, screen.ended)
    report = write_report(swept.rows, job.output, screen.about)
    screen.end(swept.rows, report, job.output)
    return 0


def _given(options: argparse.Namespace) -> SweepJob:
    """Raises ConfError for numbers out of range, InputError for places that cannot be meant."""
    least = {"--sample": (options.sample, 1), "--scale": (options.scale, 1), "--seeds": (min(options.seeds), 0)}
    wrong = [f"{name}: got {got}; allowed: from {low}; correct it" for name, (got, low) in least.items() if got < low]
    if wrong:
        raise ConfError(wrong)
    output = DEFAULT_OUTPUT if options.output is None else options.output
    if options.input is None and options.output is None:
        shutil.rmtree(output, ignore_errors=True)
    check_places(options.input or DEFAULT_OUTPUT, output, output, files=options.input is not None)
    check_new(output)
    if options.input is None:
        traffic = Generated(options.family, tuple(dict.fromkeys(options.seeds)), options.sizes, options.scale)
        return SweepJob(traffic, "json", output, options.sample)
    return SweepJob(options.input, input_format(options, "json"), output, options.sample, options.assume_lag)
