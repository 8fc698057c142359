"""What would these limits do to recorded traffic, and what would others do instead?

The trace goes through the rules of the throttle job in event time, once for each --conf-dir, with brokers that share
quotas as they do live. Tables and an HTML report compare the folders: docs/replay.md. Without --input: a bundled trace.
"""

import argparse
import shutil
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from headgate.conf import Conf
from headgate.replay.folders import folder_warnings, load_folders
from headgate.replay.plan import checked_plans
from headgate.replay.tables import check_new
from headgate.report.replay_html import write_report
from headgate.report.replay_screen import ReplayScreen
from headgate.report.screen import terminal_console
from headgate.spark.job import status_of_whole
from headgate.spark.replay import ReplayJob, run_replay
from headgate.spark.session import spark_session
from headgate.throttle.places import check_places
from headgate.trace import write_trace
from headgate.trace.demo import PUBLISHES

FORMATS = ("json", "csv", "parquet", "delta")
DEFAULT_OUTPUT = "output/replay"
DEMO = Path("output/replay-demo")


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0 when the report is written; 1 if Spark failed, 2 for wrong options, conf or input, 3 if stopped."""
    return status_of_whole("replay", partial(replay, parsed(arguments)))


def replay(options: argparse.Namespace) -> int:
    screen = ReplayScreen(terminal_console())
    confs = load_folders(options.conf_dir or ["conf"])
    for warning in folder_warnings(confs):
        screen.say(f"warning: {warning}")
    plans = checked_plans(confs, traffic=options.traffic, delay_ms=options.delay_ms)
    job = given(options, next(iter(confs.values())))
    check_new(job.output)
    if options.input is None:
        screen.demo(write_trace(PUBLISHES, DEMO / "trace", "json"), job.input)
    screen.begin(plans, job.input)
    settings = next(iter(confs.values())).settings.input
    replayed = run_replay(spark_session("headgate replay"), job, plans, settings, screen.counted)
    report = write_report(replayed.tables, confs, plans, replayed.trace)
    screen.end(replayed, plans, report)
    return 0


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="replay", description=__doc__, allow_abbrev=False)
    parser.add_argument("--input", metavar="PATH", help="files, folder or Delta table")
    parser.add_argument(
        "--format", choices=FORMATS, help="default: [input] format in headgate.toml of the first folder"
    )
    parser.add_argument("--output", default=DEFAULT_OUTPUT, metavar="DIR", help=f"new folder; default {DEFAULT_OUTPUT}")
    parser.add_argument("--conf-dir", action="append", metavar="DIR", help="one for each conf to try; default conf")
    parser.add_argument(
        "--traffic",
        choices=("offered", "admitted"),
        default="offered",
        help="offered (default): rows are what clients wanted; admitted: what brokers let in, as live",
    )
    parser.add_argument(
        "--delay-ms",
        type=int,
        metavar="MS",
        help="from the end of an epoch until the shares that follow from it hold; default: an interval of the trigger",
    )
    options = parser.parse_args(arguments)
    if options.input is None and (options.format or options.output != DEFAULT_OUTPUT):
        parser.error("--format and --output need --input: without it the bundled trace is replayed")
    return options


def given(options: argparse.Namespace, first: Conf) -> ReplayJob:
    """The bundled trace and what came of it are made anew with every run."""
    if options.input is None:
        shutil.rmtree(DEMO, ignore_errors=True)
        return ReplayJob(f"{DEMO}/trace", "json", f"{DEMO}/tables")
    format_ = options.format or first.settings.input.format
    check_places(options.input, options.output, options.output, files=True)
    return ReplayJob(options.input, format_, options.output)


if __name__ == "__main__":
    sys.exit(main())
