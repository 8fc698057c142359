"""Appended rows of a small Delta table as text files, which cost a query far less than a stream of the table.

The life of a row, and what a kill -9 at each arrow leaves behind:

    append to the table -> file of the feed -> log of Spark's source -> batch -> commit of the batch -> file deleted
                        1                   2                        3       4                       5

1. The row is in a version that no file has: `begin` of the next start writes the file. A file that was being written
   has a hidden name, which Spark does not list; `begin` deletes it.
2. The file is there: Spark lists it.
3. and 4. Spark runs the batch again, with the files that its log names. They are there, for files are deleted after the
   commit alone; if somebody deleted them, `begin` writes them again, with the same rows.
5. Spark may not have deleted the file: `begin` does. Its log names the file, so it is never read again.

That log grows with each file, so a start shortens it: its checksum goes, then it is replaced as a whole. A kill in
between leaves it as it was, unchecked. What is left out are names of files that are done, and deleted by then.

How far the feed is stands in the names of its files, and of those that are deleted in the log of Spark's source. No
engine here: a Delta table and two folders.
"""

import base64
import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import PurePath
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from headgate.arrow.blocks import decode, encode
from headgate.errors import StateError, TableError
from headgate.folders import Folder, folder_at
from headgate.store_errors import remedy, said
from headgate.stores import BRIEF, SCHEMES, content_of, file_system_of, joined, local_path, scheme_of
from headgate.tables.query import CLEANED_EVERY, rows_of_file

PATTERN = re.compile(r"[\\{}\[\]*?]")
"""What Spark takes for a pattern in a path. Among several paths Spark 4.2 then reads files more than once."""
COMPACT = ".compact"
"""How the name of a file in Spark's log ends that has all that is in those before it."""
NAMES_LEFT = 3600
"""In a log that is shortened: what is open, and what the last batches have read."""
VERSIONS_IN_MEMORY = 3600
"""Of files up to so many versions behind the newest Spark knows whether it has read them; it reads no older ones."""


