"""Which entry cache would this traffic have needed? Sizes, policies and conf keys side by side over one trace.

A trace of cache events, or made-up traffic, goes through every combination of --grid, beside the conf that broker.conf
in --conf-dir has now. Tables and an HTML report: docs/sizing.md. Without --input: made-up traffic.
"""

import argparse
import shutil
import sys
from collections.abc import Sequence
from functools import partial

from headgate.conf import load_conf
from headgate.errors import ConfError
from headgate.replay.tables import check_new
from headgate.report.screen import terminal_console
from headgate.report.sweep_html import write_report
from headgate.report.sweep_screen import SweepScreen
from headgate.sizing.combinations import combinations
from headgate.sizing.grid_file import read_grid
from headgate.spark.cache_sweep import SweepJob, run_sweep
from headgate.spark.cache_trace import FAMILIES, FORMATS, SIZES, Generated
from headgate.spark.job import status_of_whole
from headgate.spark.session import spark_session
from headgate.throttle.places import check_places

DEFAULT_OUTPUT = "output/cache-sweep"
MADE_UP = ("family", "seeds", "sizes", "scale")


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0 when the report is written; 1 if Spark failed, 2 for wrong options, conf or input, 3 if stopped."""
    return status_of_whole("cache_sweep", partial(sweep, parsed(arguments)))


def sweep(options: argparse.Namespace) -> int:
    screen = SweepScreen(terminal_console())
    present = load_conf(options.conf_dir).cache
    tried = combinations(read_grid(options.grid, present), present)
    job = given(options)
    place = options.input or f"made-up traffic, family {options.family}"
    screen.begin(len(tried), place, job.every)
    spark = spark_session("headgate cache_sweep")
    swept = run_sweep(spark, job, tried, screen.staged, screen.ended)
    report = write_report(swept.rows, job.output, screen.about)
    screen.end(swept.rows, report, job.output)
    return 0


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="cache_sweep", description=__doc__, allow_abbrev=False)
    parser.add_argument("--input", metavar="PATH", help="cache events: files, folder or Delta table")
    parser.add_argument("--format", choices=FORMATS, default="json", help="of --input; default json")
    parser.add_argument(
        "--output", metavar="DIR", help=f"new folder; default {DEFAULT_OUTPUT}, made anew if there is no --input"
    )
    parser.add_argument("--grid", default="conf/cache-sweep.toml", metavar="FILE", help="default conf/cache-sweep.toml")
    parser.add_argument("--conf-dir", default="conf", metavar="DIR", help="with the broker.conf of now; default conf")
    parser.add_argument(
        "--sample", type=int, default=1, metavar="N", help="one entry in N, in caches N times smaller; default 1: all"
    )
    made_up = parser.add_argument_group("made-up traffic, without --input")
    made_up.add_argument("--family", choices=FAMILIES, default="mixed", help="default mixed")
    made_up.add_argument("--seeds", type=int, nargs="+", default=[1], metavar="S", help="a broker each; default 1")
    made_up.add_argument("--sizes", choices=SIZES, default="equal", help="of entries; default equal")
    made_up.add_argument("--scale", type=int, default=1, metavar="N", help="N times the topics; default 1")
    options = parser.parse_args(arguments)
    if options.input is not None and any(getattr(options, name) != parser.get_default(name) for name in MADE_UP):
        parser.error(f"--{', --'.join(MADE_UP)} are of made-up traffic: leave them out, or --input")
    return options


def given(options: argparse.Namespace) -> SweepJob:
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
        return SweepJob(traffic, options.format, output, options.sample)
    return SweepJob(options.input, options.format, output, options.sample)


if __name__ == "__main__":
    sys.exit(main())
