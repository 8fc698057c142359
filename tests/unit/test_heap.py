"""What services give back."""

import os
import platform
from pathlib import Path

import pytest

from headgate.heap import trim_heap


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="elsewhere nothing is done")
def test_free_memory_between_blocks_in_use_goes_back() -> None:
    blocks = [bytearray(65_536) for _ in range(2000)]
    kept = blocks[::20]
    del blocks
    before = resident_bytes()
    trim_heap()
    assert before - resident_bytes() > 100 * 2**20
    assert len(kept) == 100
