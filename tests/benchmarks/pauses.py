"""What clients lose where a limiter lets go at another time than their pause ends.

    python tests/benchmarks/pauses.py MARKS

MARKS is the table `marks` of a throttle job. Its marks go through the machines of jobs/protocol.py under each setting,
with obedient clients. A release is the unmark that leaves a producer unheld; what its client loses is the time from
there to the end of its window.
"""

import statistics
from collections import defaultdict
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from _bench import Results, parser
from deltalake import DeltaTable

from headgate.core.protocol.settings import BrokerSettings
from headgate.protocol.array_form import run_arrays, warm_up
from headgate.protocol.marks import COLUMNS, connection_name
from headgate.protocol.schemas import INPUTS
from headgate.protocol.state import NOT_YET, SlotState
from headgate.protocol.step import Arrived, ProtocolRules, advance

DEFAULT = "bucket_refill"
GRID = [
    *((DEFAULT, idle_ms) for idle_ms in (100, 50, 20, 16, 10, 5, 2, 1)),
    ("second_boundary", 100),
]
NEGOTIATED = {"topic", "group"}
"""Limits of clients that are asked to stop; of others they are only told."""
COLUMNS_SHOWN = (
    "pause_mode",
    "idle_extension_ms",
    "releases",
    "extended",
    "lost, mean ms",
    "p99 ms",
    "all, s",
    "commands a release",
)


class Release(NamedTuple):
    """When a producer was let go, and of which client: its only one of that topic on that connection."""

    connection: str
    topic: str
    at_ms: int


def releases_of(marks: pa.Table) -> list[Release]:
    """Unmarks that leave nothing held, of connections with one producer a topic."""
    held: dict[tuple[str, str], set[str]] = defaultdict(set)
    producers: dict[tuple[str, str], set[str]] = defaultdict(set)
    found = []
    for row in marks.sort_by([("at_ns", "ascending"), ("seq", "ascending")]).to_pylist():
        key = (connection_name(row["broker"], row["connection"]), row["topic"])
        if row["scope"] not in NEGOTIATED:
            continue
        producers[key].add(row["producer"])
        if row["action"] == "mark":
            held[key].add(row["scope"])
        elif row["scope"] in held[key]:
            held[key].discard(row["scope"])
            if not held[key]:
                found.append(Release(*key, row["at_ns"] // 1_000_000))
    return [one for one in found if len(producers[one.connection, one.topic]) == 1]


def decisions_of(marks: pa.Table, settings: BrokerSettings) -> pa.Table:
    """What obedient clients are told, as jobs/protocol.py says without --input."""
    last_ms = marks["at_ns"].to_numpy().max() // 1_000_000
    rules = ProtocolRules(settings, sources=frozenset({"marks"}), obedient=True)
    arrived = Arrived(INPUTS.empty_table(), marks.select(COLUMNS), NOT_YET, int(last_ms), finish=True)
    return advance(SlotState(), arrived, rules, run_arrays)[0].decisions


def row_of(mode: str, idle_ms: int, releases: list[Release], decisions: pa.Table) -> tuple[list[str], float]:
    """A line of the table, and the mean of what is lost, in ms."""
    told = defaultdict(list)
    for one in decisions.filter(pc.equal(decisions["kind"], "command")).to_pylist():
        told[one["connection"], one["topic"]].append((one["at_ms"], one["until_ms"] or 0, one["command_kind"]))
    lost, extended = [], 0
    for connection, topic, at_ms in releases:
        before = [command for command in told[connection, topic] if command[0] <= at_ms]
        lost.append(max(0, max((until_ms for _, until_ms, _ in before), default=0) - at_ms))
        ends = {until_ms for _, until_ms, _ in before}
        extended += bool(before) and before[-1][2] == "extend" and before[-1][0] in ends
    mean_ms = statistics.mean(lost)
    times = [f"{mean_ms:.1f}", f"{sorted(lost)[len(lost) * 99 // 100]:,}", f"{sum(lost) / 1000:,.1f}"]
    commands = sum(map(len, told.values())) / len(lost)
    cells = [mode, str(idle_ms), f"{len(lost):,}", f"{100 * extended / len(lost):.1f} %", *times, f"{commands:.2f}"]
    return cells, mean_ms


def main() -> int:
    options = parser(__doc__)
    options.add_argument("marks", metavar="MARKS")
    arguments = options.parse_args()
    marks = DeltaTable(arguments.marks).to_pyarrow_table()
    warm_up()
    releases = releases_of(marks)
    about = (
        "The marks of the bundled trace (README, first command) through the machines of jobs/protocol.py, with "
        "obedient clients. Extended: releases whose last command was sent at the end of a window, as the limiter "
        "still held."
    )
    with Results("pauses", "Ends of pauses and releases of limiters", about=about) as results:
        rows, means = [], {}
        for mode, idle_ms in GRID:
            settings = BrokerSettings.of({"pause_mode": mode, "idle_extension_ms": idle_ms})
            row, means[mode, idle_ms] = row_of(mode, idle_ms, releases, decisions_of(marks, settings))
            rows.append(row)
        results.table("By setting:", COLUMNS_SHOWN, rows)
        (mode, idle_ms), least_ms = min(means.items(), key=lambda one: one[1])
        results.measure("lost by a release, default", "ms", [means[DEFAULT, 100]])
        results.measure(f"lost by a release, least: {mode}, {idle_ms}", "ms", [least_ms])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
