"""The entry cache's job: entry operations a second through Spark, in both forms of the rules, beside the rules alone.

    python tests/benchmarks/cache_spark.py [--scale 2] [--repetitions 3]

An entry operation is one entry added or read. Eight brokers of the generator's family fanout are eight keys, their rows
a Delta table of which a batch takes a commit; policy pip430 with 2 MiB a broker and scale, as in section 16 of the
specification, miss reasons off. The rules alone take the rows of one broker, on one core, made and packed before.
"""

import argparse
import json
import statistics
import tempfile
import threading
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

from _bench import Results, interleave, parser, ratios
from _jobs import Ends, measured
from _noop import NoOperator, no_operator_session
from cache_kernel import MIB_BYTES, operations, settings_of

from headgate.cache.forms import warm_up
from headgate.cache.routing import pack_input
from headgate.cache.trace import CacheTrace, write_cache_trace
from headgate.conf import load_conf
from headgate.core.cache.broker import Cache
from headgate.core.cache.rows import Row
from headgate.core.cache.traces.workload import generate
from headgate.core.kernels.cache.broker import ArrayCache
from headgate.spark.entry_cache import CacheJob, CacheRun
from headgate.spark.input.sources import read_raw
from headgate.spark.operator import PACKED, apply_operator
from headgate.spark.session import spark_session
from headgate.spark.state import close_stores

FAMILY, BROKERS, BATCHES, SETTLED_AFTER = "fanout", 8, 6, 2
KERNELS = {"arrays": "numba", "readable": "python"}
SIDES = (*KERNELS, "no-op")
TARGET, TARGET_OF_NOTHING = 0.7, 0.85


def write_input(folder: Path, scale: int) -> None:
    """A commit a batch, and a conf folder for each form."""
    trace = CacheTrace(family=FAMILY, scale=scale, brokers=BROKERS, files=BATCHES)
    write_cache_trace(trace, folder / "events", "delta")
    for side, kernel in (KERNELS | {"no-op": "numba"}).items():
        conf = folder / side
        conf.mkdir()
        (conf / "headgate.toml").write_text(
            f'[input]\nmax_files_per_trigger = 1\n[operator]\nkernel = "{kernel}"\n[trigger]\ninterval_ms = 0\n'
        )
        keys = settings_of("pip430", 2 * MIB_BYTES * scale).values()
        changed = ("headgate.cache.maxBytes", "headgate.cache.rangeHits", "headgate.cache.reasonMemory")
        (conf / "broker.conf").write_text("".join(f"{key}={keys[key]}\n" for key in changed))


def run_job(side: str, source: Path, work: Path) -> Ends:
    ends = Ends()
    job = CacheJob(f"{source}/events", f"{work}/out", f"{work}/out/checkpoint", "delta", once=True)
    run = CacheRun(
        spark_session("benchmark"),
        job,
        load_conf(source / side),
        lambda batch: batch.rows and ends.note(),
        threading.Event(),
    )
    run.run()
    return ends


def run_no_operator(source: Path, work: Path) -> Ends:
    spark, ends, settings = no_operator_session(), Ends(), load_conf(source / "no-op").settings.input
    raw = read_raw(spark, settings, f"{source}/events", "delta")
    packed = raw.mapInArrow(partial(pack_input, "delta", settings), PACKED).transform(apply_operator, NoOperator())

    def sink(batch: Any, _batch_id: int) -> None:
        batch.toArrow()
        ends.note()

    writer = packed.writeStream.foreachBatch(sink).option("checkpointLocation", f"{work}/checkpoint")
    writer.trigger(availableNow=True).start().awaitTermination()
    return ends


def run_side(side: str, source: Path) -> None:
    with tempfile.TemporaryDirectory() as work:
        run = run_no_operator if side == "no-op" else partial(run_job, side)
        ends = run(source, Path(work))
        close_stores(spark_session("benchmark"))
    found = {"seconds": ends.seconds(), "cpu_seconds": ends.cpu_seconds()}
    print(json.dumps({name: statistics.median(values[SETTLED_AFTER:]) for name, values in found.items()}))


def rules_alone(form: str, rows: list[Row], scale: int) -> float:
    """Millions of entry operations a second of CPU."""
    settings = settings_of("pip430", 2 * MIB_BYTES * scale)
    if form == "arrays":
        arrays = ArrayCache(settings)
        packed = arrays.pack(rows)
        start = process_time()
        arrays.feed_rows(packed)
    else:
        cache = Cache(settings)
        start = process_time()
        for row in rows:
            cache.feed(row)
    return operations(rows) / 1e6 / (process_time() - start)


def main() -> None:
    options = parser(__doc__)
    options.set_defaults(repetitions=3)
    options.add_argument("--scale", type=int, default=2, metavar="N", help="times as many topics a broker")
    options.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    options.add_argument("--source", type=Path, help=argparse.SUPPRESS)
    arguments = options.parse_args()
    if arguments.side:
        run_side(arguments.side, arguments.source)
        return
    said = __doc__.split("\n\n")[2].replace("\n", " ")
    about = f"{said} {BATCHES} batches a run, of which the first {SETTLED_AFTER + 1} do not count."
    with (
        Results("cache_spark", "The entry cache's job", about=about) as results,
        tempfile.TemporaryDirectory() as folder,
    ):
        compare(results, Path(folder), arguments.scale, arguments.repetitions)


def compare(results: Results, source: Path, scale: int, repetitions: int) -> None:
    """All sides in turns."""
    write_input(source, scale)
    rows = list(generate(FAMILY, 1, scale=scale))
    millions = sum(operations(list(generate(FAMILY, 1 + n, scale=scale))) for n in range(BROKERS)) / BATCHES / 1e6
    warm_up()
    found: dict[str, list[dict[str, float]]] = {side: [] for side in SIDES}

    def through_spark(side: str) -> float:
        found[side].append(measured(__file__, side, source))
        return 0.0

    alone = {f"{form} alone": partial(rules_alone, form, rows, scale) for form in KERNELS}
    values = interleave({side: partial(through_spark, side) for side in SIDES} | alone, repetitions, warmups=0)
    results.measure("entry operations a batch", "M", [millions])
    unit = "M entry operations/s"
    for form in KERNELS:
        results.measure(f"{form}: rules alone, one core", unit, values[f"{form} alone"])
    for side in SIDES:
        results.measure(f"{side}: through Spark, all cores", unit, [millions / one["seconds"] for one in found[side]])
        of_core = [millions / one["cpu_seconds"] for one in found[side]]
        results.measure(f"{side}: through Spark, of CPU time", unit, of_core)
    for form in KERNELS:
        rates = [millions / one["seconds"] for one in found[form]]
        results.target(
            f"{form}: through Spark on all cores / rules alone on one",
            "x",
            ratios(rates, values[f"{form} alone"]),
            at_least=TARGET,
        )
    rates = [millions / one["seconds"] for one in found["arrays"]]
    nothing = [millions / one["seconds"] for one in found["no-op"]]
    results.target("arrays / an operator that does nothing", "x", ratios(rates, nothing), at_least=TARGET_OF_NOTHING)
    results.measure("arrays through Spark / readable rules alone", "x", ratios(rates, values["readable alone"]))


if __name__ == "__main__":
    main()
