"""What a sweep was asked for, checked before anything is loaded that takes seconds: options, conf, grid, places."""

import argparse
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from headgate.conf import load_conf
from headgate.errors import ConfError, InputError, Mistakes
from headgate.options import input_format
from headgate.places import check_new, check_places
from headgate.sizing.arguments import DEFAULT_OUTPUT, MADE_UP
from headgate.sizing.combinations import Combination, combinations
from headgate.sizing.grid_file import read_grid
from headgate.sizing.lags import Lag
from headgate.stores import is_stored

TRACE = "trace"
"""The folder of the trace below the output, while the sweep runs."""


@dataclass(frozen=True)
class Generated:
    """Traffic that is made up, one broker a seed (entry-cache 15)."""

    family: str
    seeds: tuple[int, ...]
    sizes: str
    scale: int


@dataclass(frozen=True)
class SweepJob:
    """What the command line says. input: a path, or traffic that is made up. every: one entry in so many is kept.

    lags: the input are publishes, which cursors read so far behind; none: it are cache events.
    """

    input: str | Generated
    format: str
    output: str
    every: int
    lags: tuple[Lag, ...] = ()

    @property
    def trace(self) -> str:
        """The folder of the trace."""
        return f"{self.output}/{TRACE}"


class Asked(NamedTuple):
    """tried: present conf first. place: where the traffic comes from, in words."""

    job: SweepJob
    tried: Sequence[Combination]
    place: str


def asked(options: argparse.Namespace) -> Asked:
    """Raises HeadgateError with all that is wrong. Makes the default output anew where there is no --input."""
    mistakes = Mistakes()
    with mistakes.collected():
        present = load_conf(options.conf_dir).cache
        tried = combinations(read_grid(options.grid, present), present)
    with mistakes.collected():
        _check_numbers(options)
    with mistakes.collected():
        job = _job(options)
    mistakes.raise_all()
    if _is_made_anew(options):
        shutil.rmtree(job.output, ignore_errors=True)
    return Asked(job, tried, options.input or f"made-up traffic, family {options.family}")


def _is_made_anew(options: argparse.Namespace) -> bool:
    """Whether what an earlier sweep of made-up traffic left is replaced."""
    return options.input is None and options.output is None


def _check_numbers(options: argparse.Namespace) -> None:
    least = {"--sample": (options.sample, 1), "--scale": (options.scale, 1), "--seeds": (min(options.seeds), 0)}
    wrong = [f"{name}: got {got}; allowed: from {low}; correct it" for name, (got, low) in least.items() if got < low]
    if wrong:
        raise ConfError(wrong)


def _job(options: argparse.Namespace) -> SweepJob:
    """Raises InputError for options that do not go together, and places that cannot be meant."""
    if options.input is not None and any(getattr(options, name) != value for name, value in MADE_UP.items()):
        raise InputError(f"--{', --'.join(MADE_UP)} are of made-up traffic: leave them out, or --input")
    if options.assume_lag and options.input is None:
        raise InputError("--assume-lag: needs an --input with publishes")
    output = DEFAULT_OUTPUT if options.output is None else options.output
    check_places(options.input or DEFAULT_OUTPUT, output, None, files=options.input is not None)
    if is_stored(output):
        raise InputError(
            f"--output: got {output}, which is on an object store; allowed is a folder on a disk, where the runs find "
            "the trace; copy the tables afterwards"
        )
    if not _is_made_anew(options):
        check_new(output)
    if options.input is None:
        traffic = Generated(options.family, tuple(dict.fromkeys(options.seeds)), options.sizes, options.scale)
        return SweepJob(traffic, "json", output, options.sample)
    return SweepJob(options.input, input_format(options, "json"), output, options.sample, options.assume_lag)
