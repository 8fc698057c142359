"""The life that all jobs share: the order of its steps, when closing ends, batches that Spark runs again. No JVM."""

import subprocess
import sys
import threading

import pytest
from pyspark.errors import PySparkException, StreamingQueryException

from headgate.errors import TableError
from headgate.spark import streaming_job
from headgate.spark.streaming_job import CLOSING_BATCHES, Schedule, StreamingJob


class Query:
    """Ends at once; its batches are taken as it is started."""

    isActive = False  # noqa: N815  Spark's name

    def __init__(self, failure=None):
        self._failure = failure

    def exception(self):
        return self._failure

    def stop(self):
        pass


class Scripted(StreamingJob):
    """batches: of each query in turn, pairs of number and rows. failing: which query fails, and what Spark says.
    unstarted: why none begins after the stop.
    """

    name = "scripted"

    def __init__(self, *batches, once=True, opens=True, stop_after=None, failing=(None, ""), unstarted=None):
        super().__init__(None, "checkpoint", threading.Event(), Schedule(once, 1000))
        self.said, self.heard = [], []
        self._batches, self._opens, self._stop_after, self._failing = list(batches), opens, stop_after, failing
        self._unstarted = unstarted

    def _start(self, trigger):
        if self._unstarted and self._stop.is_set():
            raise self._unstarted
        self.said.append(next(iter(trigger)))
        for number, rows in self._batches.pop(0) if self._batches else [(self._ended_batch + 1, 0)]:
            self._take_and_feed(rows, number)
        if len(self.said) == self._stop_after:
            self._stop.set()
        number, failure = self._failing
        return Query(StreamingQueryException(message=failure) if len(self.said) == number else None)

    def _take(self, output, batch_id):
        if self._is_new(batch_id):
            self.heard.append(batch_id)
        return output

    def _begin(self):
        self.said.append("begin")

    def _finish(self):
        self.said.append("finish")
        return self._opens

    def _end(self):
        self.said.append("end")


CLOSING = ["finish", "once"]


@pytest.mark.parametrize(
    ("batches", "closings"),
    [
        ([[(0, 5)], [(1, 0)]], 1),
        ([[(0, 5)], [(1, 3)], [(2, 0)]], 2),
        ([[(0, 5)], [], [(1, 0)]], 2),
        ([[(0, 5)], [(0, 5), (1, 0)]], 1),
        ([[(0, 5)], *[[(number, 1)] for number in range(1, 9)]], CLOSING_BATCHES),
    ],
    ids=["nothing comes in", "rows come in", "no batch came", "a batch runs again", "a source that keeps growing"],
)
def test_closing_is_done_again_as_long_as_rows_come_in_or_no_batch_closed(batches, closings):
    job = Scripted(*batches)
    assert job.run()
    assert ["begin", "availableNow", *CLOSING * closings, "end"] == job.said
    assert sorted(set(job.heard)) == job.heard


def test_where_nothing_is_open_nothing_is_closed():
    job = Scripted([(0, 5)], opens=False)
    assert job.run()
    assert ["begin", "availableNow", "finish", "end"] == job.said


def test_a_stop_ends_a_run_before_it_is_closed_and_says_so():
    job = Scripted([(0, 5)], stop_after=2)
    assert not job.run()
    assert ["begin", "availableNow", "end"] == job.said


class Behind(Scripted):
    """Runs a batch that was broken off before anything else."""

    def _begin(self):
        super()._begin()
        self._to_the_end(None, once=True)


@pytest.mark.parametrize("once", [True, False])
def test_a_stop_or_a_failure_while_a_job_begins_is_its_end(once, monkeypatch):
    monkeypatch.setattr(streaming_job, "has_open_batch", lambda _: False)
    stopped = Behind([(7, 5)], stop_after=2, once=once)
    failed = Behind([(7, 5)], stop_after=2, once=once, failing=(2, DISK_FULL))
    assert (False, False) == (stopped.run(), failed.run())
    assert ["begin", "once", "end"] == stopped.said
    assert ["begin", "once"] == failed.said


def _away(_):
    raise OSError("away")


