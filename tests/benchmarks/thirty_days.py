"""What a job holds after a month: topics and connections that come and go, and what is kept of them.

    python tests/benchmarks/thirty_days.py [--days 30] [--topics 10000000] [--alive 100000] [--connections 1000000]
        [--batches 96]

Topics are born one after another, live for so long that `alive` are there at any time, and publish as long as they
live, over connections that come and go as they do; two of three have a group. Each batch goes through routing, the
operator with its state encoded and decoded, and the job's own tables with `kept_hours = 24`: all of the throttle job
but Spark. A line a day: bytes of state, seconds of CPU a batch, resident memory, files and bytes of tables. The median
of the last three days is held against day one, that of tables against day two: they keep a day, and delete every 100
commits.
"""

import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
from _bench import Results, parser
from deltalake import DeltaTable

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "lib")]

from headgate.arrow.blocks import encode  # noqa: E402
from headgate.arrow.schemas import DEAD_LETTERS  # noqa: E402
from headgate.engines.batches import rows_by_kind  # noqa: E402
from headgate.keyed.operator import Block  # noqa: E402
from headgate.rows.traffic import Parsed  # noqa: E402
from headgate.tables.delta import Tables  # noqa: E402
from headgate.throttle.form import Rules  # noqa: E402
from headgate.throttle.key_operator import ThrottleOperator  # noqa: E402
from headgate.throttle.kinds import OUTPUT_BLOCKS  # noqa: E402
from headgate.throttle.limits.changes import Attachment, Change, Limit, changes_table  # noqa: E402
from headgate.throttle.routing import Routing, pack  # noqa: E402
from headgate.throttle.schemas import TRAFFIC  # noqa: E402
from headgate.throttle.tables import throttle_tables  # noqa: E402

DAY_S, DAY0_S = 86_400, 1_767_571_200
BROKERS, TENANTS = 4, 90
LIMIT, GROUP = 2, 50
MOST = 1.2


