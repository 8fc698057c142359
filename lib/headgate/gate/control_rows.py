"""What limiters say, as JSON: an object is an input of throttle-protocol 6, without the time, which is the gate's."""

import difflib
import json
from collections.abc import Callable, Mapping
from typing import Any

from headgate.core.protocol.broker import inputs
from headgate.core.protocol.broker.inputs import Trip
from headgate.errors import InvalidArgument
from headgate.gate.machine_feed import Making
from headgate.protocol import feeding

_OF_CLIENTS = {inputs.Connect, inputs.Receipt, inputs.Close}
KINDS: Mapping[str, type[Any]] = {name: kind for name, kind in feeding.KINDS.items() if kind not in _OF_CLIENTS}
"""What may be told. Connections and receipts come from clients themselves."""


def _buckets(value: Any) -> list[tuple[Any, Any]]:
    return [(bucket.get("balance"), bucket.get("rate")) for bucket in _objects(value, "buckets", {"balance", "rate"})]


def _trips(value: Any) -> list[Trip]:
    trips = _objects(value, "trips", {"reason", "ordinal", "buckets"})
    return [Trip(trip.get("reason"), trip.get("ordinal"), _buckets(trip.get("buckets"))) for trip in trips]  # type: ignore[arg-type]


def _as_it_is(value: Any) -> Any:
    return value


_FIELDS: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    "producer": ("producer_id", _as_it_is),
    "topic": ("topic", _as_it_is),
    "trips": ("trips", _trips),
    "trigger": ("trigger", lambda value: value is not False),
    "reason": ("reason", _as_it_is),
    "ordinal": ("ordinal", _as_it_is),
    "buckets": ("buckets", _buckets),
}
"""The name on the wire, and how a value is read, by the field of an input."""


def row_of(line: bytes) -> dict[str, Any]:
    """The JSON object on a line. Raises InvalidArgument for another value, and for what is no JSON."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidArgument(f"got no JSON ({error}); allowed: one JSON object a line") from error
    if not isinstance(row, dict):
        raise InvalidArgument(f"got a {type(row).__name__}; allowed: one JSON object a line")
    return row


def told(row: Mapping[str, Any]) -> tuple[str, Making]:
    """The connection that an input is for, and how it is made. Its values are the machine's to check.

    Raises InvalidArgument for another kind, unknown names, and lists that are none.
    """
    kind = row.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise InvalidArgument(f"kind: got {kind!r}; allowed are {', '.join(KINDS)}")
    made = KINDS[kind]
    fields = {name: _FIELDS[name] for name in made.__slots__ if name != "at_ms"}
    _refuse_unknown(row, {"kind", "connection", *(name for name, _ in fields.values())}, kind)
    values = {field: read(row.get(name)) for field, (name, read) in fields.items()}
    connection = row.get("connection")
    if not isinstance(connection, str):
        raise InvalidArgument(f"connection: got {connection!r}; allowed: the name of a connection")
    return connection, lambda at_ms: made(at_ms=at_ms, **values)


def _objects(value: Any, name: str, keys: set[str]) -> list[Mapping[str, Any]]:
    items = [] if value is None else value
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise InvalidArgument(f"{name}: got {value!r}; allowed: a list of objects with {', '.join(sorted(keys))}")
    for item in items:
        _refuse_unknown(item, keys, name)
    return items


def _refuse_unknown(row: Mapping[str, Any], known: set[str], where: str) -> None:
    for name in row:
        if name not in known:
            near = difflib.get_close_matches(name, sorted(known), n=1)
            remedy = f"did you mean {near[0]}?" if near else "leave it out"
            raise InvalidArgument(f"{where}: got {name!r}; allowed are {', '.join(sorted(known))}; {remedy}")
