"""How far the miss ratios of a sample are from those of the whole trace, and what part of the work it takes.

python tests/benchmarks/cache_sampling.py

Misses do not depend on the machine or on what else it does; CPU time does, by a little.
"""

import argparse
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from _bench import Results, parser

from headgate.core.cache.rows import Row
from headgate.core.cache.settings import MIB_BYTES, CacheSettings, PolicyName, RangeHits
from headgate.core.cache.traces.sampling import sampled
from headgate.core.cache.traces.workload import Family, Sizes, generate
from headgate.sizing.instants import Span
from headgate.sizing.measure import measure
from headgate.sizing.trace import batches_of

SIZES_MIB = {Family.FANOUT: (1, 4), Family.CATCHUP: (2, 8), Family.REPLAY: (0.5, 1), Family.MIXED: (1, 4)}
POLICIES = (PolicyName.PIP430, PolicyName.CURSOR_DISTANCE, PolicyName.LRU, PolicyName.BELADY)
MIDDLE = Family.MIXED


class Point(NamedTuple):
    """A miss ratio in percent and the CPU seconds of the run, of the whole and of the sample; entries in percent."""

    mib: float
    looked_up_percent: float
    whole_percent: float
    sample_percent: float
    whole_s: float
    sample_s: float

    @property
    def off(self) -> float:
        """Points between the two."""
        return abs(self.sample_percent - self.whole_percent)


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--every", type=int, default=10, metavar="N", help="one entry in N; default 10")
    options.add_argument("--scale", type=int, default=2, metavar="N", help="N times the topics and caches; default 2")
    given = options.parse_args()
    about = (
        f"One entry in {given.every} (`--sample {given.every}`) against all, traffic of the generator with seed 1 and "
        f"{given.scale} times the topics (entry-cache 15), caches of the sizes shown times {given.scale}. A cell is "
        "the miss ratio of the whole / of the sample, in percent. Misses are the same on any machine; CPU time was "
        "measured once, without the time to cut the trace."
    )
    with Results("cache_sampling", "Sampled sweeps of the entry cache", about=about) as results:
        entry = dict(_kinds(given, RangeHits.ENTRY, POLICIES))
        whole = dict(_kinds(given, RangeHits.WHOLE, POLICIES[:2]))
        skewed = {"mixed, skewed sizes": _points(given, MIDDLE, RangeHits.ENTRY, POLICIES[0], Sizes.SKEWED)}
        for title, found in (
            ("Ranges that hit entry by entry", entry),
            ("Ranges that hit as a whole (rangeHits = whole)", whole),
            ("Sizes that differ", {(name, POLICIES[0]): points for name, points in skewed.items()}),
        ):
            results.table(title, ("traffic", "policy", "misses, % / %", "CPU of the sample"), list(_lines(found)))
        worst = max(point.off for points in entry.values() for point in points)
        results.target("farthest from the whole, entry by entry", "points", [worst], at_most=1)
        farthest = max(point.off for points in whole.values() for point in points)
        results.target("farthest from the whole, ranges as a whole", "points", [farthest], at_most=1)
        parts = [_part(points) for points in entry.values()]
        looked_up = [point.looked_up_percent for points in entry.values() for point in points]
        results.target("entries that are looked up, of those of the whole", "%", looked_up, at_most=11)
        results.measure("CPU of the sample of that of the whole", "%", [100 * part for part in parts])
    return 0


def _kinds(
    given: argparse.Namespace, hits: RangeHits, policies: Sequence[PolicyName]
) -> Iterator[tuple[tuple[str, str], list[Point]]]:
    for family in Family:
        for policy in policies:
            yield (str(family), str(policy)), _points(given, family, hits, policy, Sizes.EQUAL)


def _points(
    given: argparse.Namespace, family: Family, hits: RangeHits, policy: PolicyName, sizes: Sizes
) -> list[Point]:
    rows = list(generate(family, 1, sizes, given.scale))
    cut = list(sampled(rows, given.every))
    conf = {"headgate.cache.policy": policy, "headgate.cache.rangeHits": hits, "headgate.cache.reasonMemory": 0}
    found = []
    for mib in SIZES_MIB[family]:
        settings = CacheSettings.of({**conf, "headgate.cache.maxBytes": round(mib * given.scale * MIB_BYTES)})
        whole, sample = _run(settings, rows, 1), _run(settings, cut, given.every)
        looked_up = 100 * sample.looked_up / given.every / whole.looked_up
        found.append(Point(mib, looked_up, whole.miss_percent, sample.miss_percent, whole.cpu_s, sample.cpu_s))
    return found


class _Run(NamedTuple):
    miss_percent: float
    looked_up: int
    cpu_s: float


def _run(settings: CacheSettings, rows: Sequence[Row], every: int) -> _Run:
    """looked_up: entries, times `every`."""
    began_s = time.process_time()
    batches = list(batches_of(rows))
    found: Any = measure(settings, lambda: batches, Span(rows[0].t_us, rows[-1].t_us), every=every)
    looked_up = found["misses"] + found["hits"]
    return _Run(100 * found["misses"] / looked_up, looked_up, time.process_time() - began_s)


def _lines(found: dict[tuple[str, str], list[Point]]) -> Iterator[tuple[str, ...]]:
    for (name, policy), points in found.items():
        cells = "; ".join(f"{one.mib} MiB: {one.whole_percent:.2f} / {one.sample_percent:.2f}" for one in points)
        yield name, policy, cells, f"{100 * _part(points):.0f} %"


def _part(points: Sequence[Point]) -> float:
    return sum(one.sample_s for one in points) / sum(one.whole_s for one in points)


if __name__ == "__main__":
    raise SystemExit(main())
