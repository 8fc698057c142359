"""A replay from its options to its report, under any engine: what `headgate replay` and jobs/replay.py do."""

import argparse
import shutil
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from headgate.conf import Conf, InputSettings
from headgate.engines.compiling import Loading
from headgate.engines.kernel_units import PUBLISH, QUOTAS, load_units
from headgate.engines.processes import prepare
from headgate.engines.replay import run_replay
from headgate.engines.stops import broken_off_by_signals
from headgate.errors import InputError, Mistakes
from headgate.options import input_format
from headgate.places import check_new, check_places
from headgate.replay.arguments import DEFAULT_OUTPUT
from headgate.replay.folders import folder_warnings, load_folders
from headgate.replay.job import Heard, Replayed, ReplayJob
from headgate.replay.plan import Plan, checked_plans
from headgate.report.modes import mode_line
from headgate.report.replay_html import write_report
from headgate.report.replay_screen import ReplayScreen
from headgate.report.screen import terminal_console
from headgate.trace import write_trace
from headgate.trace.demo import PUBLISHES

DEMO = Path("output/replay-demo")


Run = Callable[[ReplayJob, Sequence[Plan], InputSettings, Heard], Replayed]


class ReplayEngine(NamedTuple):
    """What runs a replay. begin: starts it. start: what the screen says before. within: what the time told includes."""

    begin: Callable[[], Run]
    start: str
    within: str


def _in_processes() -> Run:
    prepare()
    return run_replay


LOCAL = ReplayEngine(_in_processes, "reading", "")


def run(options: argparse.Namespace) -> int:
    """`headgate replay`: exit status 0 when the report is written, 3 if stopped. Raises HeadgateError."""
    return broken_off_by_signals("replay", lambda: replay(options, LOCAL))


def replay(options: argparse.Namespace, engine: ReplayEngine) -> int:
    """Exit status 0 when the report is written. Raises HeadgateError for wrong options, conf or input."""
    if options.input is None and (options.format or options.output != DEFAULT_OUTPUT):
        raise InputError("--format and --output need --input: without it the bundled trace is replayed")
    screen = ReplayScreen(terminal_console())
    confs: dict[str, Conf] = {}
    folders = options.conf_dir or ["conf"]
    mistakes = Mistakes()
    with mistakes.collected():
        confs = load_folders(folders, strict=options.strict)
        plans = checked_plans(confs, traffic=options.traffic, delay_ms=options.delay_ms)
    first = next(iter(confs.values()), Conf())
    with mistakes.collected():
        job = _given(options, first)
        check_new(job.output)
    mistakes.raise_all()
    screen.warnings(folder_warnings(confs))
    if options.input is None:
        screen.demo(write_trace(PUBLISHES, DEMO / "trace", "json"), job.input)
    mode = mode_line(options.traffic, first.settings.operator.send_timeout_ms)
    screen.say(f"replay: {mode}")
    screen.begin(plans, job.input, engine.start, folders[0])
    rules = Loading(partial(load_units, _units(plans)), lambda line: screen.say(f"replay: {line}"))
    run_on_engine = engine.begin()
    rules.wait()
    replayed = run_on_engine(job, plans, first.settings.input, screen.counted)
    report = write_report(replayed.tables, confs, plans, replayed.trace)
    screen.end(replayed, plans, report, engine.within)
    screen.say(mode)
    screen.warnings(folder_warnings(confs))  # once more, where they are seen
    return 0


def _units(plans: Sequence[Plan]) -> Iterator[str]:
    """What publishes need, of which a replay is."""
    for plan in plans:
        if plan.kernel != "python":
            yield PUBLISH
        if plan.shares:
            yield QUOTAS


def _given(options: argparse.Namespace, first: Conf) -> ReplayJob:
    """The bundled trace and what came of it are made anew with every run."""
    if options.input is None:
        shutil.rmtree(DEMO, ignore_errors=True)
        return ReplayJob(f"{DEMO}/trace", "json", f"{DEMO}/tables")
    check_places(options.input, options.output, options.output, files=True)
    return ReplayJob(options.input, input_format(options, first.settings.input.format), options.output)