def traffic(batch: int, chance: np.random.Generator, sizes: dict[str, float]) -> Parsed:
    """Half of the topics that live in the batch publish in it, some of them too much."""
    length_s = DAY_S // int(sizes["batches"])
    newest = int(sizes["born_per_s"] * (batch + 1) * length_s + sizes["alive"])
    of = chance.choice(np.arange(newest - int(sizes["alive"]), newest), int(sizes["alive"]) // 2, replace=False)
    at_us = np.sort(chance.integers(0, length_s * 1_000_000, len(of))) + (DAY0_S + batch * length_s) * 1_000_000
    connection = of // max(int(sizes["topics"] / sizes["connections"]), 1)
    columns = {
        "kind": pa.repeat("publish", len(of)),
        "event_time_us": at_us,
        "seq": np.arange(len(of)),
        "broker": pa.array([f"broker-{n}" for n in range(BROKERS)]).take(pa.array(of % BROKERS)),
        "topic": pa.array([f"persistent://tenant-{n % TENANTS}/ns/topic-{n:09}" for n in of.tolist()]),
        "producer": pa.array([f"p-{n:09}" for n in of.tolist()]),
        "connection": pa.array([f"10.0.0.1:{n:09}" for n in connection.tolist()]),
        "messages": np.where(chance.random(len(of)) < 0.02, 20, 1),
        "bytes": np.full(len(of), 1000),
    }
    schema = pa.unify_schemas([*TRAFFIC.values(), pa.schema([("kind", pa.string())])])
    nothing = {field.name: pa.nulls(len(of), field.type) for field in schema}
    return Parsed(pa.table(nothing | columns, schema=schema), DEAD_LETTERS.empty_table())


def limits() -> list[Change]:
    attached = [Attachment(0, 0, None, "tenant", f"tenant-{n}", group_name=f"group-{n % 10}") for n in range(60)]
    of_groups = [Limit(0, 0, None, "group", f"group-{n}", GROUP, None) for n in range(10)]
    return [Limit(0, 0, None, "default", "", LIMIT, None), *of_groups, *attached]


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def files_in(output: str) -> tuple[int, float]:
    """Of the tables as they are now, and their MB. What was replaced goes by the wall clock, not by these days."""
    sizes = [
        size
        for name in ("marks", "topic_usage")
        for size in pa.table(DeltaTable(f"{output}/{name}").get_add_actions())["size_bytes"].to_pylist()
    ]
    return len(sizes), sum(sizes) / 2**20


def main() -> None:
    options = parser(__doc__)
    for name, default in (
        ("days", 30),
        ("topics", 10_000_000),
        ("alive", 100_000),
        ("connections", 1_000_000),
        ("batches", 96),
    ):
        options.add_argument(f"--{name}", type=int, default=default, metavar="N")
    arguments = options.parse_args()
    sizes = {name: getattr(arguments, name) for name in ("topics", "alive", "connections", "batches")}
    sizes["born_per_s"] = arguments.topics / (arguments.days * DAY_S)
    operator = ThrottleOperator(Rules(slot_ms=1000, connection_topics=True))
    operator.load()
    routing, chance = Routing(slots=8, whole_brokers=True), np.random.default_rng(7)
    states = {key: operator.codec.encode(operator.codec.new()) for key in routing.keys}
    rows = changes_table(limits())
    waiting = {key: [Block("changes", len(rows), encode(rows))] for key in routing.keys}
    about = f"{arguments.topics:,} topics in {arguments.days} days, {arguments.alive:,} alive"
    about = f"{about}; {arguments.batches} batches a day, each of {arguments.alive // 2:,} publishes"
    with (
        Results("thirty_days", "A month of topics that come and go", about=about) as results,
        tempfile.TemporaryDirectory() as folder,
    ):
        tables = throttle_tables(folder, kept_hours=24)
        days = []
        for day in range(arguments.days):
            began = time.process_time()
            for batch in range(day * arguments.batches, (day + 1) * arguments.batches):
                step(operator, routing, states, waiting, traffic(batch, chance, sizes), tables, batch)
            files, table_mb = files_in(folder)
            state_mb = sum(map(len, states.values())) / 2**20
            cpu_s = (time.process_time() - began) / arguments.batches
            days.append((state_mb, cpu_s, resident_mb(), files, table_mb))
            results.row(
                {
                    "day": day + 1,
                    "state_mb": round(state_mb, 2),
                    "cpu_s_per_batch": round(cpu_s, 3),
                    "resident_mb": round(days[-1][2]),
                    "files": files,
                    "table_mb": round(table_mb, 1),
                }
            )
        rows_ = [[str(day), *(f"{value:,.2f}" for value in values)] for day, values in enumerate(days, 1)]
        columns = ("state (MB)", "CPU s a batch", "resident (MB)", "files", "tables (MB)")
        results.table("At the end of each day", ("day", *columns), rows_)
        for place, (name, against) in enumerate(zip(columns, (0, 0, 0, 1, 1), strict=True)):
            last = median(values[place] for values in days[-3:])
            base = days[min(against, len(days) - 1)][place]
            results.target(f"{name}: last days / day {against + 1}", "x", [last / base], at_most=MOST)


def step(
    operator: ThrottleOperator,
    routing: Routing,
    states: dict[str, bytes],
    waiting: dict[str, list[Block]],
    rows: Parsed,
    tables: Tables,
    batch: int,
) -> None:
    """One batch, as the job does it: `waiting` is what else comes to each key."""
    blocks = {key: waiting.pop(key, []) for key in routing.keys}
    for packed in pack(routing, [rows]):
        for key, kind, block in zip(*packed.to_pydict().values(), strict=True):
            blocks[key].append(Block(kind, 0, block))
    out = []
    for key, of_key in blocks.items():
        state = operator.codec.decode(operator.codec.version, states[key])
        out += operator.step(key, state, of_key)
        states[key] = operator.codec.encode(state)
    written = rows_by_kind(((block.kind, block.block) for block in out), OUTPUT_BLOCKS)
    for name in ("marks", "topic_usage"):
        tables.append(name, written[name], "thirty-days", batch)


if __name__ == "__main__":
    main()
