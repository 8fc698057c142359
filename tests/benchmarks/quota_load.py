"""Four brokers append cuts to one rg_usage as fast as they can, while another process reads along.

    python tests/benchmarks/quota_load.py [--brokers 4] [--cuts 500] [--rows 20]

Each broker is a process with a writer of its own; all write to one table on the local disk, so every commit has to be
put behind those of the others. The reader polls every 10 ms. A cut is seen when the read that has its rows returns.
"""

import multiprocessing
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier, Event
from pathlib import Path
from typing import Any, NamedTuple

from _bench import Results, parser

from headgate.core.quota.groups import HEARTBEAT_GROUP
from headgate.core.quota.settings import QuotaSettings
from headgate.core.quota.usage.reports import ReportReason
from headgate.core.quota.usage.usage import Usage
from headgate.core.quota.usage.usage_report import ReportKind, ReportRow, UsageReport
from headgate.errors import TableError
from headgate.quota.tables.opened import Locations, QuotaTables
from headgate.quota.tables.usage_rows import Sender, SentReport

SETTINGS = QuotaSettings()
EPOCH = 480_000 * 3600
NOW_MS = (EPOCH + 1) * SETTINGS.epoch_ms
POLL_S = 0.01
READER_LIMIT_S = 1800
USAGE = Usage((10, 1000), (12, 1200), (100, None), (True, False))
MS = 1000.0
Key = tuple[int, int, int]
"""(broker, seq, group) of a row."""


@dataclass(frozen=True)
class Load:
    """What is written. rows: of each cut, beside its heartbeat."""

    folder: str
    brokers: int
    cuts: int
    rows: int

    @property
    def shards(self) -> dict[int, int]:
        return dict.fromkeys(range(1, self.rows + 1), 0)

    def expected(self) -> list[Key]:
        """Every row and heartbeat, in order."""
        groups = (HEARTBEAT_GROUP, *self.shards)
        return [(broker, seq, group) for broker in range(self.brokers) for seq in self.seqs() for group in groups]

    def seqs(self) -> range:
        return range(1, self.cuts + 1)


class Append(NamedTuple):
    """One cut of a broker. Times are the machine's, seconds since 1970."""

    broker: int
    seq: int
    began_s: float
    done_s: float
    refused: int


class Read(NamedTuple):
    """One read that brought rows: how long it took, when it returned and what it brought."""

    seconds: float
    done_s: float
    keys: list[Key]


def write(load: Load, broker: int, start: Barrier, out: Any) -> None:
    """A broker: its cuts one after the other, each tried until it is in the table."""
    writer = QuotaTables(Locations.of(load.folder, SETTINGS), SETTINGS).usage
    sender = Sender(broker, 1_700_000_000_000 + broker)
    rows = tuple(ReportRow(group, 0, USAGE, ReportReason.CHANGE) for group in load.shards)
    appends = []
    start.wait()
    for seq in load.seqs():
        sent = SentReport(sender, UsageReport(seq, EPOCH, ReportKind.PERIODIC, True, NOW_MS, 1, rows), NOW_MS)
        began_s, refused = time.time(), 0
        while True:
            try:
                writer.append([sent], load.shards)
            except TableError:
                refused += 1
            else:
                break
        appends.append(Append(broker, seq, began_s, time.time(), refused))
    out.send(appends)


def read(load: Load, start: Barrier, ended: Event, out: Any) -> None:
    """The reader: everything that is new, again and again, until the writers have ended and nothing is new."""
    reader = QuotaTables(Locations.of(load.folder, SETTINGS), SETTINGS).usage_reader(version=0)
    reads = []
    start.wait()
    give_up_s = time.monotonic() + READER_LIMIT_S
    while time.monotonic() < give_up_s:
        last = ended.is_set()
        began_s = time.monotonic()
        found = reader.read(NOW_MS)
        took_s = time.monotonic() - began_s
        columns = [found.rows[name].to_pylist() for name in ("broker_id", "seq", "group_id")]
        if columns[0]:
            reads.append(Read(took_s, time.time(), list(zip(*columns, strict=True))))
        elif last:
            break
        time.sleep(POLL_S)
    out.send(reads)


