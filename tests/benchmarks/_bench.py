"""What benchmarks share: interleaved repetitions, one JSON line a result, targets and a table.

A benchmark is a program in this folder, run by hand on a quiet machine:

    arguments = parser(__doc__).parse_args()
    with Results("exchange", "How fast limits reach other brokers") as results:
        values = interleave({"ours": ours, "theirs": theirs}, arguments.repetitions)   # each returns one number
        results.measure("ours", "ns per event", values["ours"])
        results.measure("theirs", "ns per event", values["theirs"])
        results.target("theirs / ours", "x", ratios(values["theirs"], values["ours"]), at_least=5)
        results.check("both decide alike", passed=True)
        results.note("What a reader has to know to read the numbers.")

Each result is printed as a JSON line when it is known, and all of them as tables at the end; docs/benchmarks.md has
what came of it last, by hand. A value of several repetitions is their median; minimum and maximum stand beside it.
"""

import argparse
import json
import os
import platform
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.table import Table

# Above this, other programs shared caches and cores with the run for part of it, and even ratios drift.
QUIET_LOAD = 0.5
Record = dict[str, Any]


def parser(description: str | None) -> argparse.ArgumentParser:
    """The options that every benchmark has; add your own."""
    options = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    options.add_argument("--repetitions", type=int, default=15, metavar="N", help="measured runs of each side")
    return options


def interleave(
    sides: Mapping[str, Callable[[], float]], repetitions: int, *, warmups: int = 3
) -> dict[str, list[float]]:
    """What each side returns, `repetitions` times after `warmups`; the sides take turns and swap order every round.

    What disturbs the machine for a while disturbs all sides alike, so ratios of the same round stay fair.
    """
    values: dict[str, list[float]] = {name: [] for name in sides}
    for repetition in range(-warmups, repetitions):
        for name in _turns(list(sides), repetition):
            value = sides[name]()
            if repetition >= 0:
                values[name].append(value)
    return values


def _turns(names: list[str], repetition: int) -> Iterator[str]:
    return iter(names if repetition % 2 == 0 else reversed(names))


def ratios(numerators: Sequence[float], denominators: Sequence[float]) -> list[float]:
    """The ratio of each round of two interleaved sides."""
    return [numerator / denominator for numerator, denominator in zip(numerators, denominators, strict=True)]


class Results:
    """The records of one benchmark, printed as they come; leaving the context prints the tables.

    title: a heading. about: a paragraph on what is measured. versions: what else was used.
    """

    def __init__(self, name: str, title: str, *, about: str = "", versions: Mapping[str, str] | None = None) -> None:
        self._records: list[Record] = []
        self._add(
            {
                "record": "benchmark",
                "name": name,
                "title": title,
                "about": about,
                "date": datetime.now(UTC).date().isoformat(),
                "machine": machine() | dict(versions or {}),
            }
        )

    def measure(self, name: str, unit: str, values: Sequence[float]) -> None:
        """A measured quantity, a value each repetition."""
        self._add({"record": "measurement", "name": name, "unit": unit} | _summary(values))

    def target(
        self,
        name: str,
        unit: str,
        values: Sequence[float],
        *,
        at_least: float | None = None,
        at_most: float | None = None,
    ) -> bool:
        """A quantity that has a bound, met or not by its median. Give one of `at_least` and `at_most`."""
        if (at_least is None) == (at_most is None):
            raise ValueError(f"{name}: give at_least or at_most, one of them")
        summary = _summary(values)
        met = bool(summary["median"] >= at_least if at_least is not None else summary["median"] <= at_most)
        bound = {"at_least": at_least} if at_least is not None else {"at_most": at_most}
        self._add({"record": "target", "name": name, "unit": unit} | summary | bound | {"met": met})
        return met

    def check(self, name: str, *, passed: bool) -> None:
        """Something that must hold for the numbers to mean anything."""
        self._add({"record": "check", "name": name, "passed": passed})

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """A table for the reader, its cells as they are to be shown."""
        self._add({"record": "table", "title": title, "columns": list(columns), "rows": [list(row) for row in rows]})

    def row(self, values: Mapping[str, Any]) -> None:
        """A line of a result that is too long for the page: it is printed, and that is all."""
        self._add({"record": "row"} | dict(values))

    def note(self, text: str) -> None:
        """A sentence for the reader of the numbers."""
        self._add({"record": "note", "text": text})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is not None:
            return
        print_tables(self._records)

    def _add(self, record: Record) -> None:
        self._records.append(record)
        print(json.dumps(record), flush=True)


def _summary(values: Sequence[float]) -> Record:
    median = statistics.median(values)
    return {"value": median, "median": median, "min": min(values), "max": max(values), "repetitions": len(values)}


def machine() -> dict[str, str]:
    """What a reader needs to compare runs. `load`: mean number of running processes in the minute before."""
    return {
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
        "system": platform.system(),
        "python": platform.python_version(),
        "load": f"{os.getloadavg()[0]:.1f}",
    }


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


def was_quiet(benchmark: Record) -> bool:
    """Whether nothing else ran when the benchmark began."""
    return float(benchmark["machine"]["load"]) <= QUIET_LOAD


def bound_of(target: Record) -> str:
    """The bound of a target as text."""
    sign, bound = (">=", target["at_least"]) if "at_least" in target else ("<=", target["at_most"])
    return f"{sign} {number(bound)} {target['unit']}"


def number(value: float) -> str:
    """Three digits, or all of a whole number."""
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"


def print_tables(records: Sequence[Record]) -> None:
    """Measurements, targets and checks for a reader at a terminal."""
    console = Console()
    measurements = Table("measured", "unit", "median", "min", "max", title=records[0]["title"])
    for record in records:
        if record["record"] == "measurement":
            numbers = [number(record[key]) for key in ("median", "min", "max")]
            measurements.add_row(record["name"], record["unit"], *numbers)
    targets = Table("target", "wanted", "median", "min", "max", "met")
    for record in records:
        if record["record"] == "target":
            numbers = [number(record[key]) for key in ("median", "min", "max")]
            targets.add_row(record["name"], bound_of(record), *numbers, "met" if record["met"] else "not met")
    for table in (measurements, targets):
        if table.row_count:
            console.print(table)
    for record in records:
        if record["record"] == "table":
            shown = Table(*record["columns"], title=record["title"])
            for row in record["rows"]:
                shown.add_row(*row)
            console.print(shown)
    for record in records:
        if record["record"] == "check":
            console.print(f"{record['name']}: {'yes' if record['passed'] else 'NO'}")
    if not was_quiet(records[0]):
        console.print(f"The machine was busy (load {records[0]['machine']['load']}): run again when it is quiet.")


def high_water_mb(pid: int) -> float:
    """The most memory that a process ever had."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1000
