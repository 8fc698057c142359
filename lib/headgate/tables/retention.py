"""Which old rows of a table go, and which stay: a rule for each table (docs/tables.md), and the deletion."""

import json
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable
from deltalake.transaction import AddAction, RemoveAction

from headgate.core.numbers import HOUR_US
from headgate.stores import file_system_of
from headgate.tables.query import after_commit, query, times_of

_NS, _MS = "_ns", "_ms"


class Rule(NamedTuple):
    """Which rows are deleted once their `column` is too old: all, or with `keys` all but the newest row of each key.

    column: a time, by its name in ns, us or ms, or a timestamp. None: rows have no time, and go with their file.
    keys: expressions of SQL. of: which rows can be the newest one. over: rows that go though they are the newest.
    is_input: a stream reads the table from its log, and its property forbids deletions: what goes does so as files
    that are joined do, and no reader hears of it. also: a second time, whose newest row of each key stays as well.
    first_by: a number by which rows are newer whatever their time is.
    """

    column: str | None
    keys: tuple[str, ...] | None = None
    of: str = "true"
    over: str = "false"
    is_input: bool = False
    also: str | None = None
    first_by: str | None = None


class Deleted(NamedTuple):
    """What went: rows, and the files that held them."""

    rows: int = 0
    files: int = 0


_EVENT_TIME = Rule("event_time")
_FILES = Rule(None)
RULES: dict[str, Rule] = {
    **dict.fromkeys(("marks", "topic_usage", "dispatch_decisions", "subscribe_decisions", "unloads"), _EVENT_TIME),
    **dict.fromkeys(("batches", "connections", "connection_topics", "cache_evictions", "cache_batches"), _EVENT_TIME),
    "cache_metrics": Rule("second"),
    "throttle_decisions": Rule("at_ms"),
    **dict.fromkeys(("dead_letters", "protocol_dead_letters", "throttle_metrics"), _FILES),
    "control": Rule(
        "effective_time",
        ("kind", "broker", "scope", "name", "source"),
        over="kind IN ('tick', 'finish')",
        is_input=True,
        also="written_at",
    ),
    "cache_control": Rule("written_at", ("kind",)),
    "protocol_ticks": Rule("written_at"),
    "counters": Rule(
        "at_us",
        ("broker", "topic", "direction"),
        over="from_us = at_us AND messages_total = 0 AND bytes_total = 0",
    ),
    "broker_looks": Rule("at_us", ("cluster", "broker", "error IS NULL")),
    "enforced": Rule(
        "at_us", ("path", "action IN ('push', 'released')"), of="action <> 'push'", first_by="coalesce(epoch, 0)"
    ),
}
"""By table. The newest row of a key says how things stand: where a restart goes on (`counters`, `broker_looks`), which
limit is in force (`control`, `cache_control`), who holds the lease, and what is set and not put back (`enforced`).
"""


class Kept(NamedTuple):
    """How long rows of a table stay: those that are so far behind the newest one go by the rule.

    A time of the future is taken for now: one wrong row must not delete the others.
    """

    rule: Rule
    hours: int


def delete_old(table: DeltaTable, kept: Kept) -> Deleted:
    """Delete in one commit. Raises CommitFailedError if somebody else wrote just then, and what a query does."""
    rule, now_us = kept.rule, time.time_ns() // 1000
    if rule.column is None:
        return _old_files(table, now_us - kept.hours * HOUR_US)
    times = times_of(table, rule.column)
    if times is None:
        return Deleted()
    oldest_us, newest_us = (_in_us(rule.column, time) for time in times)
    first_us = min(newest_us, now_us) - kept.hours * HOUR_US
    if oldest_us >= first_us:
        return Deleted()
    if rule.is_input:
        return _rewritten(table, rule, first_us)
    return _all_but_newest(table, rule, first_us) if rule.keys else _all(table, rule, first_us)


def _all(table: DeltaTable, rule: Rule, first_us: int) -> Deleted:
    done = table.delete(
        _is_old(rule, first_us),
        commit_properties=CommitProperties(max_commit_retries=0),
        post_commithook_properties=after_commit(table),
    )
    return Deleted(done["num_deleted_rows"], done["num_removed_files"])


