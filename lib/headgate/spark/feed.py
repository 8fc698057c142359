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

How far the feed is stands in the names of its files, and of those that are deleted in the log of Spark's source. No
engine here: a Delta table and two folders.
"""

import base64
import json
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from headgate.arrow.blocks import decode, encode
from headgate.errors import StateError, TableError
from headgate.places import local_path
from headgate.tables.query import CLEANED_EVERY

PATTERN = re.compile(r"[\\{}\[\]*?]")
"""What Spark takes for a pattern in a path. Among several paths Spark 4.2 then reads files more than once."""
VERSIONS_IN_MEMORY = 3600
"""Of files up to so many versions behind the newest Spark knows whether it has read them; it reads no older ones."""


class Feed:
    """Every row that is appended to a Delta table is in exactly one file of `folder`.

    A file is named by the last version that it holds, holds all after that of the file before it, and appears whole.
    Files appear in the order of versions, and a query that lists the folder sees no file without those before it. A
    commit that deletes rows, and one that only joins files, brings nothing.

    A file's time of modification is its version, in seconds: what Spark takes for old depends on no clock.

    The table's log is cleaned here alone, of entries that a file has: no other writer cleans it (LOG_CLEANING).
    """

    def __init__(self, table: str, schema: pa.Schema, checkpoint: str) -> None:
        """table: what the output folder has by this name. checkpoint: of the one query that reads the feed.

        Raises StateError for a checkpoint that read the table in another way.
        """
        self.name = table.rstrip("/").rpartition("/")[2]
        self._table = table
        self._schema = schema
        self._checkpoint = _folder_of(checkpoint)
        self.folder = self._checkpoint / "feed" / self.name
        self._fed = self._cleaned = -1
        self._may_feed_beside = True
        self._lock = threading.Lock()
        self._check_kind(checkpoint)

    def begin(self) -> None:
        """Before each start of the query, which must not be running: mend what the last one left, and feed."""
        self._files, self._root = _file_system(self._table)
        self.folder.mkdir(parents=True, exist_ok=True)
        planned = _planned(self._checkpoint, self.name)
        present = {_version(file): file for file in self.folder.iterdir() if not file.name.startswith(".")}
        for unfinished in self.folder.glob(".*"):
            unfinished.unlink()
        for version, file in present.items():
            if planned is not None and version <= planned.done:
                file.unlink(missing_ok=True)
        if planned is not None:
            self._write_again(planned)
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
            self._write(self.folder / f"{last:020d}.txt", last, rows)
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

    def _write_again(self, planned: "_Planned") -> None:
        """Files of the batch that may have to be run again, where somebody deleted them."""
        before = planned.done
        for file in planned.open:
            if not file.exists():
                rows = [row for version in range(before + 1, _version(file) + 1) for row in self._rows_again(version)]
                file.parent.mkdir(parents=True, exist_ok=True)
                self._write(file, _version(file), rows)
            before = _version(file)

    def _rows_again(self, version: int) -> list[pa.Table]:
        rows = self._rows_of(version)
        if rows is None:
            raise self._gone(version)
        return rows

    def _write(self, file: Path, version: int, rows: list[pa.Table]) -> None:
        unfinished = file.with_name(f".{file.name}")
        with unfinished.open("wb") as sink:
            sink.write(base64.b64encode(encode(pa.concat_tables(rows).combine_chunks())))
            sink.flush()
            os.fsync(sink.fileno())
        os.utime(unfinished, (version + 1, version + 1))
        unfinished.rename(file)

    def _rows_of(self, version: int) -> list[pa.Table] | None:
        """The rows that a version of the table added, None: there is no such version in its log."""
        try:
            with self._files.open_input_stream(f"{self._root}/_delta_log/{version:020d}.json") as commit:
                lines = commit.read().splitlines()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._unreadable(error) from error
        try:
            actions = [json.loads(line) for line in lines if line.strip()]
            if any(action["remove"].get("dataChange", True) for action in actions if "remove" in action):
                return []
            added = [action["add"] for action in actions if "add" in action]
            return [self._read(unquote(add["path"])) for add in added if add.get("dataChange", True)]
        except (OSError, ValueError, pa.ArrowException) as error:
            raise self._unreadable(error) from error

    def _read(self, path: str) -> pa.Table:
        with self._files.open_input_file(f"{self._root}/{path}") as file:
            rows = pq.ParquetFile(file, coerce_int96_timestamp_unit="us").read(use_threads=False)
        columns = [
            rows[field.name].cast(field.type) if field.name in rows.column_names else pa.nulls(len(rows), field.type)
            for field in self._schema
        ]
        return pa.table(columns, schema=self._schema)

    def _check_kind(self, checkpoint: str) -> None:
        """A first batch always has rows of the feed, so a checkpoint without them was begun before there was one."""
        if _last_number(self._checkpoint / "offsets") is not None and _planned(self._checkpoint, self.name) is None:
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
        lines = str(error).splitlines() or [type(error).__name__]
        return TableError(
            f"new rows of the table {self._table} cannot be read: {lines[0]}; see to it that the table can be read, "
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


def _folder_of(checkpoint: str) -> Path:
    folder = local_path(checkpoint)
    if folder is None or PATTERN.search(str(folder)):
        raise StateError(
            f"--checkpoint: got {checkpoint}; allowed is a folder on a disk that is mounted here and on all workers, "
            "whose path holds none of {}[]*?\\"
        )
    return folder


class _Planned(NamedTuple):
    """What Spark's source has in its log. done: the last version that a committed batch has read. last: the last that
    is in the log. open: files after `done`, in their order.
    """

    done: int
    last: int
    open: list[Path]


def _planned(checkpoint: Path, name: str) -> _Planned | None:
    """None where no source of the checkpoint reads a feed of that name."""
    for source in sorted((checkpoint / "sources").glob("*")):
        committed = _committed_offset(checkpoint, int(source.name))
        entries = [entry for entry in _newest_entries(source, committed) if _is_of_feed(entry["path"], name)]
        if entries:
            of_feed = [(entry["batchId"], _path(entry["path"])) for entry in entries]
            done = [_version(file) for batch, file in of_feed if batch <= committed]
            files = {file for batch, file in of_feed if batch > committed}
            return _Planned(
                max(done, default=-1), max(_version(file) for _, file in of_feed), sorted(files, key=_version)
            )
    return None


def _committed_offset(checkpoint: Path, source: int) -> int:
    """Up to where the log of a source is in committed batches, -1: none is."""
    batch = _last_number(checkpoint / "commits")
    if batch is None:
        return -1
    _version_line, _conf, *offsets = (checkpoint / "offsets" / str(batch)).read_text().splitlines()
    offset = json.loads(offsets[source]) if offsets[source] != "-" else {}
    return int(offset.get("logOffset", -1)) if isinstance(offset, dict) else -1


def _newest_entries(source: Path, committed: int) -> list[dict[str, Any]]:
    """Of a source's log: all from the last committed one on. Logs of other sources than files are none."""
    logs = {int(log.name.partition(".")[0]): log for log in source.iterdir() if log.name.partition(".")[0].isdecimal()}
    first = max((number for number in logs if number <= committed), default=-1)
    entries: list[dict[str, Any]] = []
    for number in sorted(number for number in logs if number >= first):
        for line in logs[number].read_text().splitlines()[1:]:
            entry = json.loads(line)
            if not (
                isinstance(entry, dict) and isinstance(entry.get("path"), str)
            ):  # else offsets of a Kafka topic, which may have this name
                return []
            entries.append(entry)
    return entries


def _is_of_feed(path: str, name: str) -> bool:
    return _path(path).parts[-3:-1] == ("feed", name)


def _path(uri: str) -> Path:
    return Path(unquote(urlsplit(uri).path))


def _version(file: Path) -> int:
    return int(file.stem)


def _last_number(folder: Path) -> int | None:
    return max((int(file.name) for file in folder.glob("[0-9]*") if file.name.isdecimal()), default=None)


def _file_system(table: str) -> tuple[pafs.FileSystem, str]:
    files, root = pafs.FileSystem.from_uri(DeltaTable(table).table_uri)
    return files, root.rstrip("/")
