"""What a batch of a live job costs in its Delta tables, as batches and with them commits add up. No Spark.

    python tests/benchmarks/delta_growth.py [--batches 5000] [--every 500] [--rows 20]

Each batch appends to the tables of a throttle job that shares a quota, through the job's own classes: marks,
topic_usage, batches and control, the state of the quota loop, a cut of rg_usage, which is read back, and limits.
Shows CPU time a batch, of this process with all its threads. Batches follow one another at once, so logs are longer
than those of a job with a batch a second: entries stay for ten minutes of the clock.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pyarrow as pa

from headgate.core.quota.evaluation.step_parameters import CellLimit, Reason
from headgate.core.quota.settings import QuotaSettings
from headgate.core.quota.usage.reports import ReportReason
from headgate.core.quota.usage.usage import Usage
from headgate.core.quota.usage.usage_report import ReportKind, ReportRow, UsageReport
from headgate.quota.tables.delta import opened
from headgate.quota.tables.loop_state import LoopStateStore
from headgate.quota.tables.opened import Locations, QuotaTables
from headgate.quota.tables.rg_limits import LimitRow
from headgate.quota.tables.schemas import QUOTA_STATE
from headgate.quota.tables.usage_rows import Sender, SentReport
from headgate.throttle.limits.control import tick_row
from headgate.throttle.tables import SCHEMAS, throttle_tables

SETTINGS = QuotaSettings()
EPOCH = 480_000 * 3600
USAGE = Usage((10, 1000), (12, 1200), (100, None), (True, False))
QUERY = "growth"


class Job:
    """The tables of one job; `batch` writes what one batch brings."""

    def __init__(self, output: Path, rows: int) -> None:
        self.tables = throttle_tables(output)
        self.quota = QuotaTables(Locations.of(output, SETTINGS), SETTINGS)
        self.reader = self.quota.usage_reader()
        self.state = LoopStateStore(opened(f"{output}/quota_state", QUOTA_STATE, SETTINGS.epoch_ms))
        self.rows = {name: filled(SCHEMAS[name], rows) for name in ("marks", "topic_usage")}
        self.rows["batches"] = filled(SCHEMAS["batches"], 1)

    def batches(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            self.batch(number)

    def read_anew(self, number: int) -> None:
        self.quota.usage_reader().read((EPOCH + number + 1) * SETTINGS.epoch_ms)

    def batch(self, number: int) -> None:
        epoch = EPOCH + number
        for name, rows in self.rows.items():
            self.tables.append(name, rows, QUERY, number)
        self.tables.append_control([tick_row(datetime.fromtimestamp(number, UTC))], (QUERY, number))
        self.state.save({"counts": list(range(200))}, QUERY, number)
        rows = tuple(ReportRow(group, 0, USAGE, ReportReason.CHANGE) for group in (1, 2))
        cut = UsageReport(number, epoch, ReportKind.PERIODIC, True, (epoch + 1) * SETTINGS.epoch_ms, 1, rows)
        sent = SentReport(Sender(0, 1, 100), cut, (epoch + 1) * SETTINGS.epoch_ms)
        self.quota.usage.append([sent], {1: 1, 2: 2})
        self.reader.read((epoch + 1) * SETTINGS.epoch_ms)
        limit = LimitRow(epoch, 0, 1, 0, 0, CellLimit(100, 100, 100, 100, 0, 0, 0, next(iter(Reason))))
        self.quota.limits.append([limit], (QUERY, number))
        self.quota.config.read()
        self.quota.members.read()


def filled(schema: pa.Schema, rows: int) -> pa.Table:
    return pa.table({field.name: values(field.type, rows) for field in schema}, schema=schema)


def values(of: pa.DataType, rows: int) -> pa.Array:
    if pa.types.is_string(of):
        return pa.array([f"persistent://tenant/namespace/topic-{row}" for row in range(rows)], of)
    if pa.types.is_boolean(of):
        return pa.array([row % 2 == 0 for row in range(rows)], of)
    if pa.types.is_nested(of):
        return pa.nulls(rows, of)
    return pa.array(range(rows)).cast(of)


def memory_mb() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20


def cpu_ms(do: Callable[[], object]) -> float:
    began_s = time.process_time()
    do()
    return (time.process_time() - began_s) * 1000


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--batches", type=int, default=5000)
    arguments.add_argument("--every", type=int, default=500, help="batches a line")
    arguments.add_argument("--rows", type=int, default=20, help="rows of marks and of topic_usage a batch")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder)
        job = Job(output, given.rows)
        print(f"{'batches':>8} {'CPU ms':>7} {'memory MB':>9} {'log files':>9} {'open + read ms':>14}")
        for first in range(1, given.batches + 1, given.every):
            numbers = range(first, min(first + given.every, given.batches + 1))
            spent = cpu_ms(partial(job.batches, numbers)) / len(numbers)
            log = len(list((output / "rg_usage" / "_delta_log").iterdir()))
            reading = cpu_ms(partial(job.read_anew, numbers[-1]))
            print(f"{numbers[-1]:>8} {spent:>7.1f} {memory_mb():>9} {log:>9} {reading:>14.0f}", flush=True)


if __name__ == "__main__":
    main()
