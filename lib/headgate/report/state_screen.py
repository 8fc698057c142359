"""A checkpoint's state for people (aligned lines) and for programs (JSON, one object a line)."""

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

KINDS = ("messages", "bytes")


def json_lines(report: pa.Table) -> Iterator[str]:
    """Instants are text with nanoseconds."""
    for row in _with_text(report).to_pylist():
        yield json.dumps(row, ensure_ascii=False)


def state_lines(report: pa.Table) -> Iterator[str]:
    """One line a limiter, or a cache, whole however wide: names are there to be copied.

    Kinds that nothing limits are left out.
    """
    if "limiter" not in report.column_names:
        yield from _cache_lines(report)
        return
    kinds = [kind for kind in KINDS if pc.any(pc.greater(report[f"{kind}_per_s"], 0)).as_py()]
    rows = [_cells(row, kinds) for row in _with_text(report).to_pylist()]
    yield from _aligned(rows)
    yield f"{len(rows):,} limiters"


def _cache_lines(report: pa.Table) -> Iterator[str]:
    rows = [
        {
            name.replace("_", " "): _number(value) if isinstance(value, int) else value or "-"
            for name, value in row.items()
        }
        for row in _with_text(report).to_pylist()
    ]
    yield from _aligned(rows)
    yield f"{len(rows):,} caches"


def _aligned(rows: list[dict[str, str]]) -> Iterator[str]:
    if rows:
        table = [list(rows[0]), *(list(row.values()) for row in rows)]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        for cells in table:
            yield "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def _cells(row: dict[str, Any], kinds: list[str]) -> dict[str, str]:
    cells = {
        "broker": row["broker"],
        "limiter": _limiter(row),
    }
    for kind in kinds:
        cells |= {f"{kind}/s": _rate(row, kind)}
        cells |= {f"{name} {kind}": _number(row[f"{kind}_{name}"]) for name in ("balance", "debt")}
    refills = [refill for kind in KINDS if (refill := row[f"{kind}_last_refill"])]
    return cells | {
        "waiting": _number(row["waiting"]),
        "next drain": row["next_drain"] or "-",
        "last refill": max(refills, default="-"),
        "open second": row["open_second"] or "-",
    }


def _limiter(row: dict[str, Any]) -> str:
    name = row["limiter"] if row["scope"] == "topic" else f"{row['scope']} {row['limiter']}"
    return name if row["class"] == "publish" else f"{name}, {row['class']}"


def _rate(row: dict[str, Any], kind: str) -> str:
    in_period = "" if row["period_s"] == 1 else f" in {row['period_s']} s"
    return f"{_number(row[f'{kind}_per_s'] or None)}{in_period}"


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _with_text(report: pa.Table) -> pa.Table:
    for place, field in enumerate(report.schema):
        if pa.types.is_timestamp(field.type):
            report = report.set_column(place, field.name, report[field.name].cast(pa.string()))
    return report
