"""An input on a store: what is said of it names the place there, and its copy goes whatever happens."""

import gzip
import os
import re
import signal
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs
import pytest
from deltalake import DeltaTable, write_deltalake

from headgate import folders
from headgate.cli import EXIT_STOPPED, main
from headgate.engines import sizes
from headgate.engines.sizes import here
from headgate.engines.stops import STOPPED, broken_off_by_signals
from headgate.errors import InputError
from headgate.folders import copied
from headgate.tryout import command
from headgate.tryout.session import Session

ROW = '{"event_time": "2026-01-05T09:00:00Z", "seq": 1, "broker": "b", "kind": "publish", "topic": "t"}'


@pytest.fixture
def store(tmp_path, monkeypatch):
    """s3a://b/in, as a folder; copies go to a folder of their own, and a terminal may close."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    monkeypatch.setattr(folders, "file_system", lambda *_: (pafs.LocalFileSystem(), str(tmp_path / "in")))
    monkeypatch.setattr("headgate.places.check_reachable", lambda *_: None)
    monkeypatch.setattr("headgate.places.is_there", lambda _: True)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    for name in ("in", "scratch", "conf"):
        (tmp_path / name).mkdir()
    yield tmp_path / "in"
    signal.signal(signal.SIGHUP, before)


def files_in(store):
    return sorted((store.parent / "scratch").rglob("*"))


WRONG = {
    "columns": ({"a.csv": "seq,broker\n1,b\n"}, "PATH: s3a://b/in/a.csv: columns missing: event_time, kind"),
    "endings": ({"a.csv": "", "b.json": ""}, "PATH: the format of s3a://b/in cannot be told"),
    "no input": ({"_a.json": ROW}, "PATH: s3a://b/in: got a folder without files [(]those whose names begin"),
    "no rows": ({"a.json": ""}, "s3a://b/in/a.json"),
    "no table": ({"a.json": ROW}, "PATH: no Delta table is at s3a://b/in; give the folder of one"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_is_said_of_the_place_on_the_store(wrong, store, capsys):
    files, said = WRONG[wrong]
    for name, content in files.items():
        (store / name).write_text(content)
    format_ = ["--format", "delta"] if wrong == "no table" else []
    assert main(["try", "s3a://b/in", *format_, "--conf-dir", str(store.parent / "conf")]) == 2
    told = capsys.readouterr()
    assert re.search(said, told.out + told.err), told
    assert "scratch" not in told.out + told.err
    assert [] == files_in(store)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_nothing_of_the_input(number, store, monkeypatch, capsys):
    """Neither its copy nor the bundled trace."""
    (store / "a.json").write_text(ROW)

    def killed(session, _):
        assert session._source.place == "s3a://b/in"
        assert Path(session._source.path, "a.json").read_text() == ROW
        os.kill(os.getpid(), number)

    monkeypatch.setattr(Session, "load_rules", killed)
    assert main(["try", "s3a://b/in", "--conf-dir", str(store.parent / "conf")]) == EXIT_STOPPED
    assert "headgate: stopped\n" == capsys.readouterr().err
    assert [] == files_in(store)
    signal.signal(number, signal.SIG_DFL)
    monkeypatch.setattr(Session, "load_rules", lambda *_: os.kill(os.getpid(), number))
    assert main(["try", "--conf-dir", str(store.parent / "conf")]) == EXIT_STOPPED
    assert [] == files_in(store)


def test_a_terminal_that_closes_leaves_no_copy(store, capsys):
    def work():
        with copied("s3a://b/in"):
            try:
                os.kill(os.getpid(), signal.SIGHUP)
            finally:
                os.kill(os.getpid(), signal.SIGHUP)  # the shell has sent the first one
        return 0

    (store / "a.json").write_text(ROW)
    assert broken_off_by_signals("replay", work) == STOPPED
    assert capsys.readouterr().err.startswith("replay: stopped before its end")
    assert [] == files_in(store)


def test_what_is_wrong_with_conf_or_options_is_said_before_the_store_is_asked(store, monkeypatch, capsys):
    monkeypatch.setattr(command, "check_there", lambda *_: pytest.fail("the store is asked"))
    (store / "output").touch()
    conf = store.parent / "conf"
    (conf / "headgate.toml").write_text("[operator]\nslotz = 1\n")
    assert main(["try", "s3a://b/in", "--conf-dir", str(conf), "--output", str(store)]) == 2
    told = capsys.readouterr().err
    assert "slotz" in told
    assert "not empty" in told


def test_what_is_not_there_is_said_before_anything_is_copied(store, monkeypatch, capsys):
    monkeypatch.setattr(command, "copied", lambda *_: pytest.fail("the input is copied"))
    monkeypatch.setattr("headgate.places.is_there", lambda _: False)
    assert main(["try", "s3a://b/in", "--conf-dir", str(store.parent / "conf")]) == 2
    assert capsys.readouterr().err.startswith("headgate: PATH: nothing is at s3a://b/in;")


@pytest.mark.parametrize("hidden", ["_old/b.json", ".old.json"])
def test_a_copy_has_each_file_as_it_is_and_none_that_is_no_input(hidden, store):
    (store / "a.json.gz").write_bytes(gzip.compress(ROW.encode()))
    (store / hidden).parent.mkdir(exist_ok=True)
    (store / hidden).write_text(ROW)
    with copied("s3a://b/in") as path:
        assert [("a.json.gz", gzip.compress(ROW.encode()))] == [
            (one.name, one.read_bytes()) for one in Path(path).iterdir()
        ]


def test_a_copy_of_a_delta_table_has_its_log(store):
    write_deltalake(store, pa.table({"x": [1]}))
    with copied("s3a://b/in") as path:
        assert DeltaTable(path).to_pyarrow_table().num_rows == 1


def test_what_is_too_large_is_not_copied(store, monkeypatch):
    (store / "a.json").write_text(ROW)
    monkeypatch.setitem(sizes.MOST_MIB, "json", 0)
    copies = []
    monkeypatch.setattr(folders, "_copy_file", lambda *given: copies.append(given))
    refused = pytest.raises(InputError, match=r"^--input: s3a://b/in has 0 MiB; .*spark-submit.sh jobs/replay.py")
    with refused, here("s3a://b/in", "json", "jobs/replay.py"):
        pass
    assert [] == copies


def test_a_table_is_as_large_as_its_version_says_not_as_its_folder(store, monkeypatch):
    write_deltalake(store, pa.table({"x": list(range(100_000))}))
    DeltaTable(store).delete()
    monkeypatch.setitem(sizes.MOST_MIB, "delta", 0)
    with here("s3a://b/in", "delta", "jobs/replay.py") as path:
        assert path != str(store)
    write_deltalake(store, pa.table({"x": [1]}), mode="append")
    refused = pytest.raises(InputError, match=r"^--input: s3a://b/in has 0 MiB; .*spark-submit.sh jobs/replay.py")
    with refused, here("s3a://b/in", "delta", "jobs/replay.py"):
        pass


def test_compressed_text_is_as_large_as_without_compression(store, monkeypatch):
    (store / "a.json.gz").write_bytes(gzip.compress(ROW.encode()) + bytes(2**20))
    monkeypatch.setitem(sizes.MOST_MIB, "json", 5)
    refused = pytest.raises(InputError, match=r"^--input: s3a://b/in has 10 MiB; allowed are up to 5 MiB of json")
    with refused, here("s3a://b/in", "json", "jobs/replay.py"):
        pass


def test_columns_that_are_missing_are_said_of_a_copy_too(store):
    (store / "a.csv").write_text("seq,broker\n1,b\n")
    refused = pytest.raises(InputError, match=r"^--input: s3a://b/in/a.csv: columns missing: event_time, kind")
    with refused, here("s3a://b/in", "csv", "jobs/replay.py"):
        pass


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        *((name, "an empty name, . or ..") for name in ("../out.json", "x//a.json", "x/./a.json")),
        ("x", "others below it"),
        ("\u00e4" * 128, "a name above 255 bytes"),
    ],
)
def test_a_name_that_a_disk_has_not_is_refused_where_it_is_no_hidden_one(name, wrong, store, monkeypatch):
    names = [f"{store}/{one}" for one in ("a.json", "_temporary//a.json", ".tmp/../b.json", name, "x/y/b.json")]
    found = [pafs.FileInfo(name, pafs.FileType.File, size=1, mtime_ns=0) for name in names]

    class Listing:
        def get_file_info(self, of_what):
            return found if isinstance(of_what, pafs.FileSelector) else pafs.FileInfo(of_what, pafs.FileType.Directory)

    monkeypatch.setattr(folders, "file_system", lambda *_: (Listing(), str(store)))
    refused = pytest.raises(InputError, match=f"^s3a://b/in: .*/in/{re.escape(name)} has {wrong}, which a file on")
    with refused, copied("s3a://b/in"):
        pass
