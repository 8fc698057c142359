"""Where the shards of a broker meet: reports of a round become its horizon, parts of a second its metrics."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from headgate.cache.horizon.schemas import HORIZONS
from headgate.cache.schemas import METRICS
from headgate.core.cache.horizon.keyed_queue import Line
from headgate.core.cache.horizon.rounds import goal_bytes, horizon_of
from headgate.core.cache.limit import ByteLimit
from headgate.core.cache.policies.sharded import Report
from headgate.errors import StateError

_OF_ALL = (
    *("size_passes", "peak_bytes", "overshoot_bytes"),
    *("horizon_rounds", "horizon_busy_rounds", "horizon_inflow_share"),
)
"""What every shard has alike; other numbers of PARTS are sums."""
_MAPS = ("misses_by_reason", "dead_letters")
_PLACE = ("broker", "topic", "second", "until", "horizon_size_error")
_SUMS = [name for name in METRICS.names if name not in {*_OF_ALL, *_MAPS, *_PLACE}]


def horizons_of(reports: pa.Table, shards: int) -> pa.Table:
    """HORIZONS of the rounds that REPORTS of all shards are there of. Raises StateError where some are missing."""
    by_round: dict[tuple[str, int], list[dict[str, Any]]] = defaultdict(list)
    for row in reports.to_pylist():
        by_round[row["broker"], row["round"]].append(row)
    for (broker, number), rows in by_round.items():
        if len(rows) != shards:
            raise StateError(
                f"broker {broker}: {len(rows)} of {shards} shards report the round {number} in this batch, allowed are "
                "all: start with a new --checkpoint and --output"
            )
    return pa.Table.from_pylist([_horizon(rows) for _, rows in sorted(by_round.items())], HORIZONS)


def metrics_of(parts: pa.Table) -> pa.Table:
    """METRICS of all shards together; a topic is one shard's alone. Of two tellings up to one time the later holds."""
    rows = sorted(parts.to_pylist(), key=lambda row: row["place"])
    by_mark: dict[tuple[str, int], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        if row["topic"] is None:
            by_mark[row["broker"], row["place"]].append(row)
    of_topics = (row for row in rows if row["topic"] is not None)
    told = [*map(_joined, by_mark.values()), *of_topics]
    by_key = {(row["broker"], row["until"], row["second"], row["topic"] or ""): row for row in told}
    in_order = ({name: by_key[key].get(name) for name in METRICS.names} for key in sorted(by_key))
    return pa.Table.from_pylist(list(in_order), METRICS)


def _horizon(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    first = rows[0]
    reports = [_report(row) for row in sorted(rows, key=lambda row: row["shard"])]
    goal = goal_bytes(reports, first["rows"], ByteLimit(first["limit_bytes"], first["watermark"]))
    used_bytes = sum(report.current_bytes for report in reports)
    place = None if goal is None else horizon_of(reports, used_bytes - goal)
    return {
        "broker": first["broker"],
        "round": first["round"],
        "event_time": first["at_us"],
        "rows": first["rows"],
        "used_bytes": used_bytes,
        "inserted_bytes": sum(report.inserted_bytes for report in reports),
        "limit_bytes": first["limit_bytes"],
        "goal_bytes": goal,
        "laps": None if place is None else place.laps,
        "key": None if place is None else list(place.key),
    }


def _report(row: dict[str, Any]) -> Report:
    lines = zip(row["laps"], map(tuple, row["keys"]), row["sizes"], strict=True)
    return Report(row["current_bytes"], row["inserted_bytes"], tuple(Line(*line) for line in lines))


def _joined(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    first = parts[0]
    joined = {name: first[name] for name in ("broker", "second", "until", *_OF_ALL)}
    joined |= {name: sum(part[name] for part in parts) for name in _SUMS}
    joined |= {name: _summed(part[name] for part in parts) for name in _MAPS}
    left_bytes = sum(part["left_bytes"] for part in parts)
    goal = first["goal_bytes"]
    error = 0.0 if goal is None else abs(left_bytes - goal) / max(1, first["limit_bytes"])
    return joined | {"topic": None, "horizon_size_error": error}


def _summed(counts: Iterable[Iterable[tuple[str, int]]]) -> list[tuple[str, int]]:
    return sorted(sum((Counter(dict(one)) for one in counts), Counter[str]()).items())
