"""The view of replays and sweeps: folders of an output that hold their tables, with their numbers and reports."""

from dataclasses import dataclass
from pathlib import Path

from headgate.core.quota.settings import QuotaSettings
from headgate.errors import HeadgateError
from headgate.service.pages.output import Output
from headgate.service.pages.read import Read
from headgate.service.pages.span import Asked
from headgate.stores import local_path

REPORT = "report.html"
MOST = 100
_DEPTH = 3
KINDS = {"replay_groups": "replay", "cache_sweep": "sweep"}
Found = tuple[tuple[str, str, int], ...]


@dataclass(frozen=True)
class Outcome:
    """Of a conf folder that was replayed: messages, and how many of them. Of a sweep's combination: entries read."""

    name: str
    total: int
    allowed: int
    delayed: int
    failed: int


@dataclass(frozen=True)
class Run:
    """folder: below the output, "." for itself. error: why its tables cannot be read. has_report: a report.html."""

    folder: str
    kind: str
    written_us: int
    has_report: bool
    outcomes: tuple[Outcome, ...]
    error: str | None = None


@dataclass(frozen=True)
class Replays:
    """The newest first."""

    output: str
    runs: tuple[Run, ...]
    total: int


def folders(output: str) -> Found:
    """Folder, table and time of writing (ns) of each run in or below an output on this machine, newest first."""
    root = local_path(output)
    if root is None or not root.is_dir():
        return ()
    found = [
        (str(log.parents[1].relative_to(root)), name, log.stat().st_mtime_ns)
        for depth in range(_DEPTH)
        for name in KINDS
        for log in root.glob(f"{'*/' * depth}{name}/_delta_log")
    ]
    return tuple(sorted(found, key=lambda one: (-one[2], one[0])))


def report_of(output: str, folder: str) -> Path | None:
    """The report of a run, None where there is none: no other file can be named."""
    root = local_path(output)
    known = {one for one, _, _ in folders(output)}
    if root is None or folder not in known:
        return None
    path = root / folder / REPORT
    return path if path.is_file() and path.resolve().is_relative_to(root) else None


def replays(read: Read, _: Asked) -> Replays:
    """Runs are listed whatever their time. Raises nothing for a run that cannot be read."""
    output = read.look.output
    found = folders(output)
    return Replays(output, tuple(_run(read, output, *one) for one in found[:MOST]), len(found))


def _run(read: Read, output: str, folder: str, table: str, written_ns: int) -> Run:
    place = output if folder == "." else f"{output}/{folder}"
    outcomes: tuple[Outcome, ...] = ()
    error = None
    own = Read(Output(place, QuotaSettings()).look(), QuotaSettings())
    try:
        outcomes = tuple(Outcome(**row) for row in own.rows(table, _SQL[table]))
    except HeadgateError as raised:
        error = str(raised)
    read.statements += own.statements
    return Run(folder, KINDS[table], written_ns // 1000, report_of(output, folder) is not None, outcomes, error)


_SQL = {
    "replay_groups": (
        "SELECT conf AS name, sum(offered_msgs) AS total, sum(admitted_msgs) AS allowed, sum(delayed_msgs) AS delayed, "
        "sum(failed_msgs) AS failed FROM replay_groups GROUP BY conf ORDER BY conf"
    ),
    "cache_sweep": (
        "SELECT policy || ', ' || CAST(max_bytes AS STRING) || ' bytes' || "
        "CASE WHEN is_present THEN ' (present)' ELSE '' END AS name, hits + misses AS total, "
        "hits AS allowed, CAST(0 AS BIGINT) AS delayed, misses AS failed "
        "FROM cache_sweep WHERE broker IS NULL ORDER BY is_present DESC, hits DESC LIMIT 5"
    ),
}
