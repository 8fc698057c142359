"""Work that a signal breaks off: once, wherever it comes, and also where its terminal has gone."""

import os
import signal
import subprocess
import sys
from threading import Thread

import pytest

from headgate.engines.stops import STOPPED, Stop, broken_off_by_signals, handled

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


SIGNALS_AMID_A_WAIT = """
import random
import signal

from headgate.engines.stops import Stop

for _ in range(300):
    stop = Stop()
    signal.signal(signal.SIGALRM, lambda *_: stop.set())
    signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-5, 1e-3))
    while not stop.wait(0):
        pass
"""


@pytest.fixture(autouse=True)
def _as_before(monkeypatch):
    """And what is printed is not lost: it would be dropped where tests run on a terminal."""
    monkeypatch.setattr("os.isatty", lambda _: False)
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


def test_a_signal_that_comes_amid_a_wait_for_it_does_not_hang():
    assert subprocess.run([sys.executable, "-c", SIGNALS_AMID_A_WAIT], timeout=60, check=False).returncode == 0


def test_all_that_wait_for_a_stop_hear_of_it():
    stop = Stop()
    waiting = [Thread(target=stop.wait, daemon=True) for _ in range(3)]
    for thread in waiting:
        thread.start()
    assert not stop.wait(-1)
    stop.set()
    for thread in waiting:
        thread.join(60)
    assert (True, []) == (stop.wait(), [thread for thread in waiting if thread.is_alive()])


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
