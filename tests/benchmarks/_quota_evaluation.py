"""One evaluation of a cell of 100,000 groups with 5 active brokers each, in a process of its own: time and memory.

Started by quota_scale.py; prints one JSON object. Nothing but the kernels is imported here, so the memory is theirs.
"""

import json
import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import numpy as np

from headgate.core.kernels.quota_allocation import Cells, Cluster, Reports, max_min_many, step_many
from headgate.core.quota.evaluation.step_parameters import Mode, StepParameters

GROUPS, BROKERS, ACTIVE = 100_000, 100, 5
WARMUPS = 2
MIB = 2**20


def columns() -> tuple[Cells, Reports]:
    """Random demand around the quota, so that about half of the groups have to be divided; seeds are fixed."""
    random = np.random.default_rng(1)
    rows = GROUPS * ACTIVE
    ids = random.integers(1, BROKERS // ACTIVE, (GROUPS, ACTIVE), endpoint=True).cumsum(axis=1) - 1
    quotas = random.integers(100, 100_000, GROUPS)
    share = np.repeat(quotas // ACTIVE, ACTIVE)
    demands = (share * random.uniform(0, 2, rows)).astype(np.int64)
    limits = (share * random.uniform(0.2, 1.8, rows)).astype(np.int64)
    cells = Cells(quotas, np.arange(0, rows + 1, ACTIVE), ids.ravel(), np.ones(rows, np.int64), demands)
    none = np.zeros(rows, np.bool_)
    return cells, Reports(limits, none, none, none, limits)


def resident_bytes() -> int:
    """What the process holds in memory now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def seconds_of(evaluate: Callable[[], object], repetitions: int) -> list[float]:
    found = []
    for repetition in range(-WARMUPS, repetitions):
        start = perf_counter()
        evaluate()
        if repetition >= 0:
            found.append(perf_counter() - start)
    return found


def main() -> None:
    repetitions = int(sys.argv[1])
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    cells, reports = columns()
    held = resident_bytes()
    cluster = Cluster(BROKERS, BROKERS, 0, 0)
    fast, strict = StepParameters(), StepParameters(mode=Mode.STRICT)

    def targets() -> object:
        return max_min_many(cells)

    def step_fast() -> object:
        return step_many(fast, cells, reports, cluster)

    def step_strict() -> object:
        return step_many(strict, cells, reports, cluster)

    sides = {"max_min": targets, "fast": step_fast, "strict": step_strict}
    seconds = {name: seconds_of(side, repetitions) for name, side in sides.items()}
    sums = np.add.reduceat(max_min_many(cells), cells.offsets[:-1])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    exact = bool((sums == cells.quotas).all())
    print(json.dumps({"seconds": seconds, "held_mib": held / MIB, "peak_mib": peak / MIB, "exact": exact}))


if __name__ == "__main__":
    main()
