"""What the parts of a soak hold in memory, and how fast that grows."""

import os
import re
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from statistics import fmean, linear_regression
from typing import NamedTuple

WHOLE_HEAP = "-Xms1g -Xmx1g -XX:+AlwaysPreTouch"
"""Java's heap is resident from the start."""
WINDOW_S = 120
SHARES = {"between batches": 0.1, "half of the time": 0.5}
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Held(NamedTuple):
    """Resident memory of a part, with all processes that come of it. heap: of Java's what is in use after a collection.
    code: what Java has compiled, which has a bound. java: of Java all else, but for memory that its allocator has free.
    others: of processes without Java.
    """

    heap_mb: float
    code_mb: float
    java_mb: float
    others_mb: float

    def __str__(self) -> str:
        of_java = f"heap {self.heap_mb:.1f}, code {self.code_mb:.1f}, Java's other {self.java_mb:.1f}, "
        return f"{of_java if self.java_mb else ''}others {self.others_mb:.1f}"


class Sample(NamedTuple):
    """What a part holds at a time; start: how often it has started."""

    at_s: float
    start: int
    held: Held


class Slope(NamedTuple):
    """By least squares, and its standard error, both in MB an hour."""

    mb_per_h: float
    error_mb_per_h: float

    def is_above(self, mb_per_h: float) -> bool:
        """Whether it is by more than chance: of a dozen slopes one is by two errors in a soak out of four."""
        return self.mb_per_h - 3 * self.error_mb_per_h > mb_per_h

    def __str__(self) -> str:
        return f"{self.mb_per_h:.1f} MB/h (standard error {self.error_mb_per_h:.1f})"


def held_by(pid: int) -> Held:
    """Of the process and all below it: workers of Spark have groups of their own."""
    names, parents = dict[int, str](), dict[int, int]()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            name, _, rest = stat.read_text().rpartition(") ")
            one = int(stat.parent.name)
            names[one], parents[one] = name.partition("(")[2], int(rest.split()[1])

    def is_below(one: int) -> bool:
        return one == pid or (one in parents and is_below(parents[one]))

    heap_mb = code_mb = java_mb = others_mb = 0.0
    for one in filter(is_below, names):
        if names[one] == "java":
            total_mb, used_mb, compiled_mb = _java_mb(one)
            heap_mb, code_mb = heap_mb + used_mb, code_mb + compiled_mb
            java_mb += _resident_mb(one) - total_mb - compiled_mb
        elif not runs_java(one):  # it would be Java's memory once more, in a child just forked
            others_mb += _resident_mb(one)
    return Held(heap_mb, code_mb, java_mb, others_mb)


def runs_java(pid: int) -> bool:
    """False: it may have ended."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/exe").readlink().name == "java"
    return False


def _java_mb(pid: int) -> tuple[float, float, float]:
    """All of Java's heap, which has to be resident (WHOLE_HEAP), what of it is in use after a collection, and what Java
    has compiled. What its allocator keeps for later is given back before.
    """
    commands = ("GC.run", "System.trim_native_heap", "GC.heap_info", "Compiler.codecache")
    words = ["jcmd", str(pid), "\n".join(commands)]
    return parsed_mb(subprocess.run(words, capture_output=True, text=True, check=True).stdout)


def parsed_mb(told: str) -> tuple[float, float, float]:
    """The same of what Java tells, with the serial collector or G1, and whichever compiler."""
    parts = re.findall(r" total (\d+)K, used (\d+)K", told)
    assert parts, told
    compiled_kb = sum(map(int, re.findall(r"^Code(?:Heap|Cache)\b.* used=(\d+)Kb", told, re.MULTILINE)))
    return *(sum(map(int, of_all)) / 2**10 for of_all in zip(*parts, strict=True)), compiled_kb / 2**10


def _resident_mb(pid: int) -> float:
    """0: it has ended."""
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE / 2**20
    return 0.0


def windows(samples: Sequence[Sample], settling_s: float, share: float) -> list[Sample]:
    """In each whole WINDOW_S after the last start that was sampled, once settled, what was held in so many samples, or
    less. A low share is what is kept between batches, a half is batches under way, too; children just forked, and
    processes that were missed, are neither.
    """
    since = [sample for sample in samples if sample.start == samples[-1].start]
    late = [sample for sample in since if sample.at_s - since[0].at_s >= settling_s]
    found = [list(one) for _, one in groupby(late, lambda sample: int((sample.at_s - late[0].at_s) / WINDOW_S))]
    if found and late[-1].at_s - found[-1][0].at_s < WINDOW_S * 0.9:
        found.pop()
    return [one[0]._replace(held=_at_share([sample.held for sample in one], share)) for one in found]


def slopes_mb_per_h(samples: Sequence[Sample], settling_s: float) -> dict[str, Slope] | None:
    """How fast these grew, at SHARES; None: not for as long as it took to settle. Not what Java has compiled."""
    found = {name: windows(samples, settling_s, share) for name, share in SHARES.items()}
    if any(len(of_share) < max(int(settling_s / WINDOW_S), 3) for of_share in found.values()):
        return None
    return {name: _slope(of_share) for name, of_share in found.items()}


def _at_share(held: Sequence[Held], share: float) -> Held:
    """Of each kind of memory."""
    return Held(*(sorted(kind)[int(len(kind) * share)] for kind in zip(*held, strict=True)))


def _slope(samples: Sequence[Sample]) -> Slope:
    hours, held_mb = ([one.at_s / 3600 for one in samples], [sum(one.held) - one.held.code_mb for one in samples])
    fitted, offset = linear_regression(hours, held_mb)
    left = sum((mb - fitted * hour - offset) ** 2 for hour, mb in zip(hours, held_mb, strict=True))
    spread = sum((hour - fmean(hours)) ** 2 for hour in hours)
    return Slope(fitted, (left / (len(samples) - 2) / spread) ** 0.5)
