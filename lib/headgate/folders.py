"""Folders on disks and on object stores, read and written alike."""

import os
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path, PurePath, PurePosixPath
from typing import TYPE_CHECKING

from headgate.errors import InputError, TransientError
from headgate.store_errors import is_of_disk, said, unreached
from headgate.stores import (
    AT_FIRST,
    PATIENT,
    Patience,
    asked_again,
    content_of,
    file_system,
    is_stored,
    local_path,
)

if TYPE_CHECKING:
    import pyarrow.fs as pafs


_NAME_BYTES = 255
_NO_ROOM = "make space there, or set TMPDIR"


class Folder(ABC):
    """A folder, and files and folders right in it by their names. What is written appears whole.

    Every method raises OSError where it cannot be read or written.
    """

    @abstractmethod
    def names(self) -> list[str]:
        """Of what is in it, in order; none where the folder is not there."""

    @abstractmethod
    def read(self, name: str) -> bytes | None:
        """What a file holds, None where it is not there."""

    @abstractmethod
    def stamp(self, name: str) -> tuple[int, ...] | None:
        """What changes with every edit of a file, None where it is not there."""

    @abstractmethod
    def make(self) -> None:
        """Let the folder be there."""

    @abstractmethod
    def write(self, name: str, content: bytes, time_s: int | None = None) -> None:
        """A file, on a disk with this time of modification if there is one. A store knows its own time alone."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """Whether the file is there or not."""

    @abstractmethod
    def folder(self, name: str) -> "Folder":
        """The one in it of that name."""


def folder_at(place: str | Path, patience: Patience = PATIENT) -> Folder:
    """The folder at a place. Nothing is looked at yet. patience: for S3."""
    local = local_path(str(place))
    return _Stored(*file_system(str(place), patience), patience) if local is None else _OnDisk(local)


def folder_of(path: str, patience: Patience = PATIENT) -> tuple[Folder, str]:
    """The folder that a file is in, and its name there. patience: for S3."""
    folder, slash, name = path.rpartition("/")
    return folder_at(folder or slash or ".", patience), name


class _OnDisk(Folder):
    def __init__(self, path: Path) -> None:
        self._path = path

    def names(self) -> list[str]:
        try:
            return sorted(one.name for one in self._path.iterdir())
        except FileNotFoundError:
            return []

    def read(self, name: str) -> bytes | None:
        path = self._path / name
        if path.is_fifo():  # which nobody may ever write to
            raise OSError("a pipe")
        try:
            return path.read_bytes()
        except FileNotFoundError:
            if path.is_symlink():
                raise OSError(f"a link to {path.readlink()}, where nothing is") from None
            return None

    def stamp(self, name: str) -> tuple[int, ...] | None:
        path = self._path / name
        try:
            status = path.stat() if path.exists() else path.lstat()  # of a link that leads nowhere
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino

    def make(self) -> None:
        self._path.mkdir(parents=True, exist_ok=True)

    def write(self, name: str, content: bytes, time_s: int | None = None) -> None:
        unfinished = self._path / f".{name}"
        with unfinished.open("wb") as sink:
            sink.write(content)
            sink.flush()
            os.fsync(sink.fileno())
        if time_s is not None:
            os.utime(unfinished, (time_s, time_s))
        unfinished.rename(self._path / name)

    def remove(self, name: str) -> None:
        (self._path / name).unlink(missing_ok=True)

    def folder(self, name: str) -> Folder:
        return _OnDisk(self._path / name)


class _Stored(Folder):
    def __init__(self, files: "pafs.FileSystem", root: str, patience: Patience) -> None:
        self._files, self._root, self._patience = files, root, patience

    def names(self) -> list[str]:
        import pyarrow.fs as pafs  # noqa: PLC0415  heavy

        found = self._files.get_file_info(pafs.FileSelector(self._root, allow_not_found=True))
        return sorted(one.base_name for one in found)

    def read(self, name: str) -> bytes | None:
        try:
            return content_of(self._files, f"{self._root}/{name}", self._patience)
        except FileNotFoundError:
            return None

    def stamp(self, name: str) -> tuple[int, ...] | None:
        found = self._files.get_file_info(f"{self._root}/{name}")
        return (found.mtime_ns, found.size) if found.is_file else None

    def make(self) -> None:
        self._files.create_dir(self._root)

    def write(self, name: str, content: bytes, time_s: int | None = None) -> None:  # noqa: ARG002
        with self._files.open_output_stream(f"{self._root}/{name}") as sink:
            sink.write(content)

    def remove(self, name: str) -> None:
        with suppress(FileNotFoundError):
            self._files.delete_file(f"{self._root}/{name}")

    def folder(self, name: str) -> Folder:
        return _Stored(self._files, f"{self._root}/{name}", self._patience)


@contextmanager
def copied(place: str, before_copy: Callable[[int], object] = lambda _: None) -> Iterator[str]:
    """A folder or file of a store as a copy on this machine while the block runs, with the times of its files, and
    what is on this machine as it is. before_copy: is told how many bytes are to come, and may raise.

    Raises InputError for what is not there or cannot be read.
    """
    if not is_stored(place):
        yield place
        return
    with tempfile.TemporaryDirectory(prefix="headgate-") as scratch:
        try:
            path = _copy(place, Path(scratch), before_copy)
        except FileNotFoundError as error:
            raise InputError(f"nothing is at {place}; give a file or a folder that exists, not a pattern") from error
        except (OSError, ValueError) as error:
            if is_of_disk(error):
                raise TransientError(f"{place} cannot be copied to {scratch}: {said(error)}; {_NO_ROOM}") from error
            raise unreached(place, error) from error
        yield str(path)


def _copy(place: str, scratch: Path, before_copy: Callable[[int], object]) -> Path:
    import pyarrow.fs as pafs  # noqa: PLC0415  heavy

    at_first, root = file_system(place, AT_FIRST)
    target = scratch / root.rpartition("/")[2]
    found = at_first.get_file_info(root)
    files, _ = file_system(place)
    listed = [found] if found.is_file else files.get_file_info(pafs.FileSelector(root, recursive=True))
    stored = [(PurePosixPath(one.path).relative_to(root), one) for one in listed if one.is_file]
    is_table = any("_delta_log" in name.parts for name, _ in stored)  # to which all of it belongs
    stored = [(name, one) for name, one in stored if is_table or not is_hidden(name)]
    above = {folder for name, _ in stored for folder in name.parents}
    for name, one in stored:
        parts = one.path.removeprefix(f"{root}/").split("/")
        if wrong := _not_on_a_disk(parts) or ("others below it" if name in above else ""):
            raise InputError(f"{place}: {one.path} has {wrong}, which a file on a disk cannot have; rename it")
    before_copy(size := sum(one.size for _, one in stored))
    if size > (free := shutil.disk_usage(scratch).free):
        raise TransientError(
            f"{place} cannot be copied to {scratch}: it has {size / 2**20:,.1f} MiB, and {free / 2**20:,.1f} MiB are "
            f"free there; {_NO_ROOM}"
        )
    if not found.is_file:
        target.mkdir()
    for name, one in stored:
        to = target / name
        to.parent.mkdir(parents=True, exist_ok=True)
        asked_again(partial(_copy_file, files, one.path, to), PATIENT)
        os.utime(to, ns=(one.mtime_ns, one.mtime_ns))
    return target


def _not_on_a_disk(parts: list[str]) -> str:
    """What is wrong with the names in a key, empty for nothing."""
    if {"", ".", ".."} & set(parts):
        return "an empty name, . or .."
    return f"a name above {_NAME_BYTES} bytes" if max(len(part.encode()) for part in parts) > _NAME_BYTES else ""


def is_hidden(below: PurePath) -> bool:
    """Whether a file is no input. below: its path from the folder that was given."""
    return any(part.startswith((".", "_")) and part != ".." for part in below.parts)


def _copy_file(files: "pafs.FileSystem", path: str, to: Path) -> None:
    with files.open_input_stream(path, compression=None) as source, to.open("wb") as sink:  # as it is, .gz too
        shutil.copyfileobj(source, sink)
