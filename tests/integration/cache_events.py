"""Cache events of two brokers as files and tables, and what the job made of them as comparable rows."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from headgate.cache.schemas import EVENTS, OF_CACHE
from headgate.core.cache.broker import Cache
from headgate.core.cache.rows import Row
from headgate.core.cache.settings import CacheSettings
from headgate.core.cache.traces.workload import generate
from headgate.tables.delta import Tables

START = datetime(2026, 1, 5, 9, tzinfo=UTC)
BROKERS = ("broker-1", "broker-2")
NAMES = ("seq", "kind", "topic", "cursor", "ledger", "entry", "count", "sizes")


def at(t_us: int) -> datetime:
    return START + timedelta(microseconds=t_us)


def events(rows: int, family: str = "replay") -> list[dict[str, Any]]:
    """Rows of EVENTS, so many of each broker, in the order of their time."""
    made = [
        {"event_time": at(t_us), "broker": broker, **dict(zip(NAMES, rest, strict=False))}
        for seed, broker in enumerate(BROKERS, 1)
        for t_us, *rest in islice(generate(family, seed), rows)
    ]
    return sorted(made, key=lambda row: row["event_time"])


def conf_event(t_us: int, seq: int, broker: str = BROKERS[0], **conf: Any) -> dict[str, Any]:
    return {"event_time": at(t_us), "seq": seq, "broker": broker, "kind": "conf", "conf": conf}


def fed(rows: list[dict[str, Any]], broker: str, settings: dict[str, Any]) -> Cache:
    """The cache of a broker, without the job."""
    cache = Cache(CacheSettings.of(settings))
    for row in sorted(
        (row for row in rows if row["broker"] == broker), key=lambda row: (row["event_time"], row["seq"])
    ):
        t_us = round((row["event_time"] - START).total_seconds() * 10**6) + round(START.timestamp() * 10**6)
        cache.feed(Row(t_us, *(row.get(name) for name in NAMES), row.get("conf")))
    return cache


def parts(rows: list[dict[str, Any]], n: int) -> Iterable[list[dict[str, Any]]]:
    places = [len(rows) * part // n for part in range(n + 1)]
    return (rows[begin:end] for begin, end in pairwise(places))


def line(row: dict[str, Any]) -> str:
    return json.dumps({name: value for name, value in row.items() if value is not None}, default=datetime.isoformat)


def write_lines(folder: Path, rows: list[dict[str, Any]], files: int, *more: str, first: int = 0) -> Path:
    """JSON files, the rows of each behind those of the one before; `more` lines stand in the first."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, some in enumerate(parts(rows, files), first):
        lines = [*(more if number == first else ()), *map(line, some)]
        (folder / f"part-{number:03}.json").write_text("".join(f"{text}\n" for text in lines))
    return folder


def write_table(folder: Path, rows: list[dict[str, Any]], commits: int) -> Path:
    """A Delta table, a commit a part."""
    for some in parts(rows, commits):
        texts = [row | {"conf": json.dumps(row["conf"]) if row.get("conf") else None} for row in some]
        write_deltalake(str(folder), pa.Table.from_pylist(texts, EVENTS), mode="append")
    return folder


def results_of(output: Path) -> dict[str, list[Any]]:
    """Rows by table: what holds of each second, evictions in order, dead letters; without numbers of batches."""
    tables = Tables(output, OF_CACHE)
    last: dict[Any, dict[str, Any]] = {}
    told = tables.read("cache_metrics").to_pylist()
    for row in sorted(told, key=lambda row: (row["until"], row.pop("batch_id"))):
        last[row["broker"], row["topic"] or "", row["second"]] = row
    letters = [(row["reason"], row["raw"]) for row in tables.read("dead_letters").to_pylist()]
    evictions = [tuple(row.values()) for row in tables.read("cache_evictions").to_pylist()]
    return {
        "metrics": [last[place] for place in sorted(last)],
        "evictions": sorted(evictions, key=repr),
        "dead_letters": sorted(letters),
    }
