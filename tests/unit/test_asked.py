"""What a sweep and a replay are asked for is checked as a whole, before rules and pictures are loaded."""

import subprocess
import sys

import pytest

from headgate.cli import main

RUN = "import sys\nfrom headgate.cli import main\nstatus = main({!r})\nprint(status, {!r} & sys.modules.keys())"
HEAVY = {"numba", "matplotlib", "duckdb"}


@pytest.mark.parametrize(
    ("command", "wrong"),
    [
        ("sweep", ("conf/broker.conf line 2: managedLedgerCacheSizeMB", "--sample: got 0;", "is there and not empty")),
        ("replay", ("conf/broker.conf line 2: managedLedgerCacheSizeMB", "is there and not empty")),
    ],
)
def test_all_that_is_wrong_is_told_before_anything_heavy_is_loaded(tmp_path, command, wrong):
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "broker.conf").write_text("\nmanagedLedgerCacheSizeMB=lots\n")
    (tmp_path / "trace.json").write_text("{}\n")
    given = ["--input", "trace.json", "--output", ".", "--conf-dir", "conf"]
    given += ["--sample", "0"] if command == "sweep" else []
    program = RUN.format([command, *given], HEAVY)
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "2 set()\n"
    assert all(part in done.stderr for part in wrong), done.stderr


@pytest.mark.parametrize(
    ("command", "folder", "wrong"),
    [
        ("sweep", "output/cache-sweep", ["--sample", "0"]),
        ("sweep", "output/cache-sweep", ["--conf-dir", "nowhere"]),
        ("replay", "output/replay-demo", ["--conf-dir", "nowhere"]),
    ],
)
def test_a_mistake_removes_nothing_of_an_earlier_run(tmp_path, monkeypatch, command, folder, wrong):
    monkeypatch.chdir(tmp_path)
    (tmp_path / folder).mkdir(parents=True)
    (tmp_path / folder / "report.html").touch()
    assert main([command, *wrong]) == 2
    assert (tmp_path / folder / "report.html").exists()


def test_mistakes_of_conf_and_grid_have_one_heading(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["sweep", "--sample", "0", "--conf-dir", "nowhere"]) == 2
    said = capsys.readouterr().err
    assert said.count("in the configuration:") == 1
    assert "--sample: got 0" in said
    assert "nowhere" in said


@pytest.mark.parametrize(
    ("arguments", "is_told"),
    [
        (["sweep", __file__], True),
        (["replay", __file__], True),
        (["sweep", "x" * 300], False),
        (["tables", "out", __file__], False),
    ],
)
def test_traffic_without_its_option_is_told_of_the_option(capsys, arguments, is_told):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert f"unrecognized arguments: {arguments[-1]}" in said
    assert said.endswith("; give what is to be read with --input\n") == is_told
