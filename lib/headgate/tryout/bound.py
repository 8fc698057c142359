"""What `--recommend` asks for: how many publishes may wait, and how long. Nothing heavy is imported here."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

from headgate.conf import Conf
from headgate.errors import InputError
from headgate.places import check_new
from headgate.stores import local_path

MOST_PERCENT = 1.0
WAIT_MS = 1000


@dataclass(frozen=True)
class Bound:
    """At most `most_percent` of the publishes wait longer than `wait_ms`, and none so long that its client gives up."""

    most_percent: float = MOST_PERCENT
    wait_ms: int = WAIT_MS


def bound_of(options: argparse.Namespace) -> Bound:
    """The bound that the options name, or the defaults."""
    percent, wait_ms = options.max_waiting_percent, options.max_wait_ms
    return Bound(MOST_PERCENT if percent is None else percent, WAIT_MS if wait_ms is None else wait_ms)


def check_recommend(options: argparse.Namespace, folders: Sequence[str], confs: Sequence[Conf]) -> None:
    """Return if the options go together. confs: of the folders, none where they are wrong. Raises InputError."""
    given = [name for name in ("max_waiting_percent", "max_wait_ms") if getattr(options, name) is not None]
    if options.recommend is None:
        if given:
            raise InputError(f"--{given[0].replace('_', '-')}: needs --recommend DIR, for which it says what will do")
        return
    mistakes = [*_in_the_way(options, folders), *_of_bound(bound_of(options), confs)]
    target = local_path(options.recommend)
    if target is not None and any(target.is_relative_to(one) for one in map(local_path, folders) if one is not None):
        mistakes.append(
            f"--recommend: got {options.recommend}, inside the conf folder; allowed: a new folder elsewhere"
        )
    try:
        check_new(options.recommend, "--recommend")
    except InputError as error:
        if not mistakes:
            raise
        mistakes.append(str(error))
    if mistakes:
        raise InputError("\n".join(mistakes))


def _in_the_way(options: argparse.Namespace, folders: Sequence[str]) -> list[str]:
    mistakes = []
    if len(folders) > 1:
        mistakes.append(
            f"--conf-dir: got {len(folders)} with --recommend; allowed: one, which limits are looked for in"
        )
    if options.watch:
        mistakes.append("--watch: runs again and again, and --recommend writes a folder once; give one of them")
    if options.output is not None:
        mistakes.append("--output: keeps the tables of one run, and --recommend makes many; give one of them")
    if options.traffic == "admitted":
        mistakes.append("--traffic: got admitted with --recommend, which takes rows as what clients want; leave it out")
    return mistakes


def _of_bound(bound: Bound, confs: Sequence[Conf]) -> list[str]:
    mistakes = []
    if not 0 <= bound.most_percent < 100:
        mistakes.append(f"--max-waiting-percent: got {bound.most_percent:g}; allowed: from 0 to below 100, default 1")
    for conf in confs:
        timeout_ms = conf.settings.operator.send_timeout_ms
        if not 0 <= bound.wait_ms < timeout_ms:
            mistakes.append(
                f"--max-wait-ms: got {bound.wait_ms}; allowed: from 0 to below {timeout_ms} "
                "(operator.send_timeout_ms), when clients give up; default 1000"
            )
    return mistakes
