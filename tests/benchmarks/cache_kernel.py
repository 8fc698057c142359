"""The entry cache in plain Python and on arrays, one thread, on the same rows of the workload generator.

An entry operation is one entry added or read. CPU time; rows are made and packed before, the removal log and the memory
of miss reasons are off. Both sides take turns in one run and end with equal totals. The curve feeds adds and reads of
one entry each, with the cache full of so many entries before.
"""

from collections.abc import Callable, Sequence
from time import process_time

import numpy as np
from _bench import Results, interleave, parser, ratios

from headgate.core.cache.broker import Cache
from headgate.core.cache.rows import Row
from headgate.core.cache.settings import PREFIX, CacheSettings
from headgate.core.cache.workload import generate
from headgate.core.kernels.cache.broker import ArrayCache

POLICIES = ("pip430", "lru", "sieve", "cursor_distance")
MIB_BYTES = 1 << 20
ENTRY_BYTES = 1024
CACHED = (1_000, 10_000, 100_000, 1_000_000)
CURVE_ROWS = 200_000
KINDS = {"add", "read", "replay_read"}


def settings_of(policy: str, max_bytes: int) -> CacheSettings:
    """As in section 16 of the specification."""
    keys = {"policy": policy, "maxBytes": max_bytes, "rangeHits": "entry", "reasonMemory": 0}
    return CacheSettings.of({f"{PREFIX}{name}": value for name, value in keys.items()})


def operations(rows: Sequence[Row]) -> int:
    """Entries added or read."""
    return sum(row.count or 1 for row in rows if row.kind in KINDS)


class Sides:
    """A policy on rows, in both forms; each run returns millions of entry operations a second."""

    def __init__(self, policy: str, rows: Sequence[Row]) -> None:
        self._settings = settings_of(policy, 2 * MIB_BYTES)
        self._rows = rows
        self._millions = operations(rows) / 1e6
        self.totals: dict[str, dict[str, int]] = {}

    def python(self) -> float:
        """Row by row through the readable form."""
        cache = Cache(self._settings)
        start = process_time()
        for row in self._rows:
            cache.feed(row)
        spent = process_time() - start
        self.totals["python"] = cache.totals()
        return self._millions / spent

    def arrays(self) -> float:
        """All rows in one call."""
        cache = ArrayCache(self._settings)
        packed = cache.pack(self._rows)
        start = process_time()
        cache.feed_rows(packed)
        spent = process_time() - start
        self.totals["arrays"] = cache.totals()
        return self._millions / spent


def curve(policy: str, cached: int) -> Callable[[], float]:
    """Nanoseconds a row with a cache that holds so many entries; reads are of any of them, every other row adds one."""
    random = np.random.default_rng(1)

    def run() -> float:
        cache = ArrayCache(settings_of(policy, cached * ENTRY_BYTES))
        seq = 0
        filling = [Row(0, 0, "open", "t", "c", 0, 0)]
        for first in range(0, cached, 10_000):
            seq += 1
            filling.append(Row(0, seq, "add", "t", None, 0, first, min(10_000, cached - first), [ENTRY_BYTES]))
        cache.feed_rows(cache.pack(filling))
        rows = []
        back = random.integers(1, cached * 9 // 10, CURVE_ROWS).tolist()
        for place in range(0, CURVE_ROWS, 2):
            newest = cached + place // 2
            rows.append(Row(place, seq + 1, "add", "t", None, 0, newest, 1, [ENTRY_BYTES]))
            rows.append(Row(place, seq + 2, "read", "t", "reader", 0, newest - back[place], 1, [ENTRY_BYTES]))
        packed = cache.pack(rows)
        start = process_time()
        cache.feed_rows(packed)
        return (process_time() - start) / CURVE_ROWS * 1e9

    return run


def main() -> int:
    """1 if the forms ended differently, else 0."""
    arguments = parser(__doc__).parse_args()
    rows = list(generate("fanout", 1))
    equal = True
    with Results(
        "cache_kernel",
        "Entry cache: readable form and array form",
        about=__doc__.split("\n\n")[1].replace("\n", " "),
        save=arguments.save,
    ) as results:
        for policy in POLICIES:
            sides = Sides(policy, rows)
            values = interleave({"python": sides.python, "arrays": sides.arrays}, arguments.repetitions, warmups=1)
            wanted = {"at_least": 0.5} if policy == "pip430" else None
            name = f"{policy}, fanout, 2 MiB, plain Python"
            if wanted:
                results.target(name, "M entry operations/s", values["python"], **wanted)
            else:
                results.measure(name, "M entry operations/s", values["python"])
            results.target(f"{policy}, fanout, 2 MiB, arrays", "M entry operations/s", values["arrays"], at_least=5)
            results.measure(f"{policy}: arrays / plain Python", "x", ratios(values["arrays"], values["python"]))
            same = sides.totals["python"] == sides.totals["arrays"]
            results.check(f"{policy}: both forms end with equal totals", passed=same)
            equal = equal and same
        for policy in POLICIES:
            sizes = {f"{cached:,}": curve(policy, cached) for cached in CACHED}
            values = interleave(sizes, max(1, arguments.repetitions // 5), warmups=0)
            for cached, spent in values.items():
                results.measure(f"{policy}, {cached} entries cached", "ns per row", spent)
    return 0 if equal else 1


if __name__ == "__main__":
    raise SystemExit(main())
