"""Rows of batches as a sink has them."""

from typing import Any

import pyarrow as pa

from headgate.arrow.schemas import GROUP_USAGE
from headgate.throttle import tables
from headgate.throttle.schemas import PROGRESS, USAGE_NAMES

SCHEMAS = {**tables.SCHEMAS, **tables.OF_CONNECTIONS, "progress": PROGRESS, "group_usage": GROUP_USAGE}
NO_USAGE = dict.fromkeys(list(USAGE_NAMES.values())[:8], 0)
"""Of admitted traffic: what offered traffic alone has is null."""


def batch(**rows: list[dict[str, Any]]) -> dict[str, pa.Table]:
    """Every kind of rows; those that are not given are empty."""
    return {name: pa.Table.from_pylist(rows.get(name, []), schema) for name, schema in SCHEMAS.items()}


def usage(topic: str, broker: str = "b1", **columns: int) -> dict[str, Any]:
    return {"broker": broker, "topic": topic} | NO_USAGE | columns


def progress(broker: str, **columns: Any) -> dict[str, Any]:
    """waiting: follows from producers, each with two queue entries, and subscriptions."""
    row = {"key": "0", "broker": broker, "rows": 0, "late": 0, "event_time_us": 0, "producers": 0, "subscriptions": 0}
    row |= columns
    return row | {"waiting": 2 * row["producers"] + row["subscriptions"]}
