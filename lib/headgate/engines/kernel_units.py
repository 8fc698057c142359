"""Kernels in units: what a run needs is compiled or loaded before its first batch, so that no batch waits for it."""

import atexit
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

PUBLISH = "headgate.throttle.array_form"
DISPATCH = "headgate.throttle.dispatch.array_form"
QUOTAS = "headgate.quota.cell_arrays"
CACHE = "headgate.cache.forms"
PROTOCOL = "headgate.protocol.array_form"
"""Modules whose `warm_up` compiles the kernels of one unit, or loads them from disk."""


def throttle_units(kernel: str, *, shares: bool) -> Sequence[str]:
    """What traffic needs, of whatever kinds; shares: quotas are shared, by arrays in either form of the rules."""
    return (*((PUBLISH, DISPATCH) if kernel != "python" else ()), *((QUOTAS,) if shares else ()))


def load_units(units: Iterable[str]) -> None:
    """Load units from disk. As soon as one has to be compiled, a process beside this one compiles those after it."""
    waiting = list(dict.fromkeys(units))
    while waiting:
        unit = waiting.pop(0)
        with _beside_the_first_compile(waiting):
            import_module(unit).warm_up()


@contextmanager
def _beside_the_first_compile(units: Sequence[str]) -> Iterator[None]:
    """Compile `units` elsewhere while the block runs, if it compiles anything, and wait for their end.

    It fills the cache on disk. Where there is none, or it fails, `units` are compiled here as their turn comes.
    """
    from numba.core import event  # noqa: PLC0415  loads the compiler

    processes: list[subprocess.Popen[bytes]] = []

    class Listener(event.Listener):
        def on_start(self, _event: Any) -> None:
            if units and not processes:
                processes.append(_compiling(units))
                atexit.register(processes[0].kill)  # a thread that is not waited for runs no `finally`

        def on_end(self, _event: Any) -> None:
            pass

    try:
        with event.install_listener("numba:compile", Listener()):
            yield
        for process in processes:
            process.wait()
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _compiling(units: Sequence[str]) -> subprocess.Popen[bytes]:
    """A process that compiles units, one after the other, with the modules of this one."""
    program = "import importlib, sys\nfor unit in sys.argv[1:]: importlib.import_module(unit).warm_up()"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen(
        [sys.executable, "-c", program, *units],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
