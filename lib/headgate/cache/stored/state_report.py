"""The caches in a checkpoint's state, as a table. No engine."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from headgate.arrow.schemas import TIMESTAMP
from headgate.cache.forms import AnyCache, topics_and_cursors
from headgate.cache.horizon import state as of_horizon
from headgate.cache.horizon.state import SlotState, decode_line, decode_shard, is_of_shards
from headgate.cache.stored.state import NEVER, StoredBroker, decode_broker, decode_state, is_of_caches

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
    return any(is_of_caches(blocks) or is_of_shards(blocks) for _, blocks in states)


def cache_report(states: Iterable[tuple[int, bytes]]) -> pa.Table:
    """REPORT of a checkpoint's state values, in the order of brokers. Raises StateError for another version."""
    rows = []
    slots: list[SlotState] = []
    for version, blocks in states:
        if is_of_shards(blocks):
            slots.append(of_horizon.decode_state(version, blocks))
        else:
            rows += [_row(name, stored) for name, stored in decode_state(version, blocks).brokers.items()]
    rows += _rows_of_lines(slots)
    return pa.Table.from_pylist(sorted(rows, key=lambda row: str(row["broker"])), REPORT)


def _rows_of_lines(slots: list[SlotState]) -> Iterator[dict[str, Any]]:
    """A row a broker, of its line and all of its shards, which may be behind several keys."""
    shards: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for slot in slots:
        for (broker, number), stored in slot.shards.items():
            shards[broker].append(_held(decode_shard(broker, number, stored).cache))
    for slot in slots:
        for broker, stored_line in slot.lines.items():
            line = decode_line(broker, stored_line)
            yield {
                "broker": broker,
                "policy": str(line.settings.policy),
                "limit_bytes": line.settings.max_bytes,
                **{name: sum(held[name] for held in shards[broker]) for name in _HELD},
                "waiting": len(line.kept),
                "clock": _instant(line.now_us),
                "watermark": _instant(line.done_us),
            }


def _row(name: str, stored: StoredBroker) -> dict[str, Any]:
    cache = decode_broker(name, stored).cache
    return {
        "broker": name,
        "policy": str(cache.settings.policy),
        "limit_bytes": cache.settings.max_bytes,
        **_held(cache),
        "waiting": stored.waiting,
        "clock": _instant(cache.now_us),
        "watermark": _instant(stored.done_us),
    }


def _held(cache: AnyCache) -> dict[str, Any]:
    totals = cache.totals()
    size = (totals["bytes"], totals["entries"])
    values = (*size, *topics_and_cursors(cache), totals["hits"], totals["misses"])
    return dict(zip(_HELD, values, strict=True))


_HELD = ("used_bytes", "entries", "topics", "cursors", "hits", "misses")


def _instant(t_us: int) -> int | None:
    return None if t_us == NEVER else t_us
