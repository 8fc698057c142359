"""The machines behind one key as arrays: what happens to all of them in one call of a compiled kernel."""

import json
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headgate.core.kernels.columns import Ints, Records
from headgate.core.kernels.protocol.layout import link
from headgate.core.kernels.protocol.links import link_ids
from headgate.core.kernels.protocol.order import order
from headgate.core.kernels.protocol.run import run
from headgate.core.kernels.protocol.types import (
    BREACH,
    BREACHES,
    CONDITION,
    CONDITION_CLEAR,
    CONDITION_SET,
    CONDITIONS,
    CONNECTION,
    COUNT,
    COUNTERS,
    COUNTS,
    DECISION,
    DECISIONS,
    FREE_ID,
    FREE_QUEUED,
    IDS,
    LETTER,
    LETTERS,
    LIMITER,
    LIMITERS,
    LIVES,
    NAMED,
    NAMES,
    NONE,
    OPEN_ID,
    PRODUCER,
    PRODUCERS,
    QUEUE,
    QUEUED,
    READS_ON,
    SETTINGS,
    TURN,
    USED,
    Machines,
)
from headgate.core.numbers import MAX
from headgate.core.protocol.settings import BrokerSettings, PauseMode, ViolationPolicy
from headgate.protocol.operations import Operations, operations_of
from headgate.protocol.schemas import ROWS
from headgate.protocol.silence import Silence
from headgate.protocol.state import SlotState
from headgate.protocol.step import ProtocolRules, Result, StepOutput
from headgate.protocol.stored import LIMITER_FIELDS, Columns
from headgate.protocol.telling import told_of

_NEVER_SILENT = Silence()
_SPARE = 1024
"""Rows of the pools that time fills, beside those of operations."""
_LINKS = ("first_producer", "last_producer", "first_id", "last_id", "first_queued", "last_queued", "condition")


def run_arrays(state: SlotState, rows: pa.Table, fed: Ints, rules: ProtocolRules, silence: Silence) -> StepOutput:
    """See `step.Form`."""
    fed_rows = operations_of(rows, fed, state.connection, state.names, obedient=rules.obedient)
    state.connection, state.names = fed_rows.connection, fed_rows.names
    machines = run_machines(state, fed_rows, rules.settings, state.done_ms, silence, obedient=rules.obedient)
    return told_of(rows, fed_rows, result_of(machines))


def run_machines(
    state: SlotState,
    fed: Operations,
    settings: BrokerSettings,
    until_ms: int,
    silence: Silence = _NEVER_SILENT,
    *,
    obedient: bool,
) -> Machines:
    """Take the operations, then let time come to `until_ms` (negative: nowhere); the arrays as they are then."""
    machines = _to_arrays(state, fed, settings, until_ms, silence, obedient=obedient)
    link(machines)
    while not run(machines, until_ms):
        machines = _larger(machines)
    _from_arrays(state, machines)
    return machines


def result_of(machines: Machines) -> Result:
    """What the kernel told."""
    used = machines.used
    return Result(
        machines.decisions[: used[DECISIONS]],
        machines.letters[: used[LETTERS]],
        machines.counts[: used[COUNTS]],
        machines.breaches[: used[BREACHES]],
    )


