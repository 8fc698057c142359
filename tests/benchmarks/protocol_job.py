"""The broker's machines of the throttle protocol: operations a second through Spark, alone, and as connections grow.

    python tests/benchmarks/protocol_job.py [--connections 1000 100000] [--repetitions 3]

Every operation is a row of the job's input: marks, receipts, publishes and unmarks in turn, over all connections.
The engine's own share is what the same rows cost through an operator that keeps as many bytes and does nothing. Rates
are of the CPU time of all processes, Java's too: operations a second that one core does.
"""

import argparse
import json
import random
import statistics
import tempfile
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from _bench import Results, interleave, parser, ratios
from _jobs import Ends, measured
from _noop import NoOperator, no_operator_session
from deltalake import write_deltalake

from headgate.conf import load_conf
from headgate.core.numbers import MAX
from headgate.core.protocol.broker import inputs
from headgate.core.protocol.broker.broker_metrics import BrokerMetrics
from headgate.core.protocol.broker.connection import Connection
from headgate.core.protocol.settings import BrokerSettings
from headgate.protocol.routing import pack_input
from headgate.protocol.schemas import INPUTS
from headgate.spark.operator import PACKED, apply_operator
from headgate.spark.protocol import ProtocolJob, ProtocolRun, read_inputs
from headgate.spark.session import spark_session
from headgate.spark.state import close_stores

OPERATIONS, BATCHES, SETTLED_AFTER, SPAN_MS = 1_000_000, 5, 2, 10_000
TOPIC = "persistent://tenant/ns/topic"
BYTES_A_CONNECTION = 30
SIDES = ("headgate", "no-op")
KINDS = ("mark", "receipt", "publish", "unmark")


