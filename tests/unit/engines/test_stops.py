"""Work that a signal breaks off: once, wherever it comes, and also where its terminal has gone."""

import os
import signal
import subprocess
import sys

import pytest

from headgate.engines.stops import STOPPED, broken_off_by_signals, handled

WORK = """
import signal
import sys

from headgate.engines.stops import broken_off_by_signals


def work():
    print("begun", flush=True)
    try:
        signal.pause()
    finally:
        print("put away", flush=True)
        sys.stderr.write("put away\\n")


signal.signal(signal.SIGHUP, signal.SIG_DFL)
sys.exit(broken_off_by_signals("replay", work))
"""


@pytest.fixture(autouse=True)
def _as_before():
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


def test_what_is_printed_to_a_terminal_that_has_closed_is_dropped():
    kept, terminal = os.openpty()
    with subprocess.Popen([sys.executable, "-c", WORK], stdout=terminal, stderr=terminal) as process:
        os.close(terminal)
        assert b"begun" in os.read(kept, 100)
        os.close(kept)
        process.send_signal(signal.SIGHUP)
        assert process.wait(60) == STOPPED


def test_a_terminal_that_closes_is_heard_once_in_work_within_work():
    heard = []
    with handled(lambda *_: heard.append("around")):
        assert broken_off_by_signals("try", lambda: os.kill(os.getpid(), signal.SIGHUP) or 0) == STOPPED
        os.kill(os.getpid(), signal.SIGHUP)
        assert [] == heard
        os.kill(os.getpid(), signal.SIGTERM)
    os.kill(os.getpid(), signal.SIGHUP)
    assert ["around"] == heard


def test_a_terminal_that_is_said_to_close_again_while_that_is_heeded_is_not_heard():
    heard = []

    def heed(*_):
        heard.append(1)
        os.kill(os.getpid(), signal.SIGHUP)

    with handled(heed):
        os.kill(os.getpid(), signal.SIGHUP)
    assert [1] == heard


def test_with_nohup_it_is_not_heard():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    assert broken_off_by_signals("replay", lambda: os.kill(os.getpid(), signal.SIGHUP) or 0) == 0


def test_a_pipe_whose_reader_has_ended_changes_nothing(monkeypatch):
    monkeypatch.setattr("sys.stderr.write", lambda _: os.close(-1))  # an OSError
    assert broken_off_by_signals("replay", lambda: os.kill(os.getpid(), signal.SIGTERM) or 0) == STOPPED


def test_a_terminal_that_closes_is_heard_where_no_file_can_be_opened(monkeypatch):
    monkeypatch.setattr("os.open", lambda *_: os.close(-1))
    heard = []
    with handled(lambda *_: heard.append(1)):
        os.kill(os.getpid(), signal.SIGHUP)
    assert [1] == heard
