"""The control table: limits with the time from which they hold, and ticks. One ordered stream with the traffic.

Anyone may append limit rows; the job appends those of its conf files and ticks. Rows are checked on their way to the
operator, so that a wrong one becomes a dead letter and stops nothing. No engine.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headgate.conf import LimitRow
from headgate.throttle.blocks import encode
from headgate.throttle.limits import SCOPES, LimitChange, changes_table, namespace_of, without_partition
from headgate.throttle.routing import DEAD_LETTER_KEY, PACKED, Routing
from headgate.throttle.schemas import CONTROL, DEAD_LETTERS, TICKS

LIMIT, TICK, FINISH = "limit", "tick", "finish"
CONF, JOB = "conf", "job"
FROM_THE_START = datetime(1970, 1, 1, tzinfo=UTC)
NAMELESS = ("default", "broker")
LATEST_US = (2**63 - 1) // 1000
_NAMESPACE = re.compile("[^/]+/[^/]+")


def limit_row(at: datetime, seq: int, row: LimitRow, *, gone: bool = False) -> dict[str, Any]:
    """The control row of a limit of the conf files; `gone`: the policy is no longer there."""
    return control_row(at, seq, LIMIT, CONF) | {
        "scope": row.scope,
        "name": row.name,
        "messages_per_s": None if gone else row.messages_per_s,
        "bytes_per_s": None if gone else row.bytes_per_s,
    }


def tick_row(
    at: datetime, *, finish: bool = False, broker: str | None = None, key: str | None = None
) -> dict[str, Any]:
    """Time has come to `at`, on one broker or on all. `finish`: nothing more comes, close what is open."""
    return control_row(at, 0, FINISH if finish else TICK, JOB) | {"broker": broker, "key": key}


def control_row(at: datetime, seq: int, kind: str, source: str) -> dict[str, Any]:
    """A row of the job's own, with only what every row has."""
    empty = dict.fromkeys(CONTROL.names)
    return empty | {
        "effective_time": at,
        "seq": seq,
        "kind": kind,
        "source": source,
        "written_at": datetime.now(UTC),
    }


def conf_rows(wanted: Sequence[LimitRow], control: pa.Table, at: datetime) -> list[dict[str, Any]]:
    """The rows that bring the conf limits of `control` to `wanted`; a restart with the same files gives none.

    In a table without conf limits that is all of them, from the start of time; else what has changed, from `at` on.
    """
    known: dict[tuple[str, str], LimitRow | None] = {}
    last_seq = -1
    for row in _conf_limits(control):
        last_seq = row["seq"]
        rates = (row["messages_per_s"], row["bytes_per_s"])
        known[row["scope"], row["name"]] = None if None in rates else LimitRow(row["scope"], row["name"], *rates)
    if not known:
        at = FROM_THE_START
    new = {(row.scope, row.name): row for row in wanted}
    changed = [(row, False) for place, row in new.items() if known.get(place) != row]
    gone = [(row, True) for place, row in known.items() if row is not None and place not in new]
    return [limit_row(at, last_seq + 1 + i, row, gone=is_gone) for i, (row, is_gone) in enumerate([*changed, *gone])]


def changes_in(control: pa.Table) -> list[LimitChange]:
    """The limit changes of the conf files in `control`, in the order in which they were appended."""
    return [_change(row) for row in _conf_limits(control)]


def _conf_limits(control: pa.Table) -> list[dict[str, Any]]:
    """Rows of the conf files in the order in which they were appended; Delta gives a table's rows in any order."""
    limits = pc.and_(pc.equal(control["kind"], LIMIT), pc.equal(control["source"], CONF))
    numbered = pc.and_(limits, pc.is_valid(control["seq"]))
    return sorted(_plain(control.filter(numbered)), key=lambda row: int(row["seq"]))


def _plain(rows: pa.Table) -> list[dict[str, Any]]:
    """Rows as Python values, times as microseconds: Python's own times end before a table's do."""
    for name in ("effective_time", "written_at"):
        rows = rows.set_column(rows.schema.get_field_index(name), name, rows[name].cast(pa.int64()))
    return rows.to_pylist()  # type: ignore[no-any-return]


def _change(row: dict[str, Any]) -> LimitChange:
    return LimitChange(
        row["effective_time"],
        row["seq"] or 0,
        row["broker"],
        row["scope"],
        row["name"] or "",
        row["messages_per_s"],
        row["bytes_per_s"],
    )


