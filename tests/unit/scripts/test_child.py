"""A stop ends the job cleanly, and Spark's log is shown where it says more than the job."""

import os
import signal
from functools import partial
from types import SimpleNamespace

import child
import pytest
from steps import telling_lines


@pytest.fixture
def sent(monkeypatch):
    """The signals that went out: ("job", pid, signal) or ("all", process group, signal)."""
    signals = []
    monkeypatch.setattr("os.kill", lambda pid, number: signals.append(("job", pid, number)))
    monkeypatch.setattr("os.killpg", lambda group, number: signals.append(("all", group, number)))
    return signals


def stop_of(tmp_path, pid: str | None):
    file = tmp_path / "pid"
    if pid is not None:
        file.write_text(pid)
    return child.Stop(file, child=SimpleNamespace(pid=70, poll=lambda: None))


def test_the_first_stop_goes_to_the_job_the_second_to_all_the_third_kills(tmp_path, sent) -> None:
    stop = stop_of(tmp_path, "71")
    for _ in range(3):
        stop(signal.SIGINT, None)
    expected = [("job", 71, signal.SIGTERM), ("all", 70, signal.SIGTERM), ("all", 70, signal.SIGKILL)]
    assert expected == sent


@pytest.mark.parametrize(("before", "is_heard"), [(signal.SIG_DFL, True), (signal.SIG_IGN, False)])
def test_a_terminal_that_closes_stops_the_job_once_and_not_with_nohup(
    tmp_path, sent, before, is_heard, monkeypatch, request
) -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        request.addfinalizer(partial(signal.signal, number, signal.getsignal(number)))
    signal.signal(signal.SIGHUP, before)
    monkeypatch.setattr("sys.stderr.write", lambda _: os.close(-1))  # Bad file descriptor
    stop_of(tmp_path, "71").install()
    for _ in range(2):
        signal.raise_signal(signal.SIGHUP)
    expected = [("job", 71, signal.SIGTERM)] * is_heard
    assert expected == sent


def test_a_terminal_that_closes_hurries_no_job_that_is_stopping(tmp_path, sent, request) -> None:
    request.addfinalizer(partial(signal.signal, signal.SIGHUP, signal.getsignal(signal.SIGHUP)))
    stop = stop_of(tmp_path, "71")
    stop(signal.SIGINT, None)
    stop(signal.SIGHUP, None)
    expected = [("job", 71, signal.SIGTERM)]
    assert expected == sent


@pytest.mark.parametrize("pid", [None, "", "not yet"])
def test_before_the_job_noted_its_process_spark_is_stopped_and_that_is_no_failure(tmp_path, sent, pid) -> None:
    stop = stop_of(tmp_path, pid)
    stop(signal.SIGTERM, None)
    expected = [("all", 70, signal.SIGTERM)]
    assert expected == sent
    assert stop.exit_status(-signal.SIGTERM) == 0


def test_a_stop_before_spark_started_is_delivered_when_it_has(tmp_path, sent) -> None:
    stop = child.Stop(tmp_path / "pid")
    stop(signal.SIGTERM, None)
    assert not sent
    stop.child = SimpleNamespace(pid=70, poll=lambda: None)
    stop.deliver()
    expected = [("all", 70, signal.SIGTERM)]
    assert expected == sent


@pytest.mark.parametrize(("of_spark", "of_wrapper"), [(0, 0), (3, 3), (-9, 137)])
def test_the_exit_status_is_the_jobs(tmp_path, of_spark, of_wrapper) -> None:
    assert of_wrapper == stop_of(tmp_path, "71").exit_status(of_spark)


def test_a_job_that_did_not_catch_the_signal_yet_is_stopped_too(tmp_path, sent) -> None:
    stop = stop_of(tmp_path, "71")
    stop(signal.SIGTERM, None)
    assert stop.exit_status(128 + signal.SIGTERM) == 0


def test_a_stopped_jobs_own_failure_is_passed_on(tmp_path, sent) -> None:
    stop = stop_of(tmp_path, "71")
    stop(signal.SIGTERM, None)
    assert stop.exit_status(2) == 2


@pytest.mark.parametrize(
    ("log", "shown"),
    [
        ("", []),
        ("a\n\nb\nc\n", ["b", "c"]),
        ("WARN a\nException in thread x\n\tat y\nCaused by: z\n", ["Exception in thread x", "Caused by: z"]),
        ("Error: Unrecognized option: --x\n\nUsage: spark-submit\nOptions:\n", ["Error: Unrecognized option: --x"]),
    ],
)
def test_of_a_log_the_lines_that_say_why_are_shown(log, shown) -> None:
    assert shown == telling_lines(log, limit=2)


@pytest.mark.parametrize(
    ("end", "show_log", "status", "told"),
    [
        ("exit 137", False, 137, "headgate: the job was ended by signal 9 (SIGKILL): "),
        ("exit 137", True, 137, "headgate: the job was ended by signal 9 (SIGKILL): "),
        ("kill -KILL $$", False, 137, "headgate: Spark was ended by signal 9. Its log "),
        ("kill -KILL $$", True, 137, "headgate: Spark was ended by signal 9 (SIGKILL): "),
        ("exit 1", False, 1, ""),
        ("exit 3", True, 3, ""),
    ],
)
def test_that_a_job_or_spark_was_killed_is_said_and_of_any_other_end_the_job_has_said_it(
    tmp_path, monkeypatch, capsys, end, show_log, status, told
) -> None:
    """Spark ends with the status of the job's Python: 128 and its number for a signal."""
    monkeypatch.setattr(child, "LOGS", tmp_path)
    monkeypatch.setattr(child.Stop, "install", lambda _: None)
    spark = ["sh", "-c", f': >"$HEADGATE_DRIVER_STARTED"; {end}']
    assert status == child.run_job(spark, dict(os.environ), "throttle", show_log=show_log)
    error = capsys.readouterr().err
    assert error.startswith(told)
    assert bool(told) == bool(error)


@pytest.mark.parametrize("show_log", [False, True])
def test_of_a_job_that_was_stopped_twice_no_one_says_that_it_was_killed(
    tmp_path, monkeypatch, capsys, show_log
) -> None:
    monkeypatch.setattr(child, "LOGS", tmp_path)
    monkeypatch.setattr(child.Stop, "install", lambda stop: setattr(stop, "count", 2))
    assert (
        child.run_job(["sh", "-c", "sleep 60"], dict(os.environ), "throttle", show_log=show_log) == 128 + signal.SIGTERM
    )
    assert not capsys.readouterr().err


def test_old_logs_are_deleted(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(child, "LOGS", tmp_path)
    for run in range(child.LOGS_KEPT + 5):
        (tmp_path / f"throttle-{run}.log").touch()
    child.new_log("throttle").close()
    assert len(list(tmp_path.iterdir())) == child.LOGS_KEPT