def run(load: Load) -> tuple[list[Append], list[Read], float]:
    """The appends, the reads, and how long the writers took, seconds."""
    QuotaTables(Locations.of(load.folder, SETTINGS), SETTINGS)
    context = multiprocessing.get_context("spawn")
    start, ended = context.Barrier(load.brokers + 1), context.Event()
    pipes = [context.Pipe(duplex=False) for _ in range(load.brokers + 1)]
    writers = [
        context.Process(target=write, args=(load, broker, start, pipes[broker][1])) for broker in range(load.brokers)
    ]
    reader = context.Process(target=read, args=(load, start, ended, pipes[-1][1]))
    for process in (*writers, reader):
        process.start()
    for _, sender in pipes:  # so that a process that fails ends this one as well
        sender.close()
    appends = [one for receiver, _ in pipes[:-1] for one in receiver.recv()]
    ended.set()
    reads = pipes[-1][0].recv()
    for process in (*writers, reader):
        process.join()
    return appends, reads, max(one.done_s for one in appends) - min(one.began_s for one in appends)


def report(results: Results, load: Load) -> bool:
    """Whether every row is in the table once, and was read once."""
    appends, reads, seconds = run(load)
    commit_ms = [(one.done_s - one.began_s) * MS for one in appends]
    done_s = {(one.broker, one.seq): one.done_s for one in appends}
    seen_s = {(broker, seq): one.done_s for one in reads for broker, seq, _ in one.keys}
    began_s = {(one.broker, one.seq): one.began_s for one in appends}
    results.measure("append of a cut, half of them", "ms", [statistics.median(commit_ms)])
    results.measure("append of a cut, 99 of 100", "ms", [_percentile(commit_ms, 99)])
    results.measure("append of a cut, the longest", "ms", [max(commit_ms)])
    for name, since_s in (("append began", began_s), ("append returned", done_s)):
        late_ms = [max(0.0, seen_s[key] - since_s[key]) * MS for key in since_s if key in seen_s]
        results.measure(f"from when an {name} until it is seen, half of them", "ms", [statistics.median(late_ms)])
        results.measure(f"from when an {name} until it is seen, 99 of 100", "ms", [_percentile(late_ms, 99)])
    read_ms = [one.seconds * MS for one in reads]
    results.measure("a read that brings rows, half of them", "ms", [statistics.median(read_ms)])
    results.measure("a read that brings rows, 99 of 100", "ms", [_percentile(read_ms, 99)])
    results.measure("cuts a second, all brokers", "1/s", [len(appends) / seconds])
    results.measure("appends that gave up and were tried again", "", [sum(one.refused for one in appends)])
    stored = Counter(_stored(load))
    expected = Counter(load.expected())
    brought = Counter(key for one in reads for key in one.keys)
    checks = {
        f"no cut is lost ({load.brokers * load.cuts:,} cuts)": not expected - stored,
        "none is in the table twice": not stored - expected,
        "the reader got every row once": brought == expected,
        "the reader got the cuts of a broker in their order": all(
            _in_order(reads, broker) for broker in range(load.brokers)
        ),
    }
    for name, passed in checks.items():
        results.check(name, passed=passed)
    return all(checks.values())


def _stored(load: Load) -> list[Key]:
    """What the table holds, asked without the reader that was measured."""
    whole = QuotaTables(Locations.of(load.folder, SETTINGS), SETTINGS).usage_reader().read(NOW_MS).rows
    columns = (whole[name].to_pylist() for name in ("broker_id", "seq", "group_id"))
    return list(zip(*columns, strict=True))


def _in_order(reads: Sequence[Read], broker: int) -> bool:
    seqs = [seq for one in reads for sender, seq, _ in one.keys if sender == broker]
    return seqs == sorted(seqs)


def _percentile(values: Sequence[float], percent: int) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]


def main() -> int:
    """1 if a row is lost or twice, else 0."""
    options = parser(__doc__)
    options.add_argument("--brokers", type=int, default=4, metavar="N")
    options.add_argument("--cuts", type=int, default=500, metavar="N", help="of each broker")
    options.add_argument("--rows", type=int, default=20, metavar="N", help="of each cut")
    arguments = options.parse_args()
    about = (
        f"{arguments.brokers} brokers, each a process, append {arguments.cuts} cuts of {arguments.rows} rows and a "
        "heartbeat to one table on the local disk, as fast as they can; a fifth process reads along, polling every "
        "10 ms. All share the cores of the machine."
    )
    with (
        tempfile.TemporaryDirectory() as folder,
        Results("quota_load", "Quota sharing: brokers that append at once", about=about) as results,
    ):
        load = Load(str(Path(folder)), arguments.brokers, arguments.cuts, arguments.rows)
        complete = report(results, load)
        results.note(
            "A live broker appends once an epoch, or with early cuts once every 100 ms. Here the brokers leave no time "
            "between appends: each commit races with those of the others, and the time of an append is mostly that of "
            "commits that came before it."
        )
    return 0 if complete else 1


if __name__ == "__main__":
    raise SystemExit(main())
