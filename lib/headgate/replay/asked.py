"""What a replay was asked for, checked before anything is loaded that takes seconds: options, confs, places."""

import argparse
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from headgate.conf import Conf
from headgate.errors import InputError, Mistakes
from headgate.options import input_format
from headgate.places import check_new, check_places
from headgate.replay.arguments import DEFAULT_OUTPUT
from headgate.replay.folders import load_folders
from headgate.replay.plan import Plan, checked_plans
from headgate.rows.listing import FORMATS

DEMO = "output/replay-demo"
"""Where the bundled trace is written, and what comes of it."""


@dataclass(frozen=True)
class ReplayJob:
    """What the command line says: where the trace is, and where the tables go."""

    input: str
    format: str
    output: str


class Asked(NamedTuple):
    """confs, plans: by name, in the order given. first: folder of the first. demo: of the bundled trace."""

    job: ReplayJob
    confs: Mapping[str, Conf]
    plans: Sequence[Plan]
    first: str
    traffic: str
    demo: bool


def asked(options: argparse.Namespace) -> Asked:
    """Raises HeadgateError with all that is wrong. What came of the bundled trace before is removed."""
    if options.input is None and (options.format or options.output != DEFAULT_OUTPUT):
        raise InputError("--format and --output need --input: without it the bundled trace is replayed")
    folders = options.conf_dir or ["conf"]
    confs: Mapping[str, Conf] = {}
    mistakes = Mistakes()
    with mistakes.collected():
        confs = load_folders(folders, strict=options.strict)
        plans = checked_plans(confs, traffic=options.traffic, delay_ms=options.delay_ms)
    with mistakes.collected():
        job = _job(options, next(iter(confs.values()), Conf()))
    mistakes.raise_all()
    if options.input is None:
        shutil.rmtree(DEMO, ignore_errors=True)
    return Asked(job, confs, plans, folders[0], options.traffic, demo=options.input is None)


def _job(options: argparse.Namespace, first: Conf) -> ReplayJob:
    if options.input is None:
        return ReplayJob(f"{DEMO}/trace", "json", f"{DEMO}/tables")
    check_places(options.input, options.output, None, files=True)
    check_new(options.output)
    configured = first.settings.input.format
    return ReplayJob(
        options.input, input_format(options, configured if configured in FORMATS else "json"), options.output
    )
