"""Kind broker on the array form: fields become arrays here, the rest is the kernels'; between operations the state of
all connections is in the columns in which the operator keeps it.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from headgate.conformance.adapters.protocol_broker import INPUTS, PROBE, BrokerOperations
from headgate.core.kernels.columns import Records
from headgate.core.kernels.protocol.types import (
    BUCKET,
    COMMAND,
    CONNECT,
    MARK,
    NONE,
    OPERATION,
    PAUSE,
    RECEIPT,
    TRIP,
    TURN,
)
from headgate.core.numbers import MAX, MIN
from headgate.core.protocol.broker.broker_metrics import BrokerMetrics
from headgate.core.protocol.broker.checks import is_time
from headgate.core.protocol.broker.connection import Connection
from headgate.core.protocol.broker.outputs import BadInput, Cause, CommandKind
from headgate.protocol.array_form import result_of, run_machines
from headgate.protocol.operations import Operations
from headgate.protocol.plain import read
from headgate.protocol.state import SlotState
from headgate.protocol.telling import counters_of

Fields = Mapping[str, Any]
_NOWHERE = -1
_OWN_TIME = (BadInput.BAD_TIME, BadInput.UNKNOWN_CONNECTION)
_KINDS, _CAUSES, _ERRORS = list(CommandKind), list(Cause), list(BadInput)


class ArrayBroker(BrokerOperations):
    """On the kernels."""

    def __init__(self, config: Fields) -> None:
        super().__init__(config)
        self._state = SlotState()

    def _advance(self, at_ms: int) -> list[Any]:
        state = self._state
        order = np.argsort(np.array(state.connection.to_pylist(), object), kind="stable")
        turns = np.zeros(len(order), TURN)
        turns["connection"] = order
        nothing = (np.empty(0, OPERATION), np.empty(0, TRIP), np.empty(0, BUCKET))
        return self._run(_fed(state, turns, *nothing), at_ms, at_ms)

    def _feed(self, op: str, given: Fields) -> list[Any]:
        state, name = self._state, given["conn"]
        connections, names = state.connection.to_pylist(), state.names.to_pylist()
        for texts, text in ((connections, name), (names, given.get("topic"))):
            if isinstance(text, str) and text not in texts:
                texts.append(text)
        trips, buckets = _trips(given)
        operation = _operation(op, given)
        operation["connection"] = connections.index(name)
        operation["topic"] = names.index(given["topic"]) if isinstance(given.get("topic"), str) else NONE
        turns = np.array([(connections.index(name), 0, 1)], TURN)
        state.connection, state.names = pa.array(connections, pa.string()), pa.array(names, pa.string())
        fed = _fed(state, turns, operation, trips, buckets)
        told = self._run(fed, given["at"], _NOWHERE)
        if op == PROBE and is_time(given["at"]) and name in state.connection.to_pylist():
            told += self._probed(name)
        return told

    def _probed(self, name: str) -> list[Any]:
        *_, plain = read(self._state, self._state.connection.to_pylist().index(name))
        if plain is None:
            return []
        connection = Connection.from_state(plain, BrokerMetrics())
        return [{"out": PROBE, "at": connection.now_ms, "conn": name, **connection.view()}]

    def _run(self, fed: Operations, at_ms: Any, until_ms: int) -> list[Any]:
        result = result_of(run_machines(self._state, fed, self._settings, until_ms, obedient=False))
        self._state.machines["connections"]["closed_ms"][:] = NONE  # vectors know of no copies of a whole life
        _, *rose = counters_of(result, fed)
        for name, of_name, value in zip(*(column.to_pylist() for column in rose), strict=True):
            self.metrics.add(name, tuple(of_name), value)
        connections = fed.connection.to_pylist()
        told = [_decision(row, connections[row["connection"]]) for row in result.decisions]
        for letter in result.letters:
            error, own = _ERRORS[letter["error"]], connections[fed.turns[0]["connection"]]
            at = at_ms if error in _OWN_TIME else int(letter["at_ms"])
            told.append({"out": "rejected", "at": at, "conn": own, "error": error})
        return told


def _fed(state: SlotState, turns: Records, operations: Records, trips: Records, buckets: Records) -> Operations:
    nowhere = np.empty(0, np.int64)
    return Operations(state.connection, state.names, turns, operations, trips, buckets, nowhere, nowhere)


def _operation(op: str, given: Fields) -> Records:
    """Fields that cannot be what they have to be are as if they were absent."""
    operation = np.zeros(1, OPERATION)
    trips, buckets = given.get("trips") or (), _pairs(given.get("buckets"))
    kind, producer = list(INPUTS).index(op), _integer(given.get("producer"), MIN, None)
    flag = given.get("supports") is True if kind == CONNECT else given.get("trigger") is not False
    number = _integer(given.get("req" if kind == RECEIPT else "n"), 0, NONE)
    fields = {
        "at_ms": _integer(given["at"], 0, NONE),
        "kind": kind,
        "has_producer": producer is not None,
        "producer": producer or 0,
        "number": number,
        "reason": _integer(given.get("reason"), MIN, NONE),
        "name": NONE,
        "flag": flag,
        "trips": len(trips) if kind == MARK else 0,
        "second_trip": 1,
        "first_bucket": 2 * len(trips),
        "buckets": len(buckets),
    }
    for name, value in fields.items():
        operation[name] = value
    return operation


def _trips(given: Fields) -> tuple[Records, Records]:
    """Trips with room for two buckets each, and behind them those of a quote."""
    told = given.get("trips") or ()
    trips, buckets = np.zeros(len(told), TRIP), np.zeros(2 * len(told) + 2, BUCKET)
    for place, trip in enumerate(told):
        pairs = _pairs(trip.get("buckets"))
        reason, ordinal = _integer(trip.get("reason"), MIN, NONE), _integer(trip.get("n"), 1, 0)
        trips[place] = (reason, ordinal, 2 * place, len(pairs))
        _lay(buckets[2 * place :], pairs)
    _lay(buckets[2 * len(told) :], _pairs(given.get("buckets")))
    return trips, buckets


def _pairs(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []


def _lay(buckets: Records, pairs: list[Any]) -> None:
    for place, pair in enumerate(pairs[:2]):
        if isinstance(pair, list | tuple) and len(pair) == 2:
            balance, rate = _integer(pair[0], MIN, None), _integer(pair[1], 1, 0)
            buckets[place] = (0, 0) if balance is None else (balance, rate)


def _integer(value: Any, least: int, other: int | None) -> Any:
    return value if type(value) is int and least <= value <= MAX else other


def _decision(row: Any, name: str) -> dict[str, Any]:
    """A decision as JSON."""
    of = {field: int(row[field]) for field in row.dtype.names}
    about = {"at": of["at_ms"], "conn": name}
    if of["kind"] == COMMAND:
        what = {"req": of["request_id"], "producer": of["producer"], "reason": of["reason"], "pause_ms": of["pause_ms"]}
        return {"out": "command", **about, **what, "kind": _KINDS[of["command"]]}
    if of["kind"] == PAUSE:
        producer = None if of["producer"] == NONE else of["producer"]
        return {"out": "pause", **about, "cause": _CAUSES[of["cause"]], "reason": of["reason"], "producer": producer}
    return {"out": "resume", **about, "off_ms": of["off_ms"]}
