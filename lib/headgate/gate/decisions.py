"""The table `throttle_decisions` as a gate reads it: each commit's new commands, and those that are in force."""

from collections.abc import Collection

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from headgate.errors import TableError
from headgate.protocol.schemas import DECISIONS
from headgate.quota.tables.delta import Table, nullable, told
from headgate.quota.tables.hourly_files import read_file
from headgate.quota.tables.schemas import TableSpec
from headgate.store_errors import said

NOTICE_TTL_MS = 5000
"""Age beyond which a notice is stale: the default of clients. throttle-protocol 4"""
_COLUMNS = (
    *("connection", "seq", "kind", "at_ms", "request_id", "producer_id"),
    *("reason", "pause_for_millis", "until_ms"),
)
COMMANDS = nullable(pa.schema([DECISIONS.field(name) for name in _COLUMNS]))
_SPEC = TableSpec("throttle_decisions", COMMANDS)


class DecisionReader:
    """Of every connection that is asked for, each command is handed out with the first read after its commit.

    Other columns than those of throttle-protocol 6 are not looked at. For one thread at a time.
    Raises TableError where the table is missing or cannot be read; the next read goes on where the last one ended.
    """

    def __init__(self, location: str) -> None:
        self._table = _opened(location)
        self._version = self._table.version

    def read(self, known: Collection[str], new: Collection[str], now_ms: int) -> pa.Table:
        """COMMANDS, in the order of each connection's `seq`: what is new for those that are `known`, and what is in
        force at `now_ms` for those that are `new`.
        """
        version = self._table.refresh()
        added = self._added(version)
        if added is None:  # the log or a file is gone: begin anew
            rows = self._in_force({*known, *new}, now_ms)
        else:
            parts = [_of(added, known)]
            if new:
                parts.append(self._in_force(new, now_ms))
            rows = pa.concat_tables(parts)
        self._version = version
        return rows.sort_by([("connection", "ascending"), ("seq", "ascending")])

    def _added(self, version: int) -> pa.Table | None:
        if version < self._version:
            return None
        files = self._table.added_since(self._version)
        if files is None:
            return None
        try:
            parts = [read_file(self._table, file.path, file.partition) for file in files]
        except FileNotFoundError:
            return None
        return pa.concat_tables([COMMANDS.empty_table(), *parts])

    def _in_force(self, connections: Collection[str], now_ms: int) -> pa.Table:
        is_notice = f"until_ms IS NULL AND at_ms >= {now_ms - NOTICE_TTL_MS}"
        return _of(self._table.select(f"kind = 'command' AND (until_ms > {now_ms} OR ({is_notice}))"), connections)


def _of(rows: pa.Table, connections: Collection[str]) -> pa.Table:
    names = pa.array(sorted(connections), pa.string())
    return rows.filter(pc.and_(pc.equal(rows["kind"], "command"), pc.is_in(rows["connection"], names)))


def _opened(location: str) -> Table:
    try:
        delta = DeltaTable(location)
    except (DeltaError, OSError) as error:
        raise TableError(
            f"the table {location} cannot be opened: {said(error)}; give the --output of a "
            "job jobs/protocol.py, which creates it"
        ) from error
    table = Table(location, _SPEC, delta)
    with told(table, "read"):
        found = {column.name: column.type for column in pa.schema(delta.schema().to_arrow())}
    lacking = [column.name for column in COMMANDS if found.get(column.name) != column.type]
    if lacking:
        raise TableError(
            f"the table {location} has not, or not with their types, the columns {', '.join(lacking)}; allowed: those "
            "of throttle_decisions in docs/tables.md; give the --output of a job jobs/protocol.py"
        )
    return table
