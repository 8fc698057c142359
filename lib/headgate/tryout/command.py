"""`headgate try`: checks what it was asked for, all of it at once; what runs the rules is imported after that."""

import argparse
from collections.abc import Callable, Mapping, Sequence

from headgate.conf import Conf
from headgate.errors import ConfError, HeadgateError, InputError
from headgate.replay.folders import load_folders
from headgate.rows.listing import STDIN
from headgate.tryout.inputs import Source, check_new, check_patience, format_of
from headgate.tryout.watch import Watched

DEFAULT_FOLDER = "conf"


def run(options: argparse.Namespace) -> int:
    """Exit status 0, or session.STOPPED where Ctrl-C came before the end of the trace.

    Raises HeadgateError with all that is wrong before anything ran. Under --watch conf files may be wrong.
    """
    folders = options.conf_dir or [DEFAULT_FOLDER]
    watched = Watched(folders) if options.watch else None  # before the files are read: no edit is missed
    confs, source = _checked(options, folders)
    from headgate.tryout.session import Session, ended_by_signals  # noqa: PLC0415  numba, pyarrow: half a second

    with ended_by_signals() as stop, Session(source, folders, options.output, options.traffic, stop) as session:
        return session.run(confs) if watched is None else session.watch(confs, watched)


Confs = Mapping[str, Conf] | ConfError


def _checked(options: argparse.Namespace, folders: Sequence[str]) -> tuple[Confs, Source | None]:
    """The confs by name, and where the rows come from, None: the bundled trace."""
    mistakes: list[str] = []
    confs: Confs = {}
    try:
        confs = load_folders(folders)
    except ConfError as error:
        confs = error
        if not options.watch:
            mistakes.append(str(error))
    source = _or_mistake(lambda: _source(options), mistakes)
    _or_mistake(lambda: _check_output(options), mistakes)
    if mistakes:
        raise HeadgateError("\n".join(mistakes))
    return confs, source


def _or_mistake(get: Callable[[], Source | None], mistakes: list[str]) -> Source | None:
    try:
        return get()
    except HeadgateError as error:
        mistakes.append(str(error))
    return None


def _source(options: argparse.Namespace) -> Source | None:
    if options.path is None:
        if options.format is not None:
            raise InputError("--format: needs a PATH, as the bundled trace has a format of its own")
        return None
    if options.path == STDIN and options.watch:
        raise InputError(
            "PATH: got - (stdin), which cannot be read again; allowed with --watch: files or a Delta table"
        )
    format_ = options.format or format_of(options.path)
    check_patience(options.path, format_)
    return Source(options.path, format_)


def _check_output(options: argparse.Namespace) -> None:
    if options.output is None:
        return
    if options.watch:
        raise InputError("--output: keeps the tables of one run, and --watch makes many; give one of them")
    check_new(options.output)
