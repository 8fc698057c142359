"""What the script says before it starts anything; a whole cluster is started in tests/integration/test_wheel.py."""

import socket
import subprocess
import sys

import pytest
import standalone_cluster
from steps import UNAVAILABLE


@pytest.mark.parametrize("option", ["--port", "--web-port"])
def test_a_port_that_is_taken_is_named_with_its_option(option, tmp_path, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken, socket.create_server(("127.0.0.1", 0)) as other:
        port, free = (str(one.getsockname()[1]) for one in (taken, other))
        other.close()
        others = ["--port", free] if option == "--web-port" else []
        status = standalone_cluster.main(["start", "--folder", str(tmp_path), *others, option, port])
    said = capsys.readouterr()
    assert (UNAVAILABLE, "") == (status, said.out)
    assert f"{option}: 127.0.0.1:{port} cannot be used" in said.err
    assert not list(tmp_path.glob("*.pid"))


def test_without_java_it_says_which_it_needs(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert standalone_cluster.main(["start", "--folder", str(tmp_path)]) == UNAVAILABLE
    assert "needs Java 17" in capsys.readouterr().err


def test_to_stop_what_does_not_run_is_no_mistake_and_ends_no_other_process(tmp_path):
    """The process id in a file may have become another program's."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as other:
        (tmp_path / "worker-1.pid").write_text(f"{other.pid}\n")
        assert standalone_cluster.main(["stop", "--folder", str(tmp_path)]) == 0
        assert not list(tmp_path.iterdir())
        other.communicate(b"\n")
    assert other.returncode == 0
