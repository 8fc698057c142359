"""The publish job on a standalone cluster of one worker and of two, with a core each: what the second one brings.

    python tests/benchmarks/workers.py [--topics 100000] [--batches 20] [--repetitions 3]

The same input for both, in turns, on one machine: the driver takes its part of the same cores, so that on two cores the
second worker cannot bring twice the speed. CPU seconds are those of driver, executors and their Python together.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from _bench import Results, interleave, parser, ratios
from _jobs import BATCHES, EVENTS, SETTLED_AFTER, job_ends, measured
from publish_job import write_input, write_limits

from headgate.spark.session import spark_session
from headgate.spark.state import close_stores

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from real_broker import free_ports  # noqa: E402

SETTINGS = ("spark.sql.shuffle.partitions=4", "spark.executor.memory=3g", "spark.driver.memory=3g")


def run_side(workers: str, source: Path) -> None:
    """One run on a cluster of its own."""
    with tempfile.TemporaryDirectory() as folder:
        port, web_port = map(str, free_ports(2))
        script = [sys.executable, str(ROOT / "scripts" / "standalone_cluster.py")]
        place = ["--folder", folder, "--port", port, "--web-port", web_port]
        size = ["--workers", workers, "--memory", "3g"]
        os.environ["PYTHONPATH"] = os.pathsep.join(map(str, (ROOT / "lib", ROOT / "tests")))
        try:
            master = subprocess.run([*script, "start", *place, *size], check=True, stdout=subprocess.PIPE, text=True)
            settings = " ".join(f"--conf {setting}" for setting in SETTINGS)
            os.environ["PYSPARK_SUBMIT_ARGS"] = f"--master {master.stdout.strip()} {settings} pyspark-shell"
            pids = [int(file.read_text()) for file in Path(folder).glob("worker-*.pid")]
            with tempfile.TemporaryDirectory() as work:
                ends = job_ends(source, Path(work), also=pids)
                close_stores(spark_session("benchmark"))
            seconds, cpu_seconds = (
                statistics.median(values[SETTLED_AFTER:] or values) for values in (ends.seconds(), ends.cpu_seconds())
            )
            print(json.dumps({"seconds": seconds, "cpu_seconds": cpu_seconds}))
        finally:
            subprocess.run([*script, "stop", "--folder", folder], check=True)


def main() -> None:
    options = parser(__doc__)
    options.set_defaults(repetitions=3)
    options.add_argument("--topics", type=int, default=100_000)
    options.add_argument("--batches", type=int, default=BATCHES)
    options.add_argument("--side", choices=("1", "2"), help=argparse.SUPPRESS)
    options.add_argument("--source", type=Path, help=argparse.SUPPRESS)
    arguments = options.parse_args()
    if arguments.side:
        run_side(arguments.side, arguments.source)
        return
    about = (
        f"{EVENTS:,} events a batch over {arguments.topics:,} topics, all limits on, {arguments.batches} batches a "
        f"run, of which the first {SETTLED_AFTER} do not count; workers with one core each."
    )
    with Results("workers", "One worker and two", about=about) as results, tempfile.TemporaryDirectory() as folder:
        source = Path(folder)
        write_input(source, arguments.topics, arguments.batches)
        write_limits(source / "conf", arguments.topics)
        runs: dict[str, list[dict[str, float]]] = {"1": [], "2": []}
        sides = {side: lambda side=side: runs[side].append(measured(__file__, side, source)) or 0.0 for side in runs}
        interleave(sides, arguments.repetitions, warmups=0)
        for side, found in runs.items():
            name = f"{side} worker{'s' * (side > '1')}"
            results.measure(name, "rows/s", [EVENTS / one["seconds"] for one in found])
            results.measure(name, "CPU s a batch", [one["cpu_seconds"] for one in found])
        one, two = runs.values()
        for name, key in (("speed of 2 workers / 1 worker", "seconds"), ("CPU of 1 worker / 2 workers", "cpu_seconds")):
            results.measure(name, "x", ratios([run[key] for run in one], [run[key] for run in two]))
        results.note(f"This machine has {os.cpu_count()} cores, which workers and driver share.")


if __name__ == "__main__":
    main()
