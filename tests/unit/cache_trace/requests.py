"""Requests in every layout of a file, and as rows of the core."""

import struct

import numpy as np
import pyarrow.parquet as pq

from headgate.cache_trace import Layout
from headgate.core.cache.broker import Cache
from headgate.core.cache.rows import Row
from headgate.core.cache.settings import CacheSettings

REQUESTS = [(3, 7, 512), (3, 1 << 63, 4096), (4, 7, 512), (9, (1 << 64) - 1, 1)]
"""Time in seconds, id, size in bytes."""

ORACLE_GENERAL = Layout("oracleGeneral")
VSCSI = Layout("vscsi")
CSV = Layout("csv", time_column=2, id_column=4, size_column=3)
BINARY = Layout("binary", record=">HQIqd", time_column=5, id_column=2, size_column=3)


def oracle_general(requests):
    return b"".join(struct.pack("<IQIq", time, id_, size, -1) for time, id_, size in requests)


def vscsi_1(requests):
    return b"".join(
        struct.pack("<IIIHHQQ", n, size, 1, 42, 1 << 8, id_, time * 1_000_000)
        for n, (time, id_, size) in enumerate(requests)
    )


def vscsi_2(requests):
    return b"".join(
        struct.pack("<HHIIIQQQ", 42, 2 << 8, n, size, 1, id_, time * 1_000_000, 0)
        for n, (time, id_, size) in enumerate(requests)
    )


def csv(requests, delimiter=","):
    lines = [f"get,{time},{size},{id_}\n" for time, id_, size in requests]
    return "".join(lines).replace(",", delimiter).encode()


def binary(requests):
    return b"".join(struct.pack(">HQIqd", 1, id_, size, -1, float(time)) for time, id_, size in requests)


def popular(count, objects, seed=1, sizes=(1, 1)):
    """Requests of which few ids take most, one a second, with the size that belongs to the id."""
    draw = np.random.default_rng(seed)
    ids = np.minimum(draw.zipf(1.2, count), objects)
    sizes_bytes = draw.integers(sizes[0], sizes[1], objects + 1, endpoint=True)
    return [(time, int(id_), int(sizes_bytes[id_])) for time, id_ in enumerate(ids)]


def rows(folder):
    for path in sorted(folder.glob("*.parquet")):
        columns = pq.read_table(path).to_pydict()
        for time, seq, kind, topic, cursor, ledger, entry, count, sizes in zip(
            *(
                columns[name]
                for name in ("event_time", "seq", "kind", "topic", "cursor", "ledger", "entry", "count", "sizes")
            ),
            strict=True,
        ):
            yield Row(int(time.timestamp() * 1_000_000), seq, kind, topic, cursor, ledger, entry, count, sizes)


def hits(rows_, policy, max_bytes):
    keys = {"policy": policy, "maxBytes": max_bytes, "rangeHits": "entry", "reasonMemory": 0}
    cache = Cache(CacheSettings.of({f"headgate.cache.{key}": value for key, value in keys.items()}))
    rows_ = list(rows_)
    if policy == "belady":
        cache.foresee(rows_)
    for row in rows_:
        assert cache.feed(row).dead is None
    return cache.totals()["hits"]