def pack_control(routing: Routing, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Control rows in; a block of changes and one of ticks for every key that they concern, and wrong rows out."""
    for batch in batches:
        packed: list[tuple[str, str, bytes]] = []
        changes: list[LimitChange] = []
        ticks: list[dict[str, Any]] = []
        for row in _plain(pa.Table.from_batches([batch])):
            fault = _fault(routing, row)
            if fault:
                packed.append((DEAD_LETTER_KEY, "dead_letters", encode(_dead_letter(row, fault))))
            elif row["kind"] != LIMIT:
                tick = {"broker": row["broker"], "event_time_us": row["effective_time"]}
                ticks.append(tick | {"finish": row["kind"] == FINISH, "key": row["key"]})
            elif not (routing.by_topic and row["source"] == CONF):  # those the operator was given
                changes.append(_change(row))
        packed += _changes_by_key(routing, changes)
        packed += _ticks_by_key(routing, ticks)
        yield pa.RecordBatch.from_pylist([dict(zip(PACKED.names, entry, strict=True)) for entry in packed], PACKED)


def _changes_by_key(routing: Routing, changes: list[LimitChange]) -> Iterator[tuple[str, str, bytes]]:
    if not changes:
        return
    if routing.by_topic:
        yield from ((change.name, "changes", encode(changes_table([change]))) for change in changes)
    else:
        block = encode(changes_table(changes))
        yield from ((key, "changes", block) for key in routing.keys)


def _ticks_by_key(routing: Routing, ticks: list[dict[str, Any]]) -> Iterator[tuple[str, str, bytes]]:
    for tick in ticks:
        block = encode(pa.Table.from_pylist([tick], TICKS))
        keys = routing.keys if tick["key"] is None else [tick["key"]]
        yield from ((key, "ticks", block) for key in keys)


def _fault(routing: Routing, row: dict[str, Any]) -> str | None:
    """Why the row cannot be carried out, or None."""
    is_of_job = row["kind"] in {TICK, FINISH} and row["source"] == JOB
    if row["kind"] != LIMIT and not is_of_job:
        return f"kind: got {row['kind']}, allowed is {LIMIT}"
    if row["effective_time"] is None:
        return "effective_time: got null, allowed is a timestamp"
    if not 0 <= row["effective_time"] <= LATEST_US:
        return f"effective_time: got {row['effective_time']} us, allowed is a time from 1970 to 2262"
    if is_of_job:
        return None
    scope, name = row["scope"], row["name"]
    if row["broker"] is not None and not row["broker"].strip():
        return f"broker: got {row['broker']!r}, allowed is a name, or null for all brokers"
    if scope not in SCOPES:
        return f"scope: got {scope}, allowed are {', '.join(SCOPES)}"
    allowed = _allowed_name(scope, name)
    if allowed:
        return f"name: got {name!r}, allowed is {allowed}"
    for rate in ("messages_per_s", "bytes_per_s"):
        if row[rate] is not None and row[rate] < 0:
            return f"{rate}: got {row[rate]}, allowed is a whole number from 0, which is off"
    if routing.by_topic and scope != "topic" and row["source"] != CONF:
        return (
            f"scope: got {scope}, allowed is topic while state_key is topic; put wider limits in the conf files and "
            "restart"
        )
    if scope == "broker" and not routing.broker_wide and max(row["messages_per_s"] or 0, row["bytes_per_s"] or 0) > 0:
        return (
            "scope: got broker, but the state of this checkpoint is split finer than brokers: set the limit in "
            "broker.conf and start with a new --output"
        )
    return None


def _allowed_name(scope: str, name: str | None) -> str | None:
    """What the name should be where it can never match anything, else None."""
    if bool(name) == (scope in NAMELESS):
        return f"{'no name' if name else 'a name'} with scope {scope}"
    if scope == "namespace" and name and not _NAMESPACE.fullmatch(name):
        return "tenant/namespace with scope namespace"
    if scope == "topic" and name and not namespace_of(name):
        return "persistent://tenant/namespace/topic with scope topic"
    if scope == "topic" and name and name != without_partition(name):
        return f"{without_partition(name)} with scope topic: its limit holds for each partition"
    return None


def _dead_letter(row: dict[str, Any], reason: str) -> pa.Table:
    raw = ", ".join(f"{name}={value}" for name, value in row.items() if value is not None)
    return pa.Table.from_pylist([{"reason": reason, "raw": raw, "source": "control", "offset": None}], DEAD_LETTERS)
