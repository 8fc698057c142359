"""What it costs to release the marks of a limit that was exceeded for days and is raised: memory and CPU by marks.

    python tests/benchmarks/releases.py [--marks 1000000 20000000 60000000]

The throttle job but for Spark: a topic with 1,000 producers of which each waits as often as it takes, the step of the
operator that releases them, and the append of their rows to Delta tables. Each number of marks has its own process.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
from _bench import Results

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "lib")]

from headgate.arrow.blocks import encode  # noqa: E402
from headgate.engines.batches import BatchWriter, rows_by_kind  # noqa: E402
from headgate.keyed.operator import Block  # noqa: E402
from headgate.throttle.form import Rules  # noqa: E402
from headgate.throttle.key_operator import ThrottleOperator  # noqa: E402
from headgate.throttle.kinds import OUTPUT_BLOCKS  # noqa: E402
from headgate.throttle.limits.changes import Limit, changes_table  # noqa: E402
from headgate.throttle.schemas import EVENTS, TICKS  # noqa: E402
from headgate.throttle.tables import throttle_tables  # noqa: E402

PRODUCERS, BROKER = 1000, "broker-1"
START_US, RAISED_US, RELEASED_US = 10**15, 10**15 + 10**9, 10**15 + 2 * 10**9


def publishes() -> pa.Table:
    """One of each producer, at one time."""
    of = range(PRODUCERS)
    columns = {
        "event_time_us": [START_US] * PRODUCERS,
        "seq": of,
        "broker": [BROKER] * PRODUCERS,
        "topic": ["persistent://acme/shop/orders"] * PRODUCERS,
        "producer": [f"producer-{n}" for n in of],
        "connection": [f"connection-{n % 10}" for n in of],
        "messages": [5] * PRODUCERS,
        "bytes": [0] * PRODUCERS,
    }
    return pa.table([columns[name] for name in EVENTS.names], EVENTS)


def released(marks: int) -> str:
    """CPU seconds, the most memory held in MB, and MB of the table."""
    operator = ThrottleOperator(Rules(), "numba")
    changes = [Limit(0, 0, None, "default", "", 1, None), Limit(RAISED_US, 1, None, "default", "", None, None)]
    operator.load()
    state = operator.codec.new()
    operator.step(
        "key", state, [Block("events", 0, encode(publishes())), Block("changes", 0, encode(changes_table(changes)))]
    )
    state.domains[BROKER].entry_count[:] = marks // PRODUCERS
    tick = pa.Table.from_pylist([{"broker": None, "event_time_us": RELEASED_US, "finish": False}], TICKS)
    with tempfile.TemporaryDirectory() as folder:
        tables = throttle_tables(folder)
        began_s = time.process_time()
        out = operator.step("key", state, [Block("ticks", 1, encode(tick))])
        rows = rows_by_kind(((block.kind, block.block) for block in out), OUTPUT_BLOCKS)
        written = BatchWriter(tables, lambda _: None).write(rows, "releases", 0)
        cpu_s = time.process_time() - began_s
        assert written.marks == marks
        size = sum(file.stat().st_size for file in Path(folder, "marks").rglob("*.parquet"))
    return f"{cpu_s:.1f} {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} {size / 1e6:.1f}"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--marks", type=int, nargs="+", default=[1_000_000, 20_000_000, 60_000_000])
    options.add_argument("--one", type=int, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.one:
        sys.stdout.write(released(given.one))
        return
    with Results("releases", "Marks that are released at once") as results:
        found = []
        for marks in given.marks:
            words = [sys.executable, __file__, "--one", str(marks)]
            said = subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()
            found.append([f"{marks:,}", *said])
        results.table("Released", ["marks", "CPU s", "memory at most, MB", "on disk, MB"], found)


if __name__ == "__main__":
    main()