class Feed:
    """Every row that is appended to a Delta table is in exactly one file of `folder`.

    A file is named by the last version that it holds, holds all after that of the file before it, and appears whole.
    Files appear in the order of versions, and a query that lists the folder sees no file without those before it. A
    commit that deletes rows, and one that only joins files, brings nothing.

    On a disk a file's time of modification is its version, in seconds: what Spark takes for old depends on no clock.
    On a store it is the store's time of writing, which grows as well.

    The table's log is cleaned here alone, of entries that a file has: no other writer cleans it (LOG_CLEANING).
    """

    def __init__(self, table: str, schema: pa.Schema, checkpoint: str) -> None:
        """table: what the output folder has by this name. checkpoint: of the one query that reads the feed.

        Raises StateError for a checkpoint that read the table in another way, or cannot be read.
        """
        self.name = table.rstrip("/").rpartition("/")[2]
        self._table = table
        self._schema = schema
        _check_no_pattern(checkpoint)
        self._checkpoint = folder_at(checkpoint)
        self._folder = self._checkpoint.folder("feed").folder(self.name)
        self.place = joined(str(local_path(checkpoint) or checkpoint), f"feed/{self.name}")
        """Of the folder, for Spark."""
        self._fed = self._cleaned = -1
        self._may_feed_beside = True
        self._lock = threading.Lock()
        self._check_kind(checkpoint)

    def begin(self) -> None:
        """Before each start of the query, which must not be running: mend what the last one left, and feed."""
        with self._written():
            self._files, self._root = file_system_of(DeltaTable(self._table).table_uri)
            self._folder.make()
            planned = _planned(self._checkpoint, self.name)
            names = self._folder.names()
            present = {_version(name) for name in names if not name.startswith(".")}
            for name in names:
                if name.startswith(".") or (planned is not None and _version(name) <= planned.done):
                    self._folder.remove(name)
            if planned is not None:
                self._write_again(planned, present)
                if scheme_of(self.place) != "abfss":  # where a file is empty from its opening on until it is whole
                    _shorten_log(planned)
        self._fed = max([-1 if planned is None else planned.last, *present])
        self._check_log()
        self.feed()

    def feed(self) -> None:
        """Between two batches, while Spark does not list the folder: all that is new, in one file."""
        with self._lock:
            self._feed()
            self._may_feed_beside = True

    def feed_beside(self) -> None:
        """From another thread while the query runs: all that is new, but at most one file between two batches.

        Of two files that appear while Spark lists the folder, it may see the second alone.
        """
        with self._lock:
            if self._may_feed_beside:
                self._may_feed_beside = not self._feed()

    def _feed(self) -> bool:
        """Whether there was anything; without, this is one look for one file."""
        last, rows = self._fed, []
        while (added := self._rows_of(last + 1)) is not None:
            last += 1
            rows += added
        if rows:
            with self._written():
                self._write(last, rows)
        self._fed = last
        if last - self._cleaned >= CLEANED_EVERY:
            self._clean_log()
            self._cleaned = last
        return bool(rows)

    def _clean_log(self) -> None:
        """Delete entries as old as the table's properties say; all that are so old are fed."""
        try:
            DeltaTable(self._table).cleanup_metadata()
        except (DeltaError, OSError) as error:
            raise self._unreadable(error) from error

    def _write_again(self, planned: "_Planned", present: set[int]) -> None:
        """Files of the batch that may have to be run again, where somebody deleted them."""
        before = planned.done
        for last in planned.open:
            if last not in present:
                self._write(last, [row for version in range(before + 1, last + 1) for row in self._rows_again(version)])
            before = last

    def _rows_again(self, version: int) -> list[pa.Table]:
        rows = self._rows_of(version)
        if rows is None:
            raise self._gone(version)
        return rows

    def _write(self, last: int, rows: list[pa.Table]) -> None:
        lines = base64.b64encode(encode(pa.concat_tables(rows).combine_chunks()))
        self._folder.write(f"{last:020d}.txt", lines, time_s=last + 1)

    @contextmanager
    def _written(self) -> Iterator[None]:
        """Turn what fails inside into a TableError: a later start may do, so it is no StateError."""
        try:
            yield
        except (DeltaError, OSError) as error:
            raise TableError(
                f"rows of the table {self._table} cannot be brought to {self.place}: {said(error)}; see to it that "
                "both can be read and written, and restart on the same checkpoint, which goes on where it stopped"
            ) from error

    def _rows_of(self, version: int) -> list[pa.Table] | None:
        """The rows that a version of the table added, None: there is no such version in its log."""
        try:
            lines = content_of(self._files, f"{self._root}/_delta_log/{version:020d}.json").splitlines()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._unreadable(error) from error
        try:
            actions = [json.loads(line) for line in lines if line.strip()]
            if any(action["remove"].get("dataChange", True) for action in actions if "remove" in action):
                return []
            added = [action["add"] for action in actions if "add" in action]
            paths = [f"{self._root}/{unquote(add['path'])}" for add in added if add.get("dataChange", True)]
            return [rows_of_file(self._files, path, self._schema) for path in paths]
        except (OSError, ValueError, pa.ArrowException) as error:
            raise self._unreadable(error) from error

    def _check_kind(self, checkpoint: str) -> None:
        """A first batch always has rows of the feed, so a checkpoint without them was begun before there was one."""
        try:
            has_begun = _last_number(self._checkpoint.folder("offsets")) is not None
            is_of_another = has_begun and _planned(self._checkpoint, self.name) is None
        except OSError as error:
            otherwise = (
                "see to it that its files can be read, and restart; what is gone or damaged has to come from a copy, "
                "or start with a new --output and --checkpoint, and read the input again"
            )
            raise StateError(
                f"the checkpoint {checkpoint} cannot be read: {said(error)}; {remedy(error, otherwise)}"
            ) from error
        if is_of_another:
            raise StateError(
                f"the checkpoint {checkpoint} was begun by a version of headgate that read the table {self.name} in "
                "another way, and cannot be continued by this one: start with a new --checkpoint and a new --output, "
                "and give the input from its start; or go on with the version that began it"
            )

    def _check_log(self) -> None:
        """Raise StateError where the log of the table no longer has what is to be fed next."""
        try:
            newest = DeltaTable(self._table).version()
        except (DeltaError, OSError) as error:
            raise self._unreadable(error) from error
        if self._fed < newest and self._rows_of(self._fed + 1) is None:
            raise self._gone(self._fed + 1)

    def _gone(self, version: int) -> StateError:
        return StateError(
            f"the log of the table {self._table} no longer has version {version}, whose rows no batch has read: "
            "restore its _delta_log, or start with a new --checkpoint and --output"
        )

    def _unreadable(self, error: Exception) -> TableError:
        return TableError(
            f"new rows of the table {self._table} cannot be read: {said(error)}; see to it that the table can be read, "
            "and restart on the same checkpoint, which goes on where it stopped"
        )