def _to_arrays(
    state: SlotState, fed: Operations, settings: BrokerSettings, until_ms: int, silence: Silence, *, obedient: bool
) -> Machines:
    """An operation makes a producer, a name, a letter, two breaches and a condition at most; time makes the rest."""
    tables, operations = state.machines, len(fed.operations)
    known, connections = len(tables["connections"]["seq"]), len(state.connection)
    rows = {name: len(next(iter(table.values()))) for name, table in tables.items()}
    kinds = fed.operations["kind"]
    sets = int(((kinds == CONDITION_SET) | (kinds == CONDITION_CLEAR)).sum())
    texts = [*state.settings.to_pylist(), json.dumps(settings.values())]
    state.settings = pa.array(texts, pa.string())
    turns = np.concatenate([fed.turns, _due(tables["connections"]["due_ms"], fed.turns, until_ms)])
    machines = Machines(
        settings=np.concatenate([_settings(BrokerSettings.of(json.loads(text))) for text in texts]),
        connections=np.zeros(connections, CONNECTION),
        producers=np.empty(rows["producers"] + operations, PRODUCER),
        producers_by=_heads(rows["producers"] + operations),
        limiters=np.zeros((rows["producers"] + operations, LIMITERS), LIMITER),
        ids=np.empty(rows["ids"] + operations + _SPARE, OPEN_ID),
        ids_by=_heads(rows["ids"] + operations),
        queued=np.empty(rows["queued"] + operations + _SPARE, QUEUED),
        conditions=np.empty(rows["conditions"] + sets, CONDITION),
        named=np.empty(rows["named"] + operations, NAMED),
        named_by=_heads(rows["named"] + operations),
        ends=np.empty(rows["producers"] + operations, np.int64),
        counters=np.zeros(COUNTERS, np.int64),
        turns=turns,
        operations=fed.operations,
        trips=fed.trips,
        buckets=fed.buckets,
        decisions=np.empty(2 * operations + rows["producers"] + _SPARE, DECISION),
        letters=np.empty(operations, LETTER),
        counts=np.empty(len(turns) * COUNTERS, COUNT),
        breaches=np.empty(2 * operations, BREACH),
        used=np.zeros(USED, np.int64),
        **silence._asdict(),
        obedient=obedient,
    )
    machines.used[[FREE_ID, FREE_QUEUED]] = NONE
    machines.used[LIVES] = connections
    _lay_connections(machines.connections, tables["connections"], known)
    for place, pool, table in (
        (PRODUCERS, machines.producers, "producers"),
        (IDS, machines.ids, "ids"),
        (QUEUE, machines.queued, "queued"),
        (CONDITIONS, machines.conditions, "conditions"),
        (NAMES, machines.named, "named"),
    ):
        machines.used[place] = rows[table]
        _lay(pool, tables[table])
    limiters = tables["limiters"]
    for name in LIMITER_FIELDS:
        machines.limiters[name][limiters["producer"], limiters["code"]] = limiters[name]
    ids = machines.ids[: rows["ids"]]
    ids["life"] = tables["producers"]["connection"][ids["producer"]]
    return machines


def _due(due_ms: Ints, turns: Records, until_ms: int) -> Records:
    """Turns of connections without rows, that act by themselves by then."""
    rest = np.setdiff1d(np.flatnonzero(due_ms <= until_ms), turns["connection"])
    due = np.zeros(len(rest), TURN)
    due["connection"] = rest
    return due


def _settings(settings: BrokerSettings) -> Records:
    return np.array(
        [
            (
                settings.receipt_wait_ms,
                settings.pause_mode is PauseMode.BUCKET_REFILL,
                settings.phase_ms,
                settings.freeze_deadlines,
                settings.violation_policy is ViolationPolicy.PAUSE,
                settings.violation_slack_ms,
                settings.idle_extension_ms,
                settings.extension_step_ms,
                settings.doubling_extensions,
                settings.hard_floor_pause_ms,
            )
        ],
        SETTINGS,
    )


def _heads(entries: int) -> Ints:
    return np.full(1 << max(4, int(entries).bit_length()), NONE, np.int64)


def _lay(pool: Records, table: Columns) -> None:
    for name, column in table.items():
        pool["life" if name == "connection" else name][: len(column)] = column


def _lay_connections(connections: Records, stored: Columns, known: int) -> None:
    """A connection's life is its place, until it begins another one."""
    connections["off_at_ms"], connections["due_ms"] = READS_ON, MAX
    connections["closed_ms"] = connections["heard_ms"] = connections["settings"] = NONE
    for name, column in stored.items():
        connections[name][:known] = column
    connections["life"] = np.arange(len(connections))
    for name in _LINKS:
        connections[name] = NONE


