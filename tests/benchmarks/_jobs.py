"""Sides of a benchmark of a whole job, each in a process of its own: the throttle job, and Spark's own aggregation."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

from deltalake import write_deltalake
from pyspark.sql import functions as F

from headgate.conf import load_conf
from headgate.spark.session import spark_session
from headgate.spark.throttle import ThrottleJob, ThrottleRun

EVENTS = 500_000
BATCHES = 20
SETTLED_AFTER = 10
START_US = 1_767_603_600_000_000
BATCH_US = 2_000_000
FILES = 2
SIDES = ("headgate", "aggregation")


class Ends:
    """When each full batch ended; what lies between two is a batch's time, triggers following one another at once.

    also: processes whose CPU counts, with all below them, as that of this one.
    """

    def __init__(self, also: Sequence[int] = ()) -> None:
        self._also = also
        self._ends_s: list[float] = []
        self._cpu_s: list[float] = []

    def note(self) -> None:
        self._ends_s.append(time.monotonic())
        self._cpu_s.append(cpu_seconds(self._also))

    def seconds(self) -> list[float]:
        return [later - earlier for earlier, later in pairwise(self._ends_s)]

    def cpu_seconds(self) -> list[float]:
        return [later - earlier for earlier, later in pairwise(self._cpu_s)]


def run_headgate(source: Path, work: Path, format_: str = "parquet") -> list[float]:
    """The throttle job over the files of `source` with the conf files beside them; seconds a batch."""
    return job_ends(source, work, format_).seconds()


def job_ends(source: Path, work: Path, format_: str = "parquet", also: Sequence[int] = ()) -> Ends:
    """The same: when its batches ended."""
    spark = spark_session("benchmark")
    job = ThrottleJob(f"{source}/*.{format_}", format_, f"{work}/out", f"{work}/out/checkpoint", once=True)
    ends = Ends(also)
    ThrottleRun(
        spark, job, load_conf(source / "conf"), lambda batch, _: batch.rows and ends.note(), threading.Event()
    ).run()
    return ends


def run_aggregation(source: Path, work: Path, keys: Sequence[str]) -> list[float]:
    """Spark's own sums by these columns; seconds a batch."""
    spark = spark_session("benchmark")
    pattern = f"{source}/*.parquet"
    events = spark.readStream.schema(spark.read.parquet(pattern).schema).option("maxFilesPerTrigger", FILES)
    sums = events.parquet(pattern).groupBy(*keys).agg(F.sum("messages").alias("m"), F.sum("bytes").alias("b"))

    ends = Ends()

    def sink(batch: Any, _batch_id: int) -> None:
        write_deltalake(f"{work}/sums", batch.toArrow(), mode="append")
        ends.note()

    writer = sums.writeStream.foreachBatch(sink).outputMode("update").option("checkpointLocation", f"{work}/checkpoint")
    writer.trigger(availableNow=True).start().awaitTermination()
    return ends.seconds()


def measured(script: str, side: str, source: Path) -> dict[str, float]:
    """What one run of `side` measured, in a process of its own."""
    command = [sys.executable, script, "--side", side, "--source", str(source)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def peak_bytes() -> dict[str, float]:
    """The most memory that Java, this process and the Python workers had, each by its own peak."""
    peaks = {process: fields for process, fields in _ours().items() if "VmHWM" in fields}
    of_ours = [(fields["Name"].strip(), 1024 * int(fields["VmHWM"].split()[0])) for fields in peaks.values()]
    return {
        "java_bytes": sum(peak for name, peak in of_ours if name == "java"),
        "python_bytes": sum(peak for name, peak in of_ours if name != "java"),
    }


def cpu_seconds(also: Sequence[int] = ()) -> float:
    """What Java, this process and the Python workers have taken of the processors so far. also: as of `Ends`."""
    ticks = 0
    for process in _ours(also):
        with suppress(OSError):  # it has ended
            of_process = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            ticks += int(of_process[11]) + int(of_process[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _ours(also: Sequence[int] = ()) -> dict[int, dict[str, str]]:
    """The processes of a run, this one and all below it: the lines of their /proc/<id>/status. also: as of `Ends`."""
    found = {}
    for status in Path("/proc").glob("[0-9]*/status"):
        with suppress(OSError):  # it has ended
            fields = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
            found[int(fields["Pid"])] = fields
    ours = {os.getpid(), *also}
    while more := {process for process, fields in found.items() if int(fields["PPid"]) in ours} - ours:
        ours |= more
    return {process: found[process] for process in ours if process in found}
