"""The feed of a table's rows, whatever is killed, deleted or appended. Spark's part is played by its logs."""

import json
import re
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from headgate.errors import StateError, TableError
from headgate.folders import folder_at
from headgate.spark.feed import Feed, fed_rows
from headgate.spark.job import FAILED, WRONG, exit_status
from headgate.stores import Patience, file_system
from headgate.tables.query import query
from headgate.tables.retention import RULES, Deleted, Kept, delete_old
from headgate.throttle.schemas import CONTROL

LATEST = 2**53
"""Microseconds that a float would still hold; one more would not."""


class Source:
    """What a query with this checkpoint leaves in it. source: its number, behind an input's."""

    def __init__(self, checkpoint: Path, source: int = 1) -> None:
        self._checkpoint, self._source = checkpoint, source
        self._batch, self._offset, self._seen = -1, -1, set[str]()
        self._entries: list[dict[str, Any]] = []
        for folder in ("offsets", "commits", f"sources/{source}"):
            (checkpoint / folder).mkdir(parents=True, exist_ok=True)

    def plan(self, *, compact: bool = False) -> list[str]:
        """A batch of all files that are new: Spark's source logs them first, then the batch is."""
        new = sorted(file for file in visible(self._checkpoint) if file.name not in self._seen)
        if new:
            self._offset += 1
            self._seen |= {file.name for file in new}
            entries = [{"path": file.as_uri(), "timestamp": 0, "batchId": self._offset} for file in new]
            self._entries += entries
            log = self._checkpoint / f"sources/{self._source}" / f"{self._offset}{'.compact' * compact}"
            log.write_text("\n".join(["v1", *map(json.dumps, self._entries if compact else entries)]))
        self._batch += 1
        of_source = json.dumps({"logOffset": self._offset}) if self._offset >= 0 else "-"
        lines = ["v1", "{}", *['{"logOffset":7}'] * self._source, of_source]
        (self._checkpoint / "offsets" / str(self._batch)).write_text("\n".join(lines))
        return read(new)

    def commit(self) -> None:
        (self._checkpoint / "commits" / str(self._batch)).write_text("v1\n{}")


def visible(checkpoint: Path) -> list[Path]:
    return [file for file in (checkpoint / "feed" / "control").iterdir() if not file.name.startswith(".")]


def whole(file: Path) -> pa.Table:
    """The rows of a file, as the worker reads them."""
    lines = pa.table({"value": file.read_text().splitlines()}).to_batches()
    return pa.Table.from_batches(list(fed_rows(lambda batches: batches, lines)))


def read(files: list[Path]) -> list[str]:
    """The names in the rows of these files."""
    return [name for file in files for name in whole(file)["name"].to_pylist()]


@pytest.fixture
def table(tmp_path: Path) -> str:
    DeltaTable.create(str(tmp_path / "control"), CONTROL)
    return str(tmp_path / "control")


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return tmp_path / "checkpoint"


def append(table: str, *names: str) -> None:
    rows = [dict.fromkeys(CONTROL.names) | {"name": name, "written_at": LATEST + 1} for name in names]
    write_deltalake(table, pa.Table.from_pylist(rows, CONTROL), mode="append")


def begun(table: str, checkpoint: Path) -> Feed:
    feed = Feed(table, CONTROL, str(checkpoint))
    feed.begin()
    return feed


def all_rows(checkpoint: Path) -> list[str]:
    return read(sorted(visible(checkpoint)))


def test_rows_come_once_and_in_the_order_in_which_they_were_appended(table: str, checkpoint: Path) -> None:
    append(table, "a", "b")
    feed = begun(table, checkpoint)
    for name in "cdef":
        append(table, name)
        if name != "d":
            feed.feed()
            feed.feed()
    assert list("abcdef") == all_rows(checkpoint)
    assert 4 == len(visible(checkpoint))


def test_values_and_types_are_those_of_the_table(table: str, checkpoint: Path) -> None:
    append(table, "a")
    begun(table, checkpoint)
    (file,) = visible(checkpoint)
    assert DeltaTable(table).to_pyarrow_table().cast(CONTROL) == whole(file)


def test_a_table_without_rows_has_no_file(table: str, checkpoint: Path) -> None:
    begun(table, checkpoint).feed()
    assert [] == visible(checkpoint)


def test_a_kill_between_append_and_feed_loses_nothing(table: str, checkpoint: Path) -> None:
    begun(table, checkpoint)
    append(table, "a")
    begun(table, checkpoint)
    assert ["a"] == all_rows(checkpoint)


