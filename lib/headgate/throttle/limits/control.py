"""The control table: limits and attachments with their time, and ticks. One ordered stream with the traffic.

Anyone may append rows of both kinds; the job appends those of its conf files and ticks. Rows are checked on their way
to the operator, so that a wrong one becomes a dead letter and stops nothing. No engine.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.blocks import encode
from headgate.arrow.schemas import DEAD_LETTERS
from headgate.conf import (
    AttachmentRow,
    ConfRow,
    ConnectionLimitRow,
    DispatchLimitRow,
    LevelLimitRow,
    SubscribeLimitRow,
    UnloadLimitRow,
)
from headgate.conf.findings import MAX_MS
from headgate.core.quota.groups import is_group_name
from headgate.core.topic_names import namespace_of, without_partition
from headgate.keyed.packing import dead_letter_blocks, packed
from headgate.throttle.keys import broker_key
from headgate.throttle.limits.changes import (
    ATTACHMENT,
    CLASSES,
    CONNECTION_LIMIT,
    DISPATCH_LIMIT,
    LIMIT,
    OF_BROKERS,
    OF_DISPATCH,
    OWN,
    REPLICATOR_LIMIT,
    SCOPES,
    SUBSCRIBE_LIMIT,
    SUBSCRIPTION_LIMIT,
    UNLOAD_LIMIT,
    Change,
    changes_table,
)
from headgate.throttle.routing import Routing
from headgate.throttle.schemas import CONTROL, TICKS

TICK, FINISH = "tick", "finish"
CONF, JOB, QUOTA = "conf", "job", "quota"
FROM_THE_START = datetime(1970, 1, 1, tzinfo=UTC)
NAMELESS = ("default", "broker")
LATEST_US = (2**63 - 1) // 1000
MOST_PERIOD_S = MOST_OF_CONDITIONS = 2**31 - 1
_NAMESPACE = re.compile("[^/]+/[^/]+")
KINDS_OF_LEVELS = {
    "dispatch": DISPATCH_LIMIT,
    "subscription": SUBSCRIPTION_LIMIT,
    "replicator": REPLICATOR_LIMIT,
}
CONDITIONS = (
    *("max_pending_publish_requests", "max_publish_buffer_mib", "io_threads", "pause_if_unwritable"),
    *("cooldown_ms", "cooldown_permits", "cooldown_period_ms"),
)
"""Columns of limits of connections, in the order of ConditionLimits."""
KINDS_OF_CLASSES = (LIMIT, DISPATCH_LIMIT)
"""Kinds of the rows that limit groups, by class: 0 publish, 1 dispatch."""


def conf_row(at: datetime, seq: int, row: ConfRow, *, gone: bool = False) -> dict[str, Any]:
    """The control row of a limit or an attachment of the conf files; `gone`: it is no longer there."""
    place = {"scope": row.scope, "name": row.name}
    if isinstance(row, AttachmentRow):
        return control_row(at, seq, ATTACHMENT, CONF) | place | {"group_name": None if gone else row.group}
    if isinstance(row, LevelLimitRow):
        return control_row(at, seq, KINDS_OF_LEVELS[row.level], CONF) | place | ({} if gone else _of_level(row))
    if isinstance(row, SubscribeLimitRow):
        rate = {} if gone else {"subscribes_per_period": row.subscribes_per_period, "period_s": row.period_s}
        return control_row(at, seq, SUBSCRIBE_LIMIT, CONF) | place | rate
    if isinstance(row, UnloadLimitRow):
        limit = {} if gone else {"starts_per_s": row.starts_per_s, "timeout_ms": row.timeout_ms}
        return control_row(at, seq, UNLOAD_LIMIT, CONF) | place | limit
    if isinstance(row, ConnectionLimitRow):
        conditions = {} if gone else {name: getattr(row, name) for name in CONDITIONS}
        return control_row(at, seq, CONNECTION_LIMIT, CONF) | place | conditions
    rates = (None, None) if gone else (row.messages_per_s, row.bytes_per_s)
    kind = DISPATCH_LIMIT if isinstance(row, DispatchLimitRow) else LIMIT
    return control_row(at, seq, kind, CONF) | place | dict(zip(("messages_per_s", "bytes_per_s"), rates, strict=True))


def _of_level(row: LevelLimitRow) -> dict[str, Any]:
    return {
        "messages_per_s": row.messages_per_period,
        "bytes_per_s": row.bytes_per_period,
        "period_s": row.period_s,
        "relative_to_publish_rate": row.relative,
    }


def group_limit_row(  # noqa: PLR0917  the columns of such a row
    at: datetime, seq: int, broker: str | None, group: str, rates: Sequence[int | None], traffic_class: int = 0
) -> dict[str, Any]:
    """A group's limit on a broker, None: on all, as it was worked out.

    rates: messages and bytes a second; None: not limited, 0: nothing passes. traffic_class: 0 publish, 1 dispatch.
    """
    place = {"broker": broker, "scope": "group", "name": group}
    named = dict(zip(("messages_per_s", "bytes_per_s"), rates, strict=True))
    return control_row(at, seq, KINDS_OF_CLASSES[traffic_class], QUOTA) | place | named


def attachment_row(at: datetime, seq: int, scope: str, resource: str, group: str | None) -> dict[str, Any]:
    """What a tenant, namespace or topic is attached to, None: nothing."""
    return control_row(at, seq, ATTACHMENT, QUOTA) | {"scope": scope, "name": resource, "group_name": group}


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


def conf_rows(
    wanted: Sequence[ConfRow], control: pa.Table, at: datetime, *, groups: bool = True
) -> list[dict[str, Any]]:
    """The rows that bring the conf rows of `control` to `wanted`; a restart with the same files gives none.

    In a table without conf rows that is all of them, from the start of time; else what has changed, from `at` on.
    groups: False leaves limits of groups and attachments as they are: they come from elsewhere.
    """
    said = changes_in(control)
    known = {change.place: change for change in said}
    at = at if known else FROM_THE_START
    new = {_change(row).place: row for row in (conf_row(at, 0, row) for row in wanted)}
    gone = {
        place: control_row(at, 0, change.kind, CONF) | {"scope": change.scope, "name": change.name}
        for place, change in known.items()
        if place not in new
    }
    rows = [
        row
        for place, row in (new | gone).items()
        if _change(row).says != (known[place].says if place in known else None)
        and (groups or (row["kind"] != ATTACHMENT and row["scope"] != "group"))
    ]
    last_seq = max((change.seq for change in said), default=-1)
    return [row | {"seq": last_seq + 1 + i} for i, row in enumerate(rows)]


def changes_in(control: pa.Table) -> list[Change]:
    """The changes of the conf files in `control` as they were appended; Delta gives a table's rows in any order."""
    from_conf = pc.and_(pc.is_in(control["kind"], value_set=pa.array(list(SCOPES))), pc.equal(control["source"], CONF))
    numbered = control.filter(pc.and_(from_conf, pc.is_valid(control["seq"])))
    return sorted(map(_change, _plain(numbered)), key=lambda change: change.seq)


