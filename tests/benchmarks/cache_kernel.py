"""The entry cache in plain Python and on arrays, one thread, on the same rows of the workload generator.

An entry operation is one entry added or read. CPU time; rows are made and packed before, the removal log and the memory
of miss reasons are off. Both sides take turns in one run and end with equal totals. libCacheSim's LRU, where it is
installed (extra `compare`), takes the same entry operations as requests, an entry each, from a file that it maps. The
curve feeds adds and reads of one entry each, with the cache full of so many entries before.
"""

import tempfile
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from time import process_time

import numpy as np
from _bench import Results, interleave, parser, ratios

from headgate.core.cache.broker import Cache
from headgate.core.cache.rows import Row
from headgate.core.cache.settings import PREFIX, CacheSettings
from headgate.core.cache.traces.workload import generate
from headgate.core.kernels.cache.broker import ArrayCache

POLICIES = ("pip430", "lru", "sieve", "cursor_distance")
MIB_BYTES = 1 << 20
ENTRY_BYTES = 1024
CACHED = (1_000, 10_000, 100_000, 1_000_000)
CURVE_ROWS = 200_000
KINDS = {"add", "read", "replay_read"}
REQUEST = np.dtype([("s", "<u4"), ("id", "<u8"), ("bytes", "<u4"), ("next", "<i8")])
"""A record of libCacheSim's layout oracleGeneral."""


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


class TheirLru:
    """libCacheSim's LRU on the entries that rows add and read; each run returns millions of them a second."""

    def __init__(self, rows: Sequence[Row], folder: str) -> None:
        entries = [
            (row.topic, row.ledger, entry)
            for row in rows
            if row.kind in KINDS
            for entry in range(row.entry, row.entry + (row.count or 1))
        ]
        numbers = {entry: number for number, entry in enumerate(dict.fromkeys(entries))}
        requests = np.zeros(len(entries), REQUEST)
        requests["id"] = [numbers[entry] for entry in entries]
        requests["bytes"] = ENTRY_BYTES
        self._trace = Path(folder, "requests.oracleGeneral.bin")
        self._trace.write_bytes(requests.tobytes())
        self._millions = len(entries) / 1e6

    def run(self) -> float:
        """All requests in one call."""
        import libcachesim  # noqa: PLC0415  where it is installed

        cache = libcachesim.LRU(2 * MIB_BYTES)
        reader = libcachesim.TraceReader(str(self._trace), libcachesim.TraceType.ORACLE_GENERAL_TRACE)
        start = process_time()
        cache.process_trace(reader)
        return self._millions / (process_time() - start)


def beside_theirs(results: Results, rows: Sequence[Row], repetitions: int) -> None:
    """Both LRUs on the same entries; a stretch goal, without a bound that has to hold."""
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = Sides("lru", rows), TheirLru(rows, folder)
        values = interleave({"arrays": ours.arrays, "libCacheSim": theirs.run}, repetitions, warmups=1)
    results.measure("lru, fanout, 2 MiB, libCacheSim", "M entry operations/s", values["libCacheSim"])
    results.target(
        "lru: arrays / libCacheSim (stretch)", "x", ratios(values["arrays"], values["libCacheSim"]), at_least=1
    )


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
        if find_spec("libcachesim"):
            beside_theirs(results, rows, arguments.repetitions)
        for policy in POLICIES:
            sizes = {f"{cached:,}": curve(policy, cached) for cached in CACHED}
            values = interleave(sizes, max(1, arguments.repetitions // 5), warmups=0)
            for cached, spent in values.items():
                results.measure(f"{policy}, {cached} entries cached", "ns per row", spent)
    return 0 if equal else 1


if __name__ == "__main__":
    raise SystemExit(main())