def test_a_file_that_was_being_written_is_never_read(table: str, checkpoint: Path, monkeypatch: Any) -> None:
    """Its name is hidden until it is whole; the next start does not take it for one that was fed."""
    feed = begun(table, checkpoint)
    append(table, "a")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", lambda *_: (_ for _ in ()).throw(OSError("killed")))
        with pytest.raises(TableError, match=r"killed.*restart on the same checkpoint"):
            feed.feed()
    assert (1, []) == (len(list(Path(feed.place).iterdir())), visible(checkpoint))
    begun(table, checkpoint)
    assert (1, ["a"]) == (len(list(Path(feed.place).iterdir())), all_rows(checkpoint))


def test_a_start_after_the_feed_adds_nothing(table: str, checkpoint: Path) -> None:
    append(table, "a")
    for _ in range(2):
        begun(table, checkpoint)
    assert ["a"] == all_rows(checkpoint)


@pytest.mark.parametrize("compact", [False, True])
def test_what_a_committed_batch_has_read_is_deleted_and_never_fed_again(
    table: str, checkpoint: Path, compact: bool
) -> None:
    source = Source(checkpoint)
    append(table, "a")
    begun(table, checkpoint)
    assert ["a"] == source.plan(compact=compact)
    source.commit()
    begun(table, checkpoint)
    assert [] == visible(checkpoint)
    append(table, "b")
    begun(table, checkpoint)
    assert ["b"] == source.plan()