def write_input(folder: Path, connections: int) -> None:
    """A commit that opens all connections, then a commit a batch."""
    draw = random.Random(1)
    names = [f"broker-{number % 8}/connection-{number}" for number in range(connections)]
    _write(folder, [_row("connect", 0, name, supports_throttle=True) for name in names])
    _write(folder, [_row("open", 1, name, producer_id=0, topic=TOPIC) for name in names])
    for batch in range(BATCHES):
        begin_ms = 10 + batch * SPAN_MS
        of_batch = []
        for number in range(OPERATIONS // len(KINDS)):
            name, at_ms = names[draw.randrange(connections)], begin_ms + number * SPAN_MS * len(KINDS) // OPERATIONS
            ordinal = 1 + batch * OPERATIONS + number
            trip = {"reason": 0, "ordinal": ordinal, "buckets": [{"balance": -draw.randrange(1, 50), "rate": 100}]}
            event = {"event_id": f"{number:09}", "producer_id": 0}
            of_batch += [
                _row("mark", at_ms, name, trips=[trip], **event),
                _row("receipt", at_ms + 1, name, request_id=draw.randrange(1, 5), event_id=event["event_id"]),
                _row("publish", at_ms + 2, name, **event),
                _row("unmark", at_ms + 3, name, reason=0, ordinal=ordinal, **event),
            ]
        _write(folder, sorted(of_batch, key=lambda row: row["at_ms"]))


def _row(kind: str, at_ms: int, connection: str, **more: Any) -> dict[str, Any]:
    return {"kind": kind, "at_ms": at_ms, "connection": connection} | more


def _write(folder: Path, rows: list[dict[str, Any]]) -> None:
    write_deltalake(str(folder), pa.Table.from_pylist(rows, INPUTS), mode="append")


def run_headgate(source: Path, work: Path, connections: int) -> Ends:
    del connections
    ends = Ends()
    job = ProtocolJob(f"{work}/out", f"{work}/out/checkpoint", f"{source}/inputs", once=True)
    conf = load_conf(source / "conf")
    run = ProtocolRun(
        spark_session("benchmark"), job, conf, lambda batch: batch.rows and ends.note(), threading.Event()
    )
    run.run()
    return ends


def run_no_operator(source: Path, work: Path, connections: int) -> Ends:
    spark, ends = no_operator_session(), Ends()
    rows = read_inputs(spark, load_conf(source / "conf").settings.input, f"{source}/inputs", "delta")
    no_operator = NoOperator(connections * BYTES_A_CONNECTION // 32)
    packed = rows.mapInArrow(partial(pack_input, "delta", MAX), PACKED).transform(apply_operator, no_operator)

    def sink(batch: Any, _batch_id: int) -> None:
        batch.toArrow()
        ends.note()

    writer = packed.writeStream.foreachBatch(sink).option("checkpointLocation", f"{work}/checkpoint")
    writer.trigger(availableNow=True).start().awaitTermination()
    return ends


RUNS = {"headgate": run_headgate, "no-op": run_no_operator}


def run_side(side: str, source: Path) -> None:
    connections = int((source / "connections").read_text())
    with tempfile.TemporaryDirectory() as work:
        ends = RUNS[side](source, Path(work), connections)
        close_stores(spark_session("benchmark"))
    found = {"seconds": ends.seconds(), "cpu_seconds": ends.cpu_seconds()}
    print(json.dumps({name: statistics.median(values[-BATCHES + SETTLED_AFTER :]) for name, values in found.items()}))


def core_alone() -> float:
    """Operations a second of CPU: machines fed with inputs that are objects already."""
    machines = [Connection(BrokerSettings(), BrokerMetrics(), supports=True, at_ms=0) for _ in range(100)]
    for machine in machines:
        machine.feed(inputs.Open(1, 0, TOPIC))
    given = []
    for n in range(20_000):
        at_ms, trip = 10 + n, inputs.Trip(0, n + 1, [(-20, 100)])
        given += [
            (n % 100, inputs.Mark(at_ms, 0, [trip])),
            (n % 100, inputs.Receipt(at_ms + 1, n // 100 + 1)),
            (n % 100, inputs.Publish(at_ms + 2, 0)),
            (n % 100, inputs.Unmark(at_ms + 3, 0, 0, n + 1)),
        ]
    begun_s = time.process_time()
    for place, one in given:
        machines[place].feed(one)
    return len(given) / (time.process_time() - begun_s)


def main() -> None:
    options = parser(__doc__)
    options.set_defaults(repetitions=3)
    options.add_argument("--connections", type=int, nargs="+", default=[1_000, 100_000])
    options.add_argument("--side", choices=RUNS, help=argparse.SUPPRESS)
    options.add_argument("--source", type=Path, help=argparse.SUPPRESS)
    arguments = options.parse_args()
    if arguments.side:
        run_side(arguments.side, arguments.source)
        return
    about = (
        f"{OPERATIONS:,} operations a batch, {BATCHES} batches a run, of which the first {SETTLED_AFTER} do not count; "
        "the same rows through an operator that keeps as many bytes and does nothing beside."
    )
    with Results("protocol_job", "The throttle protocol's job", about=about) as results:
        results.measure("core alone", "operations/s of a core", [core_alone() for _ in range(arguments.repetitions)])
        cpu_s = {
            connections: compare(results, connections, arguments.repetitions) for connections in arguments.connections
        }
        few, many = min(cpu_s), max(cpu_s)
        growth = {side: ratios(cpu_s[many][side], cpu_s[few][side]) for side in SIDES}
        results.target(
            f"growth from {few:,} to {many:,} connections, headgate / no-op",
            "x",
            ratios(growth["headgate"], growth["no-op"]),
            at_most=1.2,
        )
        rates = {side: [OPERATIONS / batch_s for batch_s in cpu_s[many][side]] for side in SIDES}
        own = [OPERATIONS / (ours - theirs) for ours, theirs in zip(*cpu_s[many].values(), strict=True)]
        results.measure(f"no-op, operations/s of a core at {many:,} connections", "operations/s", rates["no-op"])
        results.measure(f"headgate above the no-op at {many:,} connections", "operations/s", own)
        results.target(
            f"operations/s of a core at {many:,} connections", "operations/s", rates["headgate"], at_least=200_000
        )


def compare(results: Results, connections: int, repetitions: int) -> dict[str, list[float]]:
    """Both sides in turns; CPU seconds a batch."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder)
        (source / "connections").write_text(str(connections))
        write_input(source / "inputs", connections)
        (source / "conf").mkdir()
        (source / "conf" / "headgate.toml").write_text("[input]\nmax_files_per_trigger = 1\n")
        found: dict[str, list[dict[str, float]]] = {side: [] for side in SIDES}

        def run(side: str) -> float:
            found[side].append(measured(__file__, side, source))
            return 0.0

        interleave({side: partial(run, side) for side in SIDES}, repetitions, warmups=0)
    for side in SIDES:
        for name, unit in (("seconds", "s a batch"), ("cpu_seconds", "CPU s a batch")):
            results.measure(f"{side}: {connections:,} connections", unit, [one[name] for one in found[side]])
    return {side: [one["cpu_seconds"] for one in found[side]] for side in SIDES}


if __name__ == "__main__":
    main()
