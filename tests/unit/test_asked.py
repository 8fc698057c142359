"""What a sweep and a replay are asked for is checked as a whole, before rules and pictures are loaded."""

import subprocess
import sys

import pytest

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
