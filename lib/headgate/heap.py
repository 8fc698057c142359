"""Memory of processes that run for long: what is loaded once, and what goes back to the system (with glibc alone)."""

import ctypes
import gc
from contextlib import suppress
from functools import cache

_M_MMAP_THRESHOLD = -3
_MAPPED_BYTES = 131_072
"""glibc's own default, which it no longer raises once it is set."""


@cache
def leave_loaded_alone() -> None:
    """Once in a process: let collections of garbage pass over what is there now. A look at it takes 50 to 100 ms; and a
    full one waits until there is a quarter more than the last one has seen, so what is left in cycles goes soon.
    """
    gc.collect()
    gc.freeze()
    gc.collect()  # which sees nothing


def give_buffers_back() -> None:
    """Have the buffers of TLS, 256 KiB a connection, go back to the system when it ends. By itself glibc keeps blocks
    of such a size once one was freed.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _MAPPED_BYTES)


def trim_heap() -> None:
    """Give back to the system what is free between blocks that are in use, which takes some ms."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
