"""How far `headgate try` from counters is from `headgate try` from single publishes, on one trace given both ways.

    python tests/benchmarks/usage_rows.py [--period-s 5] [--conf-dir conf] [--traffic admitted offered]

The bundled trace, its publishes and dispatches as they are, and as a collector would count them: a row of kind usage a
broker, topic, direction and period. Prints, for each tenant and kind of traffic, side by side: the share of publishes
that were throttled, the seconds in which a limiter held one of its topics, and how long, summed up over its topics.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from _bench import Results

from headgate.report.sql import query
from headgate.trace.demo import DEMO_TRACE
from headgate.trace.write import write_trace

ROOT = Path(__file__).parents[2]
S_US = 1_000_000
BY_TENANT = """
SELECT tenant, sum(publishes)::BIGINT AS publishes, sum(throttled_publishes)::BIGINT AS throttled,
    count(DISTINCT CASE WHEN throttled_ns > 0 OR throttled_publishes > 0 THEN event_time END) AS seconds,
    sum(throttled_ns)::DOUBLE / 1e9 AS held_s
FROM topic_usage GROUP BY tenant ORDER BY tenant
"""
COLUMNS = ("tenant", "publishes", "throttled", "seconds held", "held, topics' sum")


class Held(NamedTuple):
    """What was held of a tenant."""

    publishes: int
    throttled: int
    seconds: int
    held_s: float

    def cells(self) -> list[str]:
        share = 100 * self.throttled / max(self.publishes, 1)
        return [f"{self.publishes:,}", f"{share:.2f} %", f"{self.seconds}", f"{self.held_s:,.1f} s"]


def counters(rows: pa.Table, period_s: float) -> pa.Table:
    """The rows as usage, in the order in which a collector writes it."""
    period_us = round(period_s * S_US)
    number = pc.divide(pc.subtract(rows["event_time"].cast(pa.int64()), 1), period_us)  # an interval has its end
    direction = pc.if_else(pc.equal(rows["kind"], "publish"), "in", "out")
    counted = pa.table(
        {"round": number, "direction": direction, **{n: rows[n] for n in ("broker", "topic", "messages", "bytes")}}
    )
    sums = counted.group_by(["round", "broker", "topic", "direction"], use_threads=False).aggregate(
        [("messages", "sum"), ("bytes", "sum")]
    )
    sums = sums.sort_by([(name, "ascending") for name in ("round", "broker", "topic", "direction")])
    from_us = pc.multiply(sums["round"], period_us)
    return pa.table(
        {
            "event_time": pc.add(from_us, period_us).cast(pa.timestamp("us", "UTC")),
            "kind": pa.repeat("usage", len(sums)),
            "from_us": from_us,
            "broker": sums["broker"],
            "topic": sums["topic"],
            "direction": sums["direction"],
            "messages": sums["messages_sum"],
            "bytes": sums["bytes_sum"],
            "seq": sums["round"],
        }
    )


def tried(path: Path, conf_dir: str, traffic: str, output: Path) -> dict[str, Held]:
    """What `headgate try` says of each tenant."""
    command = [ROOT / "headgate", "try", path, "--conf-dir", conf_dir, "--traffic", traffic, "--output", output]
    subprocess.run([str(part) for part in command], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    rows = query(str(output), BY_TENANT).to_pylist()
    return {row["tenant"]: Held(*(row[name] for name in Held._fields)) for row in rows}


def main() -> int:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    options.add_argument("--period-s", type=float, default=5.0, metavar="S", help="of a collector; default 5")
    options.add_argument("--conf-dir", default="conf", metavar="DIR", help="default conf")
    options.add_argument("--traffic", nargs="+", choices=("admitted", "offered"), default=["admitted", "offered"])
    asked = options.parse_args()
    with (
        Results("usage_rows", "A what-if from counters beside one from single publishes") as results,
        tempfile.TemporaryDirectory() as scratch,
    ):
        folder = Path(scratch)
        write_trace(DEMO_TRACE, folder / "bundled", "parquet")
        rows = pa.concat_tables(
            (pq.read_table(file) for file in sorted((folder / "bundled").iterdir())), promote_options="default"
        )
        rows = rows.filter(pc.is_in(rows["kind"], pa.array(["publish", "dispatch"]))).sort_by("event_time")
        used = counters(rows, asked.period_s)
        pq.write_table(rows, folder / "single.parquet")
        pq.write_table(used, folder / "usage.parquet")
        results.note(f"{len(rows):,} publishes and dispatches as {len(used):,} rows of usage of {asked.period_s:g} s.")
        for traffic in asked.traffic:
            single, counted = (
                tried(folder / f"{name}.parquet", asked.conf_dir, traffic, folder / f"{traffic}-{name}")
                for name in ("single", "usage")
            )
            table = [
                [f"{tenant}, {name}", *of[tenant].cells()]
                for tenant in single
                for name, of in (("single", single), ("usage", counted))
            ]
            results.table(f"{traffic} traffic:", COLUMNS, table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
