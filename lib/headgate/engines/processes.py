"""Tasks on all cores of this machine, each in a process of its own from a few that stay."""

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import forkserver, get_context
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

from headgate.errors import HeadgateError

Task = TypeVar("Task")
Outcome = TypeVar("Outcome")

_PRELOADED = ["headgate.replay.stream", "headgate.sizing.runs", "headgate.throttle.array_form"]
"""Imported once, where the processes are forked from."""


def prepare() -> None:
    """Begin to import what tasks need, beside what this process does until there are any."""
    if (os.cpu_count() or 1) > 1:
        forkserver.set_forkserver_preload(_PRELOADED)
        with _ignored(signal.SIGINT):
            forkserver.ensure_running()


def outcomes(work: Callable[[Task], Outcome], tasks: Sequence[Task]) -> Iterator[tuple[int, Outcome]]:
    """What `work` makes of each task, with the task's number, as soon as it is there.

    The tasks are begun in their order, as many at once as there are cores; one alone runs in this process. The
    processes end with the iterator; where this process is killed, each ends after its task. work: of a module; its
    tasks, outcomes and errors are pickled. Raises what `work` raises, HeadgateError for a process that was killed.
    """
    if min(len(tasks), os.cpu_count() or 1) <= 1:
        yield from ((number, work(task)) for number, task in enumerate(tasks))
        return
    prepare()
    context = get_context("forkserver")
    waiting = iter(enumerate(tasks))
    workers: dict[Connection, Any] = {}
    running: dict[Connection, int] = {}
    try:
        for number, task in _some(waiting, os.cpu_count() or 1):
            here, there = context.Pipe()
            worker = context.Process(target=_serve, args=(there, work), daemon=True)
            worker.start()
            there.close()
            workers[here], running[here] = worker, number
            _send(here, task)
        while running:
            for ready in [one for one in wait(list(running)) if isinstance(one, Connection)]:
                number, outcome = running.pop(ready), _received(ready)
                for after, task in _some(waiting, 1):
                    running[ready] = after
                    _send(ready, task)
                yield number, outcome
    finally:
        for worker in workers.values():
            worker.kill()
        for worker in workers.values():
            worker.join()


@contextmanager
def _ignored(number: int) -> Iterator[None]:
    """A process that begins in the block ignores the signal from its first instruction on."""
    before = signal.signal(number, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(number, before)


def _some(waiting: Iterator[tuple[int, Task]], most: int) -> Iterator[tuple[int, Task]]:
    for _ in range(most):
        with suppress(StopIteration):
            yield next(waiting)


@contextmanager
def _alive() -> Iterator[None]:
    try:
        yield
    except (EOFError, BrokenPipeError, ConnectionResetError) as error:
        raise HeadgateError("a process of the run was killed, by somebody or for want of memory") from error


def _send(ready: Connection, task: object) -> None:
    with _alive():
        ready.send(task)


def _received(ready: Connection) -> Any:
    with _alive():
        is_whole, value = ready.recv()
    if not is_whole:
        raise value
    return value


def _serve(tasks: Connection, work: Callable[[Any], Any]) -> None:
    """In a process of its own: until the other end is closed. Signals of a terminal are for the process that asks."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            task = tasks.recv()
            try:
                done = True, work(task)
            except Exception as error:  # noqa: BLE001  raised where the outcome is awaited
                done = False, error
            tasks.send(done)