def test_a_start_leaves_old_names_out_of_the_log(table: str, checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is still to be read, or was read of late, stays, also where a batch was broken off; where it cannot be
    written, all does, without the checksum, which a kill could leave to another file.
    """
    monkeypatch.setattr("headgate.spark.feed.NAMES_LEFT", 4)
    source, log = Source(checkpoint), checkpoint / "sources" / "1"
    feed = begun(table, checkpoint)
    for name in "abcdefghij":
        append(table, name)
        feed.feed()
        source.plan(compact=name in "bj")
        if name != "j":
            source.commit()
    (log / ".9.compact.crc").touch()
    older, newest = ((log / name).read_text() for name in ("1.compact", "9.compact"))
    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", lambda *_: (_ for _ in ()).throw(OSError("no space left")))
        with pytest.raises(TableError, match="no space left"):
            begun(table, checkpoint)
    assert newest == (log / "9.compact").read_text()
    assert not (log / ".9.compact.crc").exists()
    begun(table, checkpoint)

    version, *entries = (log / "9.compact").read_text().split("\n")
    left = [int(Path(json.loads(entry)["path"]).stem) for entry in entries]
    assert ("v1", [7, 8, 9, 10], older) == (version, left, (log / "1.compact").read_text())
    source.commit()
    append(table, "k")
    begun(table, checkpoint)
    assert ["k"] == source.plan()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        *(
            ("sources/1/1", content)
            for content in ("", "\0\0\0", 'v1\n{"path":', 'v1\n{"path": "a/feed/control/1.txt"}')
        ),
        *(("sources/1/0.compact", content) for content in ("", "v1", 'v1\n{"path":', "v1\n7")),
        *(
            ("offsets/1", content)
            for content in ("", "\0\0\0", "v1\n{}", 'v1\n{}\n-\n{"logOff', 'v1\n{}\n-\n{"logOffset":null}')
        ),
    ],
)
def test_a_damaged_file_of_the_checkpoint_is_named(table: str, checkpoint: Path, name: str, content: str) -> None:
    """Also one that the last batches did not need, as a start reads it all the same."""
    source = Source(checkpoint)
    for row in "ab":
        append(table, row)
        begun(table, checkpoint)
        source.plan(compact=row == "a")
        source.commit()
    (checkpoint / name).write_text(content)
    with pytest.raises(
        StateError, match=f"cannot be read: its file {name} is damaged; see to it that its files can be"
    ):
        begun(table, checkpoint)


def test_the_log_is_left_alone_on_a_store_that_would_empty_it_first(
    table: str, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate.spark.feed.NAMES_LEFT", 1)
    source, feed = Source(checkpoint), begun(table, checkpoint)
    for name in "abcd":
        append(table, name)
        feed.feed()
        source.plan(compact=True)
        source.commit()
    monkeypatch.setattr("headgate.spark.feed.scheme_of", lambda _: "abfss")
    begun(table, checkpoint)
    assert 5 == len((checkpoint / "sources" / "1" / "3.compact").read_text().splitlines())


def test_files_of_a_batch_that_is_run_again_stay_as_they_are(table: str, checkpoint: Path) -> None:
    source = Source(checkpoint)
    append(table, "a")
    begun(table, checkpoint)
    source.plan()
    append(table, "b")
    begun(table, checkpoint)
    assert ["a", "b"] == all_rows(checkpoint)
    assert ["b"] == source.plan()


def test_deleted_files_of_a_batch_that_is_run_again_are_written_again(table: str, checkpoint: Path) -> None:
    """Each with the rows that it had; files of committed batches stay deleted, what no batch has planned comes new."""
    source = Source(checkpoint)
    append(table, "a")
    feed = begun(table, checkpoint)
    source.plan()
    source.commit()
    for name in "bcd":
        append(table, name)
        if name != "b":
            feed.feed()
    source.plan()
    append(table, "e")
    feed.feed()
    before = {file: file.read_bytes() for file in visible(checkpoint) if read([file]) not in (["a"], ["e"])}
    for file in visible(checkpoint):
        file.unlink()
    begun(table, checkpoint)
    assert before == {file: file.read_bytes() for file in visible(checkpoint) if read([file]) != ["e"]}
    assert ["e"] == source.plan()


@pytest.mark.parametrize(
    ("version", "entry"),
    [
        ("v1", {"path": "file:///trace/00000000000000000099.txt", "timestamp": 0, "batchId": 0}),
        ("\0v1", {"path": {"0": 0}}),  # offsets of a Kafka topic of this name
    ],
)
def test_the_log_of_an_input_is_not_taken_for_that_of_the_feed(
    table: str, checkpoint: Path, version: str, entry: dict[str, Any]
) -> None:
    (checkpoint / "sources" / "0").mkdir(parents=True)
    (checkpoint / "sources" / "0" / "0").write_text(f"{version}\n{json.dumps(entry)}")
    append(table, "a")
    begun(table, checkpoint)
    assert ["a"] == all_rows(checkpoint)


def test_beside_the_query_one_file_comes_between_two_batches(table: str, checkpoint: Path) -> None:
    """Spark may be listing the folder, and of two that come meanwhile see the second alone."""
    feed = begun(table, checkpoint)
    for name in "abc":
        append(table, name)
        feed.feed_beside()
    assert ["a"] == all_rows(checkpoint)
    feed.feed()
    assert (2, list("abc")) == (len(visible(checkpoint)), all_rows(checkpoint))
    append(table, "d")
    feed.feed_beside()
    assert list("abcd") == all_rows(checkpoint)


def test_commits_that_join_or_delete_rows_bring_nothing(table: str, checkpoint: Path) -> None:
    feed = begun(table, checkpoint)
    for name in "ab":
        append(table, name)
    DeltaTable(table).optimize.compact()
    DeltaTable(table).delete("name = 'a'")
    append(table, "c")
    feed.feed()
    assert list("abc") == all_rows(checkpoint)


def test_superseded_rows_that_are_deleted_are_fed_once_all_the_same(table: str, checkpoint: Path) -> None:
    feed = begun(table, checkpoint)
    row = dict.fromkeys(CONTROL.names) | {"kind": "limit"}
    for day, group in ((1, "a"), (2, "b"), (30, "c")):
        at = datetime(2026, 1, day, tzinfo=UTC)
        rows = [row | {"effective_time": at, "written_at": at, "group_name": group}]
        write_deltalake(table, pa.Table.from_pylist(rows, CONTROL), mode="append")
    assert Deleted(1, 3) == delete_old(DeltaTable(table), Kept(RULES["control"], 24))
    feed.feed()
    append(table, "d")
    feed.feed()

    groups = [group for file in sorted(visible(checkpoint)) for group in whole(file)["group_name"].to_pylist()]
    assert ["a", "b", "c", None] == groups


def test_rows_of_other_writers_may_lack_columns_and_have_times_of_96_bits(table: str, checkpoint: Path) -> None:
    append(table, "a")
    (path,) = DeltaTable(table).file_uris()
    file = Path(path)
    rows = pa.table({"written_at": pa.array([LATEST + 1], CONTROL.field("written_at").type), "name": ["a"]})
    pq.write_table(rows, file, use_deprecated_int96_timestamps=True)
    begun(table, checkpoint)
    (fed,) = visible(checkpoint)
    assert [dict.fromkeys(CONTROL.names) | rows.to_pylist()[0]] == whole(fed).to_pylist()


def test_the_times_of_files_are_versions_whatever_the_clock_says(table: str, checkpoint: Path) -> None:
    feed = begun(table, checkpoint)
    for name in "abc":
        append(table, name)
        feed.feed()
    assert [2, 3, 4] == [file.stat().st_mtime for file in sorted(visible(checkpoint))]


def test_a_checkpoint_of_an_earlier_version_is_refused_with_what_to_do(table: str, checkpoint: Path) -> None:
    (checkpoint / "offsets").mkdir(parents=True)
    (checkpoint / "offsets" / "0").write_text('v1\n{}\n{"logOffset":0}\n{"sourceVersion":1,"reservoirVersion":4}')
    with pytest.raises(StateError, match=r"read the table control in another way.*new --checkpoint and a new --output"):
        Feed(table, CONTROL, str(checkpoint))


def test_rows_that_the_log_of_the_table_has_lost_are_no_silent_gap(table: str, checkpoint: Path) -> None:
    append(table, "a")
    begun(table, checkpoint)
    for name in "bc":
        append(table, name)
    DeltaTable(table).create_checkpoint()
    (Path(table) / "_delta_log" / f"{2:020d}.json").unlink()
    with pytest.raises(StateError, match="no longer has version 2"):
        begun(table, checkpoint)


def test_the_log_of_a_table_goes_once_its_rows_are_fed(table: str, checkpoint: Path, monkeypatch: Any) -> None:
    """Entries are old as soon as they are there, and nobody but the feed cleans them."""
    monkeypatch.setattr("headgate.spark.feed.CLEANED_EVERY", 3)
    properties = {"delta.logRetentionDuration": "interval 0 seconds", "delta.enableExpiredLogCleanup": "false"}
    DeltaTable(table).alter.set_table_properties(properties)
    feed, log = begun(table, checkpoint), Path(table, "_delta_log")
    for name in "abc":
        append(table, name)
    DeltaTable(table).create_checkpoint()
    assert 5 == len(list(log.glob("*.json")))

    feed.feed()
    append(table, "d")
    feed.feed()

    assert ["00000000000000000004.json", "00000000000000000005.json"] == sorted(
        file.name for file in log.glob("*.json")
    )
    assert ["a", "b", "c", "d"] == read(sorted(visible(checkpoint)))
    assert ["a", "b", "c", "d"] == sorted(query("SELECT name FROM t", {"t": DeltaTable(table)})["name"].to_pylist())


def test_a_file_of_rows_that_cannot_be_read_is_an_error(table: str, checkpoint: Path) -> None:
    append(table, "a")
    for path in DeltaTable(table).file_uris():
        Path(path).unlink()
    with pytest.raises(TableError, match=r"new rows of the table .*control cannot be read"):
        begun(table, checkpoint)


def test_a_checkpoint_that_cannot_be_read_is_told_with_what_to_do(table: str, checkpoint: Path) -> None:
    for name in ("offsets", "commits"):
        (checkpoint / name).mkdir(parents=True)
    (checkpoint / "sources" / "0").mkdir(parents=True)
    (checkpoint / "commits" / "3").touch()
    (checkpoint / "offsets" / "4").touch()
    told = (
        f"the checkpoint {checkpoint} cannot be read: its file offsets/3 is gone; see to it that its files can be read"
    )
    with pytest.raises(StateError, match=re.escape(told)):
        Feed(table, CONTROL, str(checkpoint))


def test_a_checkpoint_on_a_store_that_is_away_ends_the_job_with_1(
    monkeypatch: pytest.MonkeyPatch, no_store: None, capsys: pytest.CaptureFixture[str]
) -> None:
    def start() -> int:
        Feed("s3a://b/o/control", CONTROL, "s3a://b/o/checkpoint")
        return 0

    monkeypatch.setattr("headgate.spark.feed.folder_at", partial(folder_at, patience=Patience(1, 60)))
    assert exit_status("throttle", start) == FAILED
    assert "throttle: the checkpoint s3a://b/o/checkpoint cannot be read: " in capsys.readouterr().err


@pytest.mark.parametrize("checkpoint_", ["s3://bucket/checkpoint", "/tmp/a[b]/checkpoint"])
def test_a_checkpoint_that_cannot_hold_a_feed_is_refused(table: str, checkpoint_: str) -> None:
    with pytest.raises(StateError, match="--checkpoint: got"):
        Feed(table, CONTROL, checkpoint_)


def test_a_table_that_goes_away_in_mid_run_ends_the_job_with_1_and_one_that_is_broken_with_2(
    tmp_path: Path, no_store: None, capsys: pytest.CaptureFixture[str]
) -> None:
    feed = Feed("s3a://b/o/control", CONTROL, str(tmp_path / "c"))

    def fed() -> int:
        feed.feed_beside()
        return 0

    feed._files, feed._root = file_system("s3a://b/o/control", Patience(1, 60))
    assert exit_status("throttle", fed) == FAILED
    assert "throttle: new rows of the table s3a://b/o/control cannot be read: " in capsys.readouterr().err
    (tmp_path / "control" / "_delta_log").mkdir(parents=True)
    (tmp_path / "control" / "_delta_log" / f"{0:020d}.json").write_text("{")
    feed._files, feed._root = file_system(str(tmp_path / "control"))
    assert exit_status("throttle", fed) == WRONG
