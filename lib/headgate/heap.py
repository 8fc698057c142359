"""Memory that services give back to the system; with glibc alone, elsewhere nothing is done."""

import ctypes
from contextlib import suppress

_M_MMAP_THRESHOLD = -3
_MAPPED_BYTES = 131_072
"""glibc's own default, which it no longer raises once it is set."""


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
