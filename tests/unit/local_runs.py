"""Tiny traces and conf folders for the local engine, and traces cut into batches anywhere."""

import json
import random
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from headgate.conf import Conf, InputSettings, load_conf
from headgate.rows.raw import typed
from headgate.rows.traffic import Parsed, parse_traffic

ACME, GLOBEX = "persistent://acme/shop/orders", "persistent://globex/shop/orders"
GROUPS = {"resourcegroups": {"gold": {"publishRateInMsgs": 40}}, "tenants": {"acme": "gold"}}
SHARED = "[operator]\nkernel = 'python'\ntraffic = 'offered'\n"
SECOND_US = 1_000_000
START_US = 1_767_603_600 * SECOND_US


def write_conf(folder: Path, text: str = SHARED, groups: Any = GROUPS, **broker: Any) -> Path:
    """A conf folder. broker: keys of broker.conf."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "headgate.toml").write_text(text)
    (folder / "broker.conf").write_text("".join(f"{key}={value}\n" for key, value in broker.items()))
    (folder / "resource-groups.json").write_text(json.dumps(groups))
    return folder


def conf_of(folder: Path, text: str = SHARED, groups: Any = GROUPS, **broker: Any) -> Conf:
    return load_conf(write_conf(folder, text, groups, **broker))


def publishes(seconds: int = 6) -> list[dict[str, Any]]:
    """Acme publishes on two brokers, more than its quota; globex has no quota. Every fifth row is subscribed to."""
    rows = []
    for at in range(seconds * 50):
        tenant, broker = (ACME, GLOBEX)[at % 5 == 0], ("b1", "b2")[at % 3 == 0]
        row = {"event_time": START_US + at * SECOND_US // 50, "seq": at, "broker": broker, "kind": "publish"}
        row |= {"topic": tenant, "producer": f"p{at % 4}", "connection": f"c{at % 2}", "messages": 2, "bytes": 10}
        rows.append(row)
        if at % 5 == 0:
            taken = {"seq": at + 10_000, "kind": "dispatch", "subscription": "s", "entries": 1}
            rows.append({name: row[name] for name in ("event_time", "broker", "topic", "messages", "bytes")} | taken)
    return rows


def write_trace(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def parsed(rows: Sequence[dict[str, Any]], parse: Any = None) -> Parsed:
    """Rows as a source has them, through the parser. parse: parse_traffic by default."""
    structs = pa.array(list(rows))
    raw = typed(structs, pa.repeat("test", len(rows)), pa.array(range(len(rows))))
    parsed: Parsed = (parse or partial(parse_traffic, settings=InputSettings()))(raw)
    return parsed


def cut(rows: Sequence[dict[str, Any]], chance: random.Random, most: int) -> Iterator[Sequence[dict[str, Any]]]:
    """The rows in up to `most` parts, cut anywhere; parts may be empty."""
    places = sorted(chance.randint(0, len(rows)) for _ in range(chance.randint(0, most - 1)))
    for start, end in zip([0, *places], [*places, len(rows)], strict=True):
        yield rows[start:end]


def in_order(table: pa.Table, *without: str) -> list[str]:
    return sorted(
        repr({name: value for name, value in row.items() if name not in without}) for row in table.to_pylist()
    )