def _larger(machines: Machines) -> Machines:
    """Pools of twice the size, where time fills them."""
    larger = machines._replace(
        decisions=_doubled(machines.decisions),
        ids=_doubled(machines.ids),
        ids_by=_heads(2 * len(machines.ids)),
        queued=_doubled(machines.queued),
    )
    link_ids(larger)
    return larger


def _doubled(pool: Records) -> Records:
    doubled = np.empty(2 * len(pool), pool.dtype)
    doubled[: len(pool)] = pool
    return doubled


def _from_arrays(state: SlotState, machines: Machines) -> None:
    """The columns of what is left: no lives that are over, no producers that closed."""
    connections = machines.connections
    stay = (connections["is_open"] != 0) | (connections["seq"] > 0)
    place = np.cumsum(stay) - 1
    producers, ids, queued, conditions = order(machines, np.flatnonzero(stay))
    named = machines.named[: machines.used[NAMES]]
    is_named = np.zeros(len(machines.producers), np.bool_)
    is_named[named["producer"]] = True
    pool, limiters = machines.producers, machines.limiters
    has_numbers = is_named | ((limiters["marks"] > 0) | (limiters["unmarks"] > 0)).any(axis=1)
    kept = (pool["is_open"][producers[0]] != 0) | has_numbers[producers[0]]
    of_producers, owners = producers[0][kept], producers[1][kept]
    row = np.full(len(pool), NONE, np.int64)
    row[of_producers] = np.arange(len(of_producers))
    named = named[row[named["producer"]] != NONE]
    tables = state.machines
    if not stay.all():
        state.connection = state.connection.filter(pa.array(stay))
    tables["connections"] = _columns(connections, stay, tables["connections"])
    tables["producers"] = _columns(pool, of_producers, tables["producers"], place[owners])
    tables["limiters"] = _limiters(limiters[of_producers])
    tables["ids"] = _columns(machines.ids, ids, tables["ids"])
    tables["ids"]["producer"] = row[tables["ids"]["producer"]]
    tables["queued"] = _columns(machines.queued, queued[0], tables["queued"], place[queued[1]])
    tables["conditions"] = _columns(machines.conditions, conditions[0], tables["conditions"], place[conditions[1]])
    of_named = tables["producers"]["connection"][row[named["producer"]]]
    tables["named"] = _columns(named, np.argsort(of_named, kind="stable"), tables["named"])
    tables["named"]["connection"] = np.sort(of_named, kind="stable")
    tables["named"]["producer"] = row[tables["named"]["producer"]]
    state.drop_unused()


def _columns(pool: Records, rows: NDArray[Any], like: Columns, connection: Ints | None = None) -> Columns:
    return {
        name: connection if name == "connection" and connection is not None else pool[_field(name)][rows]
        for name in like
    }


def _field(name: str) -> str:
    return "life" if name == "connection" else name


def _limiters(limiters: Records) -> Columns:
    """Those that are not as they began."""
    is_changed = np.zeros(limiters.shape, np.bool_)
    for name in ("marked", "released", "marks", "unmarks"):
        is_changed |= limiters[name] != 0
    producer, code = np.nonzero(is_changed)
    return {"producer": producer, "code": code} | {name: limiters[name][producer, code] for name in LIMITER_FIELDS}


@cache
def warm_up() -> None:
    """Compile the kernels (about 30 s, once), or load them from disk, before the first batch needs them."""
    state = SlotState(done_ms=1)
    rows = pa.Table.from_pylist([{"kind": "connect", "at_ms": 0, "connection": "c", "by_marks": False}], ROWS)
    fed = operations_of(rows, np.zeros(1, np.int64), state.connection, state.names, obedient=False)
    state.connection = fed.connection
    link_ids(run_machines(state, fed, BrokerSettings(), 1, obedient=False))
