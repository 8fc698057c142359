"""A replay from what was asked for to its report, under any engine: what `headgate replay` and jobs/replay.py do."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from headgate.conf import InputSettings
from headgate.engines.compiling import Loading
from headgate.engines.kernel_units import PUBLISH, QUOTAS, load_units
from headgate.engines.processes import prepare
from headgate.engines.replay import run_replay
from headgate.places import claimed
from headgate.replay.asked import Asked, ReplayJob
from headgate.replay.folders import folder_warnings
from headgate.replay.job import Heard, Replayed
from headgate.replay.plan import Plan
from headgate.report.modes import mode_line
from headgate.report.replay.html import write_report
from headgate.report.replay.screen import ReplayScreen
from headgate.report.screen import terminal_console
from headgate.trace import write_trace
from headgate.trace.demo import PUBLISHES

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


def replay(options: Asked, engine: ReplayEngine) -> int:
    """Exit status 0 when the report is written. Raises HeadgateError for wrong input."""
    job, confs, plans = options.job, options.confs, options.plans
    first = next(iter(confs.values()))
    screen = ReplayScreen(terminal_console())
    screen.warnings(folder_warnings(confs))
    if options.demo:
        screen.demo(write_trace(PUBLISHES, Path(job.input), "json"), job.input)
    mode = mode_line(options.traffic, first.settings.operator.send_timeout_ms)
    screen.say(f"replay: {mode}")
    screen.begin(plans, job.input, engine.start, options.first)
    rules = Loading(partial(load_units, _units(plans)), lambda line: screen.say(f"replay: {line}"))
    run_on_engine = engine.begin()
    rules.wait()
    with claimed(job.output):
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
