"""`headgate try`: checks what it was asked for, all of it at once; what runs the rules is imported after that."""

import argparse
import signal
from collections.abc import Sequence
from contextlib import ExitStack

from headgate.engines.stops import Stop, handled
from headgate.errors import ConfError, InputError, Mistakes
from headgate.folders import copied
from headgate.places import check_new, check_outside, check_there
from headgate.rows.headers import check_headers
from headgate.rows.listing import (
    STDIN,
    SUFFIXES,
    TEXT_FORMATS,
    check_delta,
    endings_of,
    format_of,
    found_files,
    is_delta,
)
from headgate.stores import is_stored
from headgate.tryout.bound import bound_of, check_recommend
from headgate.tryout.folders import Loaded, loaded
from headgate.tryout.inputs import Source, check_patience
from headgate.tryout.watch import Watched

DEFAULT_FOLDER = "conf"


def run(options: argparse.Namespace) -> int:
    """Exit status 0, or stops.STOPPED where a signal came before the end of the trace.

    Raises HeadgateError with all that is wrong before anything ran. An input on a store is looked at once nothing
    else is wrong: nobody waits for it in vain. Under --watch conf files may be wrong.
    """
    folders = options.conf_dir or [DEFAULT_FOLDER]
    watched = Watched(folders) if options.watch else None  # before the files are read: no edit is missed
    mistakes = Mistakes()
    found = _checked(options, folders, mistakes)
    place = options.path if options.path is not None and is_stored(options.path) else None
    if place is not None:
        mistakes.raise_all()
        check_there(place, "PATH")
    with ExitStack() as stack:

        def begin(_: int) -> None:
            """From now on signals would leave files in TMPDIR; before, they end a wait for the store at once."""
            stack.enter_context(handled(signal.default_int_handler))

        if place is None:
            begin(0)
        if options.path is not None:
            options.path = stack.enter_context(copied(options.path, begin))
        source = None
        with mistakes.collected():
            source = _source(options, place)
        mistakes.raise_all()
        return _run(options, folders, found, source, watched)


def _run(
    options: argparse.Namespace, folders: Sequence[str], found: Loaded, source: Source | None, watched: Watched | None
) -> int:
    if options.recommend is not None:
        from headgate.tryout.recommend_session import recommend_limits  # noqa: PLC0415  as below

        return recommend_limits(source, folders[0], options.recommend, bound_of(options), found)
    from headgate.tryout.session import Session, ended_by_signals  # noqa: PLC0415  numba, pyarrow: half a second

    stop = Stop()
    with Session(source, folders, options.output, options.traffic, stop) as session:
        if not isinstance(found.confs, ConfError):
            session.load_rules(found.confs)  # compiling is broken off by Ctrl-C, a run ends with its batch
        with ended_by_signals(stop):
            return session.run(found) if watched is None else session.watch(found, watched)


def _checked(options: argparse.Namespace, folders: Sequence[str], mistakes: Mistakes) -> Loaded:
    """The confs. What is wrong with them, or with options other than PATH, goes to `mistakes`."""
    found = loaded(folders, strict=options.strict)
    with mistakes.collected():
        if isinstance(found.confs, ConfError) and not options.watch:
            raise found.confs
    with mistakes.collected():
        _check_output(options)
    with mistakes.collected():
        check_recommend(options, folders, [] if isinstance(found.confs, ConfError) else list(found.confs.values()))
    return found


def _check_output(options: argparse.Namespace) -> None:
    if options.output is None:
        return
    if options.watch:
        raise InputError("--output: keeps the tables of one run, and --watch makes many; give one of them")
    check_new(options.output)
    if options.path not in {None, STDIN}:
        check_outside(options.output, "--output", options.path, "PATH")


def _source(options: argparse.Namespace, place: str | None) -> Source | None:
    if options.path is None:
        if options.format is not None:
            raise InputError("--format: needs a PATH, as the bundled trace has a format of its own")
        return None
    if options.path == STDIN and options.watch:
        raise InputError(
            "PATH: got - (stdin), which cannot be read again; allowed with --watch: files or a Delta table"
        )
    given = place or options.path
    if options.path != STDIN and not is_delta(options.path):  # which may have no file yet
        found_files(options.path, f"PATH: {given}")
    format_ = options.format or _format_of(options.path, given)
    if options.path == STDIN and format_ not in TEXT_FORMATS:
        raise InputError(
            f"--format: got {format_} with PATH - (stdin); allowed there: json or csv; give a file instead"
        )
    if format_ == "delta":
        check_delta(options.path, "PATH", given)
    check_headers(options.path, format_, "PATH", given)
    check_patience(options.path, format_, given)
    return Source(options.path, format_, place=place)


def _format_of(path: str, given: str) -> str:
    format_ = format_of(path)
    if format_ is None:
        got = ", ".join(sorted(ending or "none" for ending in endings_of(path)))
        raise InputError(
            f"PATH: the format of {given} cannot be told from the endings of its files; got {got}; allowed: "
            f"one of {', '.join(SUFFIXES)} for all of them; give --format json, csv or parquet"
        )
    return format_