def fed_rows(
    pack: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """What `pack` makes of the rows in lines of the feed."""
    for lines in batches:
        tables = [decode(base64.b64decode(line)) for line in lines.column("value").to_pylist()]
        if tables:
            yield from pack(iter(pa.concat_tables(tables).combine_chunks().to_batches()))


def _check_no_pattern(checkpoint: str) -> None:
    folder = local_path(checkpoint)
    if not (folder or scheme_of(checkpoint) in SCHEMES) or PATTERN.search(str(folder or checkpoint)):
        raise StateError(
            f"--checkpoint: got {checkpoint}; allowed is a folder on a disk that is mounted here and on all workers, "
            "or on an object store, whose path holds none of {}[]*?\\"
        )


class _LogFile(NamedTuple):
    """A file of a source's log. entries: the newest NAMES_LEFT. older: how many there are before them."""

    name: str
    version: bytes
    older: int
    entries: list[bytes]


class _Planned(NamedTuple):
    """What Spark's source has in its log. done: the last version that a committed batch has read. last: the last that
    is in the log. open: the last versions of files after `done`, in their order. compact: its newest file that has all
    that is in those before it, if there is one.
    """

    log: Folder
    compact: _LogFile | None
    done: int
    last: int
    open: list[int]


def _planned(checkpoint: Folder, name: str) -> _Planned | None:
    """None where no source of the checkpoint reads a feed of that name."""
    sources = checkpoint.folder("sources")
    for source in sources.names():
        committed = _committed_offset(checkpoint, int(source))
        log = sources.folder(source)
        files = _newest_files(log, f"sources/{source}", committed)
        entries = [entry for entry in _entries(files, f"sources/{source}") if _is_of_feed(entry, name)]
        if entries:
            of_feed = [(entry["batchId"], _version(_path(entry).name)) for entry in entries]
            done = [version for batch, version in of_feed if batch <= committed]
            left = {version for batch, version in of_feed if batch > committed}
            last = max(version for _, version in of_feed)
            compact = _newest_compact(log, f"sources/{source}")
            return _Planned(log, compact, max(done, default=-1), last, sorted(left))
    return None


def _newest_compact(log: Folder, place: str) -> _LogFile | None:
    """Raises OSError where it is damaged."""
    compact = [name.removesuffix(COMPACT) for name in log.names() if name.endswith(COMPACT)]
    newest = max((int(name) for name in compact if name.isdecimal()), default=None)  # others are hidden
    if newest is None:
        return None
    file = _log_file(log, place, f"{newest}{COMPACT}")
    if not _entries([file], place):
        raise _damaged(f"{place}/{file.name}")
    return file


def _shorten_log(planned: _Planned) -> None:
    """Leave the newest NAMES_LEFT in the newest compact file, of which Spark writes ever larger ones."""
    compact = planned.compact
    if compact is not None and compact.older > NAMES_LEFT:
        planned.log.remove(f".{compact.name}.crc")  # Hadoop's checksum, on disks
        planned.log.write(compact.name, b"\n".join([compact.version, *compact.entries]))


def _log_file(log: Folder, place: str, name: str) -> _LogFile:
    """place: of the log in the checkpoint. Raises OSError where the file is gone or damaged."""
    before, *entries = _content(log, place, name).rstrip(b"\n").rsplit(b"\n", NAMES_LEFT)
    version, _, older = before.partition(b"\n")
    if not version.lstrip(b"\0").startswith(b"v"):  # Kafka's log begins with a zero
        raise _damaged(f"{place}/{name}")
    return _LogFile(name, version, older.count(b"\n") + bool(older), entries)


def _committed_offset(checkpoint: Folder, source: int) -> int:
    """Up to where the log of a source is in committed batches, -1: none is."""
    batch = _last_number(checkpoint.folder("commits"))
    if batch is None:
        return -1
    content = _content(checkpoint.folder("offsets"), "offsets", str(batch))
    try:
        line = content.decode().splitlines()[2 + source]  # behind a version and a conf
        offset = json.loads(line) if line != "-" else {}
        number = offset.get("logOffset", -1) if isinstance(offset, dict) else -1
        return -1 if isinstance(number, dict) else int(number)  # of a Kafka topic with this name
    except (ValueError, TypeError, IndexError) as error:
        raise _damaged(f"offsets/{batch}") from error


def _content(folder: Folder, place: str, name: str) -> bytes:
    """Raises FileNotFoundError."""
    content = folder.read(name)
    if content is None:
        raise FileNotFoundError(f"its file {place}/{name} is gone")
    return content


def _damaged(name: str) -> OSError:
    return OSError(f"its file {name} is damaged")


def _newest_files(log: Folder, place: str, committed: int) -> list[_LogFile]:
    """Of a source's log, from the last committed one on."""
    names = {int(name.partition(".")[0]): name for name in log.names() if name.partition(".")[0].isdecimal()}
    first = max((number for number in names if number <= committed), default=-1)
    return [_log_file(log, place, names[number]) for number in sorted(names) if number >= first]


def _entries(files: Iterable[_LogFile], place: str) -> list[dict[str, Any]]:
    """Those of a log; other sources than files have none. Raises OSError where one of its files is damaged."""
    found: list[tuple[str, Any]] = []
    for file in files:
        try:
            entries = [json.loads(line) for line in file.entries]
        except ValueError as error:
            raise _damaged(f"{place}/{file.name}") from error
        if not entries:
            raise _damaged(f"{place}/{file.name}")
        found += [(file.name, entry) for entry in entries]
    if not any(_is_of_files(entry) for _, entry in found):  # offsets of a Kafka topic, which may have this name
        return []
    for name, entry in found:
        if not (_is_of_files(entry) and isinstance(entry.get("batchId"), int)):
            raise _damaged(f"{place}/{name}")
    return [entry for _, entry in found]


def _is_of_files(entry: Any) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("path"), str)


def _is_of_feed(entry: dict[str, Any], name: str) -> bool:
    return _path(entry).parts[-3:-1] == ("feed", name)


def _path(entry: dict[str, Any]) -> PurePath:
    return PurePath(unquote(urlsplit(entry["path"]).path))


def _version(name: str) -> int:
    return int(name.partition(".")[0])


def has_open_batch(checkpoint: str) -> bool:
    """Whether Spark has noted a batch in a checkpoint, and not that it is done. Raises OSError."""
    folder = folder_at(checkpoint, BRIEF)
    return _last_number(folder.folder("offsets")) != _last_number(folder.folder("commits"))


def _last_number(folder: Folder) -> int | None:
    return max((int(name) for name in folder.names() if name.isdecimal()), default=None)