def _all_but_newest(table: DeltaTable, rule: Rule, first_us: int) -> Deleted:
    """Only if there is one to delete: every old row that stays would be written again."""
    keys = _named(rule)
    order = rule.first_by or "0"
    by_key = f"row_number() OVER (PARTITION BY {', '.join(rule.keys or ())} ORDER BY {order} DESC, {rule.column} DESC)"
    newest = (
        f"SELECT {keys}, newest, newest_first FROM (SELECT *, {rule.column} AS newest, {order} AS newest_first, "  # noqa: S608  names of our own
        f"{by_key} AS place FROM t WHERE {rule.of}) WHERE place = 1"
    )
    same = " AND ".join(f"(({key}) IS NOT DISTINCT FROM s.key_{place})" for place, key in enumerate(rule.keys or ()))
    is_older = f"{order} < s.newest_first OR ({order} = s.newest_first AND {rule.column} < s.newest)"
    goes = f"{is_older} OR ({rule.over})"
    is_old = _is_old(rule, first_us)
    count = f"SELECT count(*) AS rows FROM t JOIN ({newest}) AS s ON {same} WHERE {is_old} AND ({goes})"  # noqa: S608
    if not query(count, {"t": table})["rows"][0].as_py():
        return Deleted()
    done = (
        table.merge(
            query(newest, {"t": table}),
            f"{same} AND {is_old}",
            source_alias="s",
            target_alias="t",
            commit_properties=CommitProperties(max_commit_retries=0),
            post_commithook_properties=after_commit(table),
        )
        .when_matched_delete(goes)
        .execute()
    )
    return Deleted(done["num_target_rows_deleted"], done["num_target_files_removed"])


def _rewritten(table: DeltaTable, rule: Rule, first_us: int) -> Deleted:
    """All rows that stay in one file: such a table has few, once it is kept up."""
    is_old, of_key = _is_old(rule, first_us), f"(PARTITION BY {', '.join(rule.keys or ())})"
    newest = f"max(CASE WHEN {is_old} THEN {rule.column} END) OVER {of_key} AS newest, max({rule.also}) OVER {of_key}"
    stays = f"{rule.column} >= newest OR {rule.also} IS NULL OR {rule.also} >= newest_also"
    columns = ", ".join(f'"{field.name}"' for field in table.schema().fields)
    sql = (
        f"SELECT {columns} FROM (SELECT *, {newest} AS newest_also FROM t) "  # noqa: S608  names of our own
        f"WHERE ({is_old}) IS NOT TRUE OR (({rule.over}) IS NOT TRUE AND ({stays})) ORDER BY {rule.column}"
    )
    files = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    before = query("SELECT count(*) AS rows FROM t", {"t": table})["rows"][0].as_py()
    rows = query(sql, {"t": table}).cast(pa.schema(table.schema().to_arrow()))
    if len(rows) == before:
        return Deleted()
    replace_files(table, files, rows, time.time_ns() // 1_000_000, CommitProperties(max_commit_retries=0))
    return Deleted(before - len(rows), len(files))


def replace_files(
    table: DeltaTable, files: Iterable[Mapping[str, Any]], rows: pa.Table, at_ms: int, properties: CommitProperties
) -> None:
    """Put these rows as one file of that time in the place of files: path, size_bytes. Who reads the table from its log
    hears of nothing. Raises CommitFailedError.
    """
    now_ms = time.time_ns() // 1_000_000
    replaced = [RemoveAction(file["path"], False, now_ms, file["size_bytes"], {}) for file in files]
    _commit(table, [_written(table, rows, at_ms), *replaced], properties)


def _written(table: DeltaTable, rows: pa.Table, at_ms: int) -> AddAction:
    system, root = file_system_of(table.table_uri)
    path = f"kept-{secrets.token_hex(8)}.parquet"
    with system.open_output_stream(f"{root}/{path}") as sink:
        pq.write_table(rows, sink)
        size = sink.tell()
    return AddAction(path, size, {}, at_ms, False, json.dumps({"numRecords": len(rows)}))


def _old_files(table: DeltaTable, first_us: int) -> Deleted:
    """Files of which every row was appended before that; one that joins others is as old as the join."""
    files = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    old = [file for file in files if file["modification_time"] * 1000 < first_us]
    if old:
        now_ms = time.time_ns() // 1_000_000
        removed = [RemoveAction(file["path"], True, now_ms, file["size_bytes"], {}) for file in old]
        _commit(table, removed, CommitProperties(max_commit_retries=0))
    return Deleted(sum(file["num_records"] or 0 for file in old), len(old))


def _commit(table: DeltaTable, actions: Sequence[AddAction | RemoveAction], properties: CommitProperties) -> None:
    table.create_write_transaction(
        list(actions),
        "append",
        table.schema(),
        [],
        commit_properties=properties,
        post_commithook_properties=after_commit(table),
    )


def _is_old(rule: Rule, first_us: int) -> str:
    column = rule.column or ""
    if column.endswith(_NS):
        return f"{column} < {first_us * 1000}"
    if column.endswith(_MS):
        return f"{column} < {first_us // 1000}"
    if column.endswith("_us"):
        return f"{column} < {first_us}"
    return f"{column} < arrow_cast({first_us}, 'Timestamp(Microsecond, Some(\"UTC\"))')"


def _in_us(column: str, time: int) -> int:
    if column.endswith(_NS):
        return time // 1000
    return time * 1000 if column.endswith(_MS) else time


def _named(rule: Rule) -> str:
    return ", ".join(f"({key}) AS key_{place}" for place, key in enumerate(rule.keys or ()))
