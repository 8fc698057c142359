"""Where a job reads and writes: what cannot be meant is refused, and a checkpoint has one job at a time."""

import fcntl
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import glob
from pathlib import Path, PurePath

from headgate.errors import InputError, StateError, TableError, TransientError
from headgate.folders import folder_at
from headgate.store_errors import remedy
from headgate.stores import (
    BRIEF,
    check_address,
    check_reachable,
    is_stored,
    is_there,
    joined,
    local_path,
    scheme_of,
)

LEAST_FREE_BYTES = 1 << 28
"""Of a disk for tables: a run of a small trace fits."""
RUNNING, TRIED = ".running", ".tried"
"""Files that `headgate try` and `headgate replay` leave in their output: until they are through, and from then on."""
SHOWN_FOLDERS = 10
_PATTERN = re.compile(r"[{}\[\]*?]")
_ESCAPE = re.compile("%[0-9A-Fa-f]{2}")


def check_places(input_: str, output: str, checkpoint: str | None, *, files: bool) -> None:
    """Raise InputError for a place that cannot be meant, StateError for a checkpoint that is damaged.

    Empty names, tables or a checkpoint inside the folder that is read (`files`), and an output that delta-rs would look
    for elsewhere.
    """
    written = _written(output, checkpoint)
    places = {"--input": input_} | written
    for option, place in places.items():
        if not place.strip():
            raise InputError(f"{option}: got an empty name; give a folder" + (" or topic" * (option == "--input")))
    for option, place in places.items():
        if files or option != "--input":
            check_address(place, option)
    _check_escape(output, "--output")
    if files:
        for option, place in written.items():
            check_outside(place, option, input_, "--input")
        check_reachable(input_, "--input")
    check_folders(output, checkpoint)


def check_outside(place: str, option: str, input_: str, read_option: str) -> None:
    """Raise InputError for a place to write to in what is read. option, read_option: how these were given."""
    if _holds(input_, place):
        raise InputError(
            f"{option}: got {place}, which is in the {read_option} {input_}, and what is written there would be read "
            "as input; give a folder outside of it"
        )


def check_folders(output: str, checkpoint: str | None) -> None:
    """Raise InputError for an output or a checkpoint that is no folder, or on a store that refuses, AwayError for a
    store that does not answer, StateError for a checkpoint that is damaged. Folders that are not there yet pass.
    """
    for option, place in _written(output, checkpoint).items():
        check_reachable(place, option)
        if os.path.isfile(local_path(place) or ""):  # noqa: PTH113  of any length, wherever it is
            raise InputError(f"{option}: {place} is a file; give a folder")
    if checkpoint is not None:
        _check_metadata(checkpoint)


def _written(output: str, checkpoint: str | None) -> dict[str, str]:
    return {"--output": output} | ({} if checkpoint is None else {"--checkpoint": checkpoint})


def _check_metadata(checkpoint: str) -> None:
    """Raise StateError for a checkpoint whose file `metadata` is damaged: Spark's message does not name it."""
    with suppress(OSError):  # of a file that cannot be read Spark has more to say
        content = folder_at(checkpoint, BRIEF).read("metadata")
        try:
            if content is not None:
                json.loads(content)["id"]
        except (ValueError, TypeError, KeyError) as error:
            raise StateError(
                f"the checkpoint {checkpoint} cannot be read: its file metadata is damaged; put it back from a copy, "
                "or start with a new --output and --checkpoint, and read the input again"
            ) from error


def _check_escape(output: str, option: str) -> None:
    if escape := _ESCAPE.search(str(local_path(output) or output)):
        raise InputError(
            f"{option}: got {output}, where {escape[0]} in the path reads as another character to delta-rs; give a "
            "folder without it"
        )


def check_there(input_: str, option: str) -> None:
    """Raise InputError where nothing is at a path or pattern on this machine, or a path on a store. option: how it was
    given.
    """
    if scheme_of(input_) == "file":
        raise InputError(f"{option}: got {input_}; allowed are a path, file:///PATH and an address of a store")
    if is_stored(input_) and not _PATTERN.search(input_):
        check_reachable(input_, option)
        if not is_there(input_):
            raise InputError(f"{option}: nothing is at {input_}; give a file or a folder that exists")
    if not scheme_of(input_) and not (Path(input_).exists() or glob(input_)):  # noqa: PTH207  as written
        raise InputError(f"{option}: nothing is at {input_}; give a file, a folder or a pattern that exists")


def check_checkpoint(place: str) -> None:
    """Raise InputError where no checkpoint of a job is."""
    check_reachable(place, "--checkpoint")
    if not is_there(joined(place, "metadata")):
        raise InputError(f"--checkpoint: {place} is no checkpoint; give that of a job that has finished a batch")


