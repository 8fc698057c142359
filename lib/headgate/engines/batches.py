"""What a batch of the throttle job brought, and its way into the Delta tables: the same under every engine."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.blocks import gather
from headgate.arrow.runs import times_of
from headgate.arrow.schemas import GROUP_LEAVES
from headgate.throttle.kinds import OUTPUT_TABLES
from headgate.throttle.schemas import BATCHES


@dataclass(frozen=True)
class BatchResult:
    """What one batch brought. progress: schemas.PROGRESS, a row a domain.

    event_time_us: how far the domains of its rows have come, None without traffic. late: rows that came behind their
    domain's clock.
    """

    batch_id: int
    rows: int
    late: int
    dead_letters: int
    marks: int
    event_time_us: int | None
    progress: pa.Table


@dataclass(frozen=True)
class GroupCounts:
    """What a batch says of groups (arrow.schemas.GROUP_USAGE, GROUP_WAITS), and how far its domains are.

    leaves: arrow.schemas.GROUP_LEAVES.
    """

    usage: pa.Table
    waits: pa.Table
    progress: pa.Table
    leaves: pa.Table = field(default_factory=GROUP_LEAVES.empty_table)


class Appends(Protocol):
    """Takes the rows of a table, once for each transaction (application, version); whether it took any.

    rows: equal ones may be one row (arrow.runs).
    """

    def append(self, name: str, rows: pa.Table, application: str, version: int) -> bool: ...


class BatchWriter:
    """Exactly once: each table takes a batch in one transaction (application, batch id).

    A batch that is run again gives the same rows, so what a crash left unwritten is written then and the rest is
    skipped. `batches` comes last.

    on_batch is called after a batch is in its tables, again when it is run again. share: takes what the batch says of
    groups, before `batches`. count: takes the batch's number and its rows by kind, once they are in the tables, also
    when it is run again.
    """

    def __init__(
        self,
        tables: Appends,
        on_batch: Callable[[BatchResult], None],
        share: Callable[[GroupCounts, str, int], None] | None = None,
        count: Callable[[int, Mapping[str, pa.Table]], None] | None = None,
    ) -> None:
        self._count = count
        self._share = share
        self._tables = tables
        self._on_batch = on_batch

    def write(self, rows: dict[str, pa.Table], application: str, batch_id: int) -> BatchResult:
        """Write the rows of a batch by kind (kinds.OUTPUT_BLOCKS)."""
        for name in OUTPUT_TABLES:
            self._tables.append(name, rows[name], application, batch_id)
        result = _result(batch_id, rows)
        if self._share is not None:
            counts = GroupCounts(rows["group_usage"], rows["group_waits"], rows["progress"], rows["group_leaves"])
            self._share(counts, application, batch_id)
        brought = any(len(rows[name]) for name in OUTPUT_TABLES) or result.rows
        rows["batches"] = _batch_row(result, len(rows["topic_usage"])) if brought else BATCHES.empty_table()
        self._tables.append("batches", rows["batches"], application, batch_id)
        if self._count is not None:
            self._count(batch_id, rows)
        self._on_batch(result)
        return result


def rows_by_kind(blocks: Iterable[tuple[str, bytes]], kinds: Mapping[str, pa.Schema]) -> dict[str, pa.Table]:
    """The rows of all blocks of each of `kinds`, which an operator wrote. blocks: their kinds and contents."""
    by_kind: dict[str, list[bytes]] = defaultdict(list)
    for kind, block in blocks:
        by_kind[kind].append(block)
    return {name: gather(schema, by_kind[name]) for name, schema in kinds.items()}


def _result(batch_id: int, rows: dict[str, pa.Table]) -> BatchResult:
    progress = rows["progress"]
    taken = pc.sum(progress["rows"]).as_py() or 0
    return BatchResult(
        batch_id=batch_id,
        rows=taken,
        late=pc.sum(progress["late"]).as_py() or 0,
        dead_letters=len(rows["dead_letters"]),
        marks=int(times_of(rows["marks"]).sum()),
        event_time_us=pc.max(progress.filter(pc.greater(progress["rows"], 0))["event_time_us"]).as_py(),
        progress=progress,
    )


def _batch_row(result: BatchResult, usage_rows: int) -> pa.Table:
    progress = result.progress
    return pa.Table.from_pylist(
        [
            {
                "batch_id": result.batch_id,
                "written_at": datetime.now(UTC),
                "rows": result.rows,
                "late": result.late,
                "dead_letters": result.dead_letters,
                "marks": result.marks,
                "usage_rows": usage_rows,
                "event_time": result.event_time_us,
                "waiting": pc.sum(progress["waiting"]).as_py() or 0,
                "open_domains": pc.sum(progress["is_open"]).as_py() or 0,
            }
        ],
        BATCHES,
    )