def _plain(rows: pa.Table) -> list[dict[str, Any]]:
    """Rows as Python values, times as microseconds: Python's own times end before a table's do."""
    for name in ("effective_time", "written_at"):
        rows = rows.set_column(rows.schema.get_field_index(name), name, rows[name].cast(pa.int64()))
    return rows.to_pylist()  # type: ignore[no-any-return]


def _change(row: dict[str, Any]) -> Change:
    kind = row["kind"]
    own = (_conditions(row) if name == "conditions" else row[name] for name in OWN[kind])
    return CLASSES[kind](row["effective_time"], row["seq"] or 0, row["broker"], row["scope"], row["name"] or "", *own)


def _conditions(row: dict[str, Any]) -> tuple[int, ...] | None:
    if all(row[name] is None for name in CONDITIONS):
        return None
    return tuple(int(row[name] or 0) for name in CONDITIONS)


def pack_control(routing: Routing, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Control rows in; a block of changes and one of ticks for every key that they concern, and wrong rows out."""
    for batch in batches:
        blocks: list[tuple[str, str, bytes]] = []
        changes: list[Change] = []
        ticks: list[dict[str, Any]] = []
        for row in _plain(pa.Table.from_batches([batch])):
            fault = _fault(routing, row)
            if fault:
                blocks += dead_letter_blocks(_dead_letter(row, fault))
            elif row["kind"] not in SCOPES:
                tick = {"broker": row["broker"], "event_time_us": row["effective_time"]}
                ticks.append(tick | {"finish": row["kind"] == FINISH, "key": row["key"]})
            elif not (routing.by_topic and row["source"] == CONF):  # those the operator was given
                changes.append(_change(row))
        blocks += _changes_by_key(routing, changes)
        blocks += _ticks_by_key(routing, ticks)
        yield packed(blocks)


def _changes_by_key(routing: Routing, changes: list[Change]) -> Iterator[tuple[str, str, bytes]]:
    if not changes:
        return
    if routing.by_topic:
        yield from ((_key_of(change), "changes", encode(changes_table([change]))) for change in changes)
    else:
        of_keys: dict[str, list[Change]] = defaultdict(list)
        for change in changes:
            for key in routing.keys_of(change.broker):
                of_keys[key].append(change)
        yield from ((key, "changes", encode(changes_table(some))) for key, some in of_keys.items())


def _key_of(change: Change) -> str:
    """The one key that a change concerns, where topics are keys."""
    return broker_key(change.broker or "") if change.kind in OF_BROKERS else change.name


def _ticks_by_key(routing: Routing, ticks: list[dict[str, Any]]) -> Iterator[tuple[str, str, bytes]]:
    for tick in ticks:
        block = encode(pa.Table.from_pylist([tick], TICKS))
        of = None if tick["finish"] else tick["broker"]  # a finish is one for everybody
        keys = routing.keys_of(of) if tick["key"] is None else [tick["key"]]
        yield from ((key, "ticks", block) for key in keys)


def _fault(routing: Routing, row: dict[str, Any]) -> str | None:
    """Why the row cannot be carried out, or None."""
    is_of_job = row["kind"] in {TICK, FINISH} and row["source"] == JOB
    if row["kind"] not in SCOPES and not is_of_job:
        return f"kind: got {row['kind']}, allowed are {', '.join(SCOPES)}"
    if row["effective_time"] is None:
        return "effective_time: got null, allowed is a timestamp"
    if not 0 <= row["effective_time"] <= LATEST_US:
        return f"effective_time: got {row['effective_time']} us, allowed is a time from 1970 to 2262"
    if is_of_job:
        return None
    if row["broker"] is not None and not row["broker"].strip():
        return f"broker: got {row['broker']!r}, allowed is a name, or null for all brokers"
    scopes, scope, name = SCOPES[row["kind"]], row["scope"], row["name"]
    if scope not in scopes:
        return f"scope: got {scope}, allowed are {', '.join(scopes)}"
    allowed = _allowed_name(scope, name)
    if allowed:
        return f"name: got {name!r}, allowed is {allowed}"
    if row["kind"] in OF_BROKERS:
        fault = _fault_of_unload_limit(row) if row["kind"] == UNLOAD_LIMIT else _fault_of_conditions(row)
        return fault or _fault_of_broker(routing, row)
    return _fault_of_attachment(routing, row) if row["kind"] == ATTACHMENT else _fault_of_limit(routing, row)


def _fault_of_limit(routing: Routing, row: dict[str, Any]) -> str | None:
    for rate in ("messages_per_s", "bytes_per_s", "subscribes_per_period"):
        if row[rate] is not None and row[rate] < 0:
            return f"{rate}: got {row[rate]}, allowed is a whole number from 0, which is off (of a group it blocks)"
    if not 0 <= (row["period_s"] or 0) <= MOST_PERIOD_S:
        return f"period_s: got {row['period_s']}, allowed is null or a whole number from 0 to {MOST_PERIOD_S}"
    if row["kind"] == SUBSCRIBE_LIMIT and (row["subscribes_per_period"] is None) != (row["period_s"] is None):
        return "subscribes_per_period, period_s: got one of them, allowed are both, or neither: the policy is gone then"
    if row["kind"] in OF_DISPATCH and (fault := _fault_of_period(row)):
        return fault
    if routing.by_topic and row["scope"] != "topic" and row["source"] != CONF:
        return (
            f"scope: got {row['scope']}, allowed is topic while state_key is topic; put wider limits in the conf files "
            "and restart"
        )
    is_set = max(row["messages_per_s"] or 0, row["bytes_per_s"] or 0) > 0
    if row["scope"] == "broker" and is_set and not routing.whole_brokers:
        return (
            "scope: got broker, but the state of this checkpoint is split finer than brokers: set the limit in "
            "broker.conf and start with a new --output"
        )
    return None


def _fault_of_period(row: dict[str, Any]) -> str | None:
    """Of limits of dispatches: groups have rates per second, and what topics share follows no topic's publish rate."""
    scope, period_s = row["scope"], row["period_s"]
    if scope == "group" and period_s not in {None, 1}:
        return f"period_s: got {period_s}, allowed is null or 1 with scope group: rates of groups are per second"
    if scope in {"group", "broker"} and row["relative_to_publish_rate"]:
        return f"relative_to_publish_rate: got true, allowed is null or false with scope {scope}"
    return None


def _fault_of_unload_limit(row: dict[str, Any]) -> str | None:
    starts_per_s, timeout_ms = row["starts_per_s"], row["timeout_ms"]
    if (starts_per_s is None) != (timeout_ms is None):
        return "starts_per_s, timeout_ms: got one of them, allowed are both, or neither: the default holds then"
    if starts_per_s is not None and starts_per_s < 0:
        return f"starts_per_s: got {starts_per_s}, allowed is a whole number from 0, which is off"
    if timeout_ms is not None and not 1 <= timeout_ms <= MAX_MS:
        return f"timeout_ms: got {timeout_ms}, allowed is a whole number from 1 to {MAX_MS}"
    return None


def _fault_of_conditions(row: dict[str, Any]) -> str | None:
    for name in CONDITIONS:
        if not 0 <= (row[name] or 0) <= MOST_OF_CONDITIONS:
            return f"{name}: got {row[name]}, allowed is a whole number from 0, which is off, to {MOST_OF_CONDITIONS}"
    needed = ["io_threads"] if row["max_publish_buffer_mib"] else []
    if row["pause_if_unwritable"] and row["cooldown_ms"]:
        needed += ["cooldown_permits", "cooldown_period_ms"]
    missing = next((name for name in needed if not row[name]), None)
    if missing is None:
        return None
    given = "a max_publish_buffer_mib" if missing == "io_threads" else "a cooldown_ms"
    return f"{missing}: got {row[missing]}, allowed is a whole number from 1 with {given}"


def _fault_of_broker(routing: Routing, row: dict[str, Any]) -> str | None:
    """Of what a broker has apart from its topics: where topics are keys, its own key has to be known."""
    if routing.by_topic and row["broker"] is None and row["source"] != CONF:
        return (
            "broker: got null, allowed is a name while state_key is topic; put limits of all brokers in the conf files "
            "and restart"
        )
    return None


def _fault_of_attachment(routing: Routing, row: dict[str, Any]) -> str | None:
    group = row["group_name"]
    if group is not None and not is_group_name(group):
        return f"group_name: got {group!r}, allowed is null or 1 to 250 of A-Z a-z 0-9 _ - = : ."
    if routing.by_topic:
        return f"kind: got {ATTACHMENT}, allowed is {LIMIT} while state_key is topic: topics then share no limiter"
    if group is not None and not routing.whole_brokers:
        return (
            f"kind: got {ATTACHMENT}, but the state of this checkpoint is split finer than brokers: start with a new "
            "--output while there are groups"
        )
    return None


def _allowed_name(scope: str, name: str | None) -> str | None:
    """What the name should be where it can never match anything, else None."""
    if bool(name) == (scope in NAMELESS):
        return f"{'no name' if name else 'a name'} with scope {scope}"
    if scope == "tenant" and name and "/" in name:
        return "a tenant with scope tenant"
    if scope == "namespace" and name and not _NAMESPACE.fullmatch(name):
        return "tenant/namespace with scope namespace"
    if scope == "topic" and name and not namespace_of(name):
        return "persistent://tenant/namespace/topic with scope topic"
    if scope == "topic" and name and name != without_partition(name):
        return f"{without_partition(name)} with scope topic: it holds for each partition"
    return None


def _dead_letter(row: dict[str, Any], reason: str) -> pa.Table:
    raw = ", ".join(f"{name}={value}" for name, value in row.items() if value is not None)
    return pa.Table.from_pylist([{"reason": reason, "raw": raw, "source": "control", "offset": None}], DEAD_LETTERS)