def check_new(output: str, option: str = "--output") -> None:
    """Raise InputError for an output folder that holds anything, that delta-rs would look for elsewhere, or that cannot
    be made on this machine; nothing is made.

    option: how it was given.
    """
    allowed = "give a new or an empty folder"
    if not output.strip():
        raise InputError(f"{option}: got {output!r}; {allowed}")
    check_reachable(output, option)
    place = local_path(output)
    if place is None:
        if folder_at(output).names():
            raise InputError(f"{option}: {output} is there and not empty; {allowed}")
        return
    _check_escape(output, option)
    try:
        if place.exists() and not place.is_dir():
            raise InputError(f"{option}: {output} is a file; {allowed}")
        if place.is_dir() and any(place.iterdir()):
            left = " (a run writes there, failed or was killed)" if tried(output) == RUNNING else ""
            raise InputError(f"{option}: {output} is there and not empty{left}; {allowed}")
    except OSError as error:
        raise InputError(f"{option}: {output} cannot be read: {error.strerror}; {allowed}") from error
    check_writable(output, option)


def check_writable(output: str, option: str = "--output") -> None:
    """Raise InputError for an output that cannot be made on this machine, TransientError where its disk is full or
    read-only.
    """
    place = local_path(output)
    if place is None:
        return
    above = next(folder for folder in (place, *place.parents) if folder.exists())
    if not above.is_dir() or not os.access(above, os.W_OK):
        raise _not_writable(f"{option}: {output} cannot be written: {above}", above)
    free = shutil.disk_usage(above).free
    if free < LEAST_FREE_BYTES:
        raise TransientError(
            f"{option}: {above} has {free >> 20:,} MiB free; allowed: at least {LEAST_FREE_BYTES >> 20:,} MiB; make "
            "space, or give a folder on another disk"
        )


def _not_writable(what: str, place: Path) -> InputError:
    if not place.is_dir():
        return InputError(f"{what} is a file; give another folder")
    if os.statvfs(place).f_flag & os.ST_RDONLY:
        return TransientError(f"{what} is on a disk that is read-only; make it writable, or give another folder")
    return InputError(f"{what} is not writable for this user; give it the right to, or give another folder")


def check_tables_here(output: str) -> None:
    """Raise TableError where no table is right in a folder of this machine but folders in it have some, with these."""
    place = local_path(output)
    if place is None or any(place.glob("*/_delta_log")):
        return  # `headgate tables` lists what is on a store
    below = sorted({str(Path(output, log.parents[1].relative_to(place))) for log in place.glob("*/*/_delta_log")})
    if below:
        more = f" and {len(below) - SHOWN_FOLDERS:,} more" if len(below) > SHOWN_FOLDERS else ""
        raise TableError(
            f"no table is right in {output}; give one of the folders that have some: "
            f"{', '.join(below[:SHOWN_FOLDERS])}{more}"
        )


def tried(output: str) -> str:
    """What `headgate try` and `headgate replay` say of an output: RUNNING, TRIED, or nothing: it is none of theirs."""
    place = local_path(output)
    of_one_or_several = () if place is None else (place, place.parent)
    return next((mark for mark in (RUNNING, TRIED) for folder in of_one_or_several if (folder / mark).exists()), "")


@contextmanager
def sole_use(folder: str, broker: str | None = None) -> Iterator[None]:
    """Raise StateError if another job of this user on this machine has the checkpoint, or the output, in use. broker:
    the one that the job is for, None: every one.

    The lock goes with the process that holds it, however that ends. Its file is where temporary files are: a job that
    is refused leaves nothing where its tables would be.
    """
    digest = hashlib.sha256(str(local_path(folder) or folder.rstrip("/")).encode()).hexdigest()[:16]
    with (Path(tempfile.gettempdir()) / f"headgate-{os.getuid()}-{digest}.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            remedy = (
                "or give another --output (jobs/throttle.py: or --broker where each broker has a job)"
                if broker is None
                else f"since a broker has one job, or give the --broker that is meant, if that is not {broker}"
            )
            raise StateError(f"another job is running on {folder}: stop it first, {remedy}") from error
        yield


def _holds(read: str, place: str) -> bool:
    """Whether `place` is in what is read: a folder, or a pattern of folders."""
    folder, inside = _tree(read), _tree(place)
    return inside.is_relative_to(folder) or any(part.match(str(folder)) for part in (inside, *inside.parents))


def _tree(place: str) -> PurePath:
    """What is in a folder of another place is not in it, whatever the names."""
    return local_path(place) or PurePath("/", place.rstrip("/"))


@contextmanager
def claimed(output: str | None) -> Iterator[None]:
    """While the block runs, no other run takes the folder `output`, which is made. Raises InputError where it cannot
    be made or written to, or another run has it. A run without tables leaves no folder; one that fails leaves the mark
    of a run that is not through. None, and a folder elsewhere: nothing to do.
    """
    if output is None or (place := local_path(output)) is None:
        yield
        return
    claim = place / RUNNING
    is_new = not claim.parent.exists()
    try:
        claim.parent.mkdir(parents=True, exist_ok=True)
        claim.touch(exist_ok=False)
    except FileExistsError as error:
        raise InputError(
            f"--output: {output} is a file, or another run writes there; give a new or an empty folder"
        ) from error
    except OSError as error:
        raise InputError(
            f"--output: {output} cannot be written: {error.strerror}; {remedy(error, 'give a new or an empty folder')}"
        ) from error
    is_through = False
    try:
        yield
        is_through = True
    finally:
        if any(claim.parent.glob("**/_delta_log")):
            if is_through:
                claim.replace(claim.with_name(TRIED))
        else:
            claim.unlink(missing_ok=True)
            if is_new:
                with suppress(OSError):  # something else is there
                    claim.parent.rmdir()
