"""The caches in a checkpoint's state, as a table. No engine."""

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from headgate.arrow.schemas import TIMESTAMP
from headgate.cache.forms import topics_and_cursors
from headgate.cache.stored.state import NOT_YET, StoredBroker, decode_broker, decode_state, is_of_caches

REPORT = pa.schema(
    [
        ("broker", pa.string()),
        ("policy", pa.string()),
        ("limit_bytes", pa.int64()),
        ("used_bytes", pa.int64()),
        ("entries", pa.int64()),
        ("topics", pa.int64()),
        ("cursors", pa.int64()),
        ("hits", pa.int64()),
        ("misses", pa.int64()),
        ("waiting", pa.int64()),
        ("clock", TIMESTAMP),
        ("watermark", TIMESTAMP),
    ]
)
"""cursors: those that are open. waiting: rows above the watermark. clock: the last row that was taken, null: none."""


def are_of_caches(states: Iterable[tuple[int, bytes]]) -> bool:
    """Whether state values, (version, blocks) each, are those of the entry cache's job."""
    return any(is_of_caches(blocks) for _, blocks in states)


def cache_report(states: Iterable[tuple[int, bytes]]) -> pa.Table:
    """REPORT of a checkpoint's state values, in the order of brokers. Raises StateError for another version."""
    rows = [
        _row(name, stored)
        for version, blocks in states
        for name, stored in decode_state(version, blocks).brokers.items()
    ]
    return pa.Table.from_pylist(sorted(rows, key=lambda row: str(row["broker"])), REPORT)


def _row(name: str, stored: StoredBroker) -> dict[str, Any]:
    cache = decode_broker(name, stored).cache
    totals = cache.totals()
    topics, cursors = topics_and_cursors(cache)
    return {
        "broker": name,
        "policy": str(cache.settings.policy),
        "limit_bytes": cache.settings.max_bytes,
        "used_bytes": totals["bytes"],
        "entries": totals["entries"],
        "topics": topics,
        "cursors": cursors,
        "hits": totals["hits"],
        "misses": totals["misses"],
        "waiting": stored.waiting,
        "clock": _instant(cache.now_us),
        "watermark": _instant(stored.done_us),
    }


def _instant(t_us: int) -> int | None:
    return None if t_us == NOT_YET else t_us