@pytest.mark.parametrize(
    ("is_open", "completed"),
    [(lambda _: True, ["once"]), (lambda _: False, []), (_away, [])],
    ids=["yes", "no", "away"],
)
def test_a_stop_runs_the_batch_that_was_begun_where_that_is_known(is_open, completed, monkeypatch):
    monkeypatch.setattr(streaming_job, "has_open_batch", is_open)
    job = Scripted([(0, 5)], stop_after=2)
    assert not job.run()
    assert ["begin", "availableNow", *completed, "end"] == job.said


DISK_FULL = "ended\nCaused by: java.io.IOException: No space left on device"
INTERRUPTED = "ended\nCaused by: java.lang.InterruptedException: sleep interrupted"


@pytest.mark.parametrize(
    ("failing", "said", "told"),
    [
        ((2, DISK_FULL), [], "scripted: the query failed: IOException: No space left on device"),
        ((2, INTERRUPTED), ["once", "end"], ""),
        ((3, DISK_FULL), ["once"], "scripted: the query failed: IOException: No space left on device"),
    ],
    ids=["the last batch", "the stop itself", "the batch that was begun"],
)
def test_after_a_stop_a_batch_that_failed_is_left_to_the_next_start(failing, said, told, monkeypatch, capsys):
    """As after a crash: what the batch has done in part is done again from what is stored, not from what is left."""
    monkeypatch.setattr(streaming_job, "has_open_batch", lambda _: True)
    job = Scripted([(0, 5)], stop_after=2, failing=failing)
    assert not job.run()
    assert ["begin", "availableNow", *said] == job.said
    assert told == capsys.readouterr().err.partition("\n")[0]


@pytest.mark.parametrize("error", [TableError("away"), PySparkException(message="away")])
def test_a_stop_ends_the_job_as_others_do_where_the_batch_that_was_begun_cannot_start(error, monkeypatch, capsys):
    """What the job has done until then is whole, so others may be told that it ends."""
    monkeypatch.setattr(streaming_job, "has_open_batch", lambda _: True)
    job = Scripted([(0, 5)], stop_after=2, unstarted=error)
    assert not job.run()
    assert ["begin", "availableNow", "end"] == job.said
    assert "away" in capsys.readouterr().err


def test_what_fails_without_a_stop_is_raised_even_if_it_names_an_interrupt():
    job = Scripted([(0, 5)], failing=(2, INTERRUPTED))
    with pytest.raises(StreamingQueryException):
        job.run()
    assert "end" not in job.said


def test_a_batch_that_took_too_long_and_was_run_before_closing_is_not_left_to_the_next_start(monkeypatch):
    took_long, is_open = iter([True]), iter([True])
    monkeypatch.setattr(streaming_job, "end_query", lambda *_: next(took_long, False))
    monkeypatch.setattr(streaming_job, "has_open_batch", lambda _: next(is_open, False))
    job = Scripted([(0, 5)], [(1, 3)], [(2, 0)])
    assert job.run()
    assert not job.broken_off


def test_a_batch_that_was_begun_is_run_before_what_is_open_is_closed(monkeypatch):
    """Else the closing batch would be that one, and what is to close would not be read."""
    is_open = iter([True, False])
    monkeypatch.setattr(streaming_job, "has_open_batch", lambda _: next(is_open, False))
    job = Scripted([(0, 5)], [(1, 3)], [(2, 0)])
    assert job.run()
    assert ["begin", "availableNow", "once", *CLOSING, "end"] == job.said


BATCHES = """
import gc
import threading
import weakref

from headgate.spark.streaming_job import Schedule, StreamingJob


class Cycle:
    def __init__(self):
        self.itself = self


class Job(StreamingJob):
    def _drain(self):
        cycle = Cycle()
        gc.collect(1)  # it has lived through a batch
        left, kept = weakref.ref(cycle), []
        del cycle
        while left() and len(kept) < 400_000:
            kept.append([])
        print(len(kept))


loaded = [[] for _ in range(2_000_000)]
Job(None, "", threading.Event(), Schedule(once=True, interval_ms=1)).run()
"""


def test_what_batches_leave_in_cycles_goes_soon_however_much_the_job_has_loaded():
    """Spark keeps a query for as long as Python has its DataFrame. What is loaded is seen once, so in a new process."""
    done = subprocess.run([sys.executable, "-c", BATCHES], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 200_000
