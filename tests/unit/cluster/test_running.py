"""What processes that follow a cluster do without a screen, and at signals."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

LIB = Path(__file__).parents[3] / "lib"
SAYS = "from headgate.cluster.running import say; say('one'); say('two')"
HUNG_UP = """
import os, signal, sys
from headgate.cluster.running import stopped_by_signals
signal.signal(signal.SIGHUP, getattr(signal, sys.argv[1]))
with stopped_by_signals() as stop:
    os.kill(os.getpid(), signal.SIGHUP)
    print(stop.wait(1))
"""


def run(program, *arguments, stdout=subprocess.PIPE):
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env=os.environ | {"PYTHONPATH": str(LIB)},
        stdout=stdout,
        stderr=subprocess.PIPE,
        check=False,
    )


def test_lines_go_to_the_screen():
    assert run(SAYS).stdout == b"one\ntwo\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux's /dev/full")
def test_a_full_disk_ends_nothing():
    with Path("/dev/full").open("wb") as full:
        done = run(SAYS, stdout=full)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_reader_that_has_gone_ends_nothing():
    reader, writer = os.pipe()
    os.close(reader)
    done = run(SAYS, stdout=writer)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_reader_that_does_not_read_holds_nothing_up():
    reader, writer = os.pipe()
    done = run("from headgate.cluster.running import say\nfor _ in range(99): say('x' * 1_000)", stdout=writer)
    os.close(reader)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


def test_without_a_screen_nothing_is_said():
    assert run(f"import sys; sys.stdout = None; {SAYS}").stderr == b""


@pytest.mark.parametrize(("before", "stops"), [("SIG_DFL", b"True"), ("SIG_IGN", b"False")])
def test_a_terminal_that_closes_stops_it_but_for_nohup(before, stops):
    assert run(HUNG_UP, before).stdout.strip() == stops
