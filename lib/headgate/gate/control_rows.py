"""What limiters say and hear, as JSON: an object is an input of throttle-protocol 6, without the time, which is the
gate's, and with names of producers and reasons.
"""

import difflib
import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from headgate.core.protocol.broker import inputs
from headgate.core.protocol.broker.gate import condition_hold, producer_hold
from headgate.core.protocol.broker.inputs import Trip
from headgate.core.protocol.broker.outputs import ReadsResumed
from headgate.core.protocol.reasons import Reason
from headgate.core.reasons import HeldReason, protocol_reason
from headgate.core.state import PlainData
from headgate.errors import InvalidArgument
from headgate.gate.events import Event, Joined, Left, Paused
from headgate.gate.machine_feed import Making
from headgate.gate.producers import ProducerName, Producers
from headgate.gate.session import MAX_NAME_BYTES
from headgate.protocol import feeding

_OF_CLIENTS = {inputs.Connect, inputs.Receipt, inputs.Close}
KINDS: Mapping[str, type[Any]] = {name: kind for name, kind in feeding.KINDS.items() if kind not in _OF_CLIENTS}
"""What may be told. Connections and receipts come from clients themselves."""
REASONS: Mapping[HeldReason, Reason] = {
    held: reason for reason in Reason if (held := protocol_reason(reason)) is not None
}
"""By the names that screens and metrics have for them."""


def _buckets(value: Any) -> list[tuple[Any, Any]]:
    return [(bucket.get("balance"), bucket.get("rate")) for bucket in _objects(value, "buckets", {"balance", "rate"})]


def _trips(value: Any) -> list[Trip]:
    trips = _objects(value, "trips", {"reason", "ordinal", "buckets"})
    return [
        Trip(_reason(trip.get("reason")), trip.get("ordinal"), _buckets(trip.get("buckets")))  # type: ignore[arg-type]
        for trip in trips
    ]


def _reason(value: Any) -> Reason:
    if value not in list(REASONS):
        raise InvalidArgument(f"reason: got {_cut(value)}; allowed are {', '.join(REASONS)}")
    return REASONS[value]


def _trigger(value: Any) -> bool:
    if value is not None and not isinstance(value, bool):
        raise InvalidArgument(f"trigger: got {_cut(value)}; allowed: true, which it is where it is left out, or false")
    return value is not False


def _as_it_is(value: Any) -> Any:
    return value


_FIELDS: Mapping[str, Callable[[Any], Any]] = {
    "trips": _trips,
    "trigger": _trigger,
    "reason": _reason,
    "ordinal": _as_it_is,
    "buckets": _buckets,
}
"""How a value is read, by the field of an input. Producers have a name and a topic in its place."""
SHOWN_CHARS = 100
_NAME = ("topic", "producer")
_OF_ALL = {inputs.ConditionSet, inputs.Unmark}
"""What may name no producer."""


def row_of(line: bytes) -> dict[str, Any]:
    """The JSON object on a line. Raises InvalidArgument for another value, and for what is no JSON."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidArgument(f"got no JSON ({error}); allowed: one JSON object a line") from error
    if not isinstance(row, dict):
        raise InvalidArgument(f"got a {type(row).__name__}; allowed: one JSON object a line")
    return row


def connection_of(row: Mapping[str, Any]) -> str:
    """Raises InvalidArgument where it names none."""
    return _text(row, "connection", "the name of a connection")


class Opened(NamedTuple):
    """A producer opened."""

    connection: str
    producer_id: int
    name: ProducerName


class Told(NamedTuple):
    """An input to a connection."""

    connection: str
    make: Making


class Unmarked(NamedTuple):
    """An unmark of all producers of a connection."""

    connection: str
    reason: Reason
    ordinal: Any


class Unopened(NamedTuple):
    """An input that names a producer which is not open, where the machine would take it for one that names none."""

    connection: str


def told(row: Mapping[str, Any], producers_of: Callable[[str], Producers]) -> Opened | Told | Unmarked | Unopened:
    """What a limiter says. Numbers are the machine's to check, which refuses most that are for no open producer, too.

    Raises InvalidArgument for another kind, unknown names, and values of another type.
    """
    kind = row.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise InvalidArgument(f"kind: got {_cut(kind)}; allowed are {', '.join(KINDS)}")
    made = KINDS[kind]
    connection = connection_of(row)
    fields = [name for name in made.__slots__ if name in _FIELDS]
    has_producer = "producer" in made.__slots__
    opens = ("producer_id",) if made is inputs.Open else ()
    _refuse_unknown(row, {"kind", "connection", *(_NAME if has_producer else ()), *opens, *fields}, kind)
    if opens:
        return Opened(connection, _number(row, "producer_id"), _name(row))
    values = {name: _FIELDS[name](row.get(name)) for name in fields}
    is_named = made not in _OF_ALL or any(name in row for name in _NAME)
    if made is inputs.Unmark and not is_named:
        return Unmarked(connection, **values)
    if has_producer:
        values["producer"] = producers_of(connection).id_of(_name(row)) if is_named else None
        if made is inputs.ConditionSet and is_named and values["producer"] is None:
            return Unopened(connection)
    return Told(connection, lambda at_ms: made(at_ms=at_ms, **values))


def _name(row: Mapping[str, Any]) -> ProducerName:
    producer = _text(row, "producer", "its name on the topic") if "producer" in row else ""
    return ProducerName(_text(row, "topic", "the full name of a topic"), producer)


def _text(row: Mapping[str, Any], name: str, allowed: str) -> str:
    value = row.get(name)
    if not isinstance(value, str):
        raise InvalidArgument(f"{name}: got {_cut(value)}; allowed: {allowed}")
    try:
        length = len(value.encode())
    except UnicodeEncodeError as error:
        raise InvalidArgument(
            f"{name}: got {_cut(value)}, which UTF-8 cannot encode; allowed: {allowed}, without half a surrogate pair"
        ) from error
    if length > MAX_NAME_BYTES:
        raise InvalidArgument(
            f"{name}: got {_cut(value)} of {length} bytes; allowed: {allowed}, of up to {MAX_NAME_BYTES} bytes"
        )
    return value


def _cut(value: Any) -> str:
    """It as an error shows it."""
    written = repr(value)
    return written if len(written) <= SHOWN_CHARS else f"{written[:SHOWN_CHARS]}..."


def _number(row: Mapping[str, Any], name: str) -> int:
    value = row.get(name)
    if type(value) is not int:
        raise InvalidArgument(f"{name}: got {_cut(value)}; allowed: an integer from 0 to 2^63-1")
    return value


@lru_cache(maxsize=1)
def event_line(connection: str, event: Event) -> bytes | None:
    """`event_row` as a line, which is made once for all who hear of the event in turn."""
    row = event_row(connection, event)
    return None if row is None else line_of(row)


def line_of(row: Mapping[str, Any]) -> bytes:
    """A row as it is sent."""
    return json.dumps(row).encode() + b"\n"


def event_row(connection: str, event: Event) -> dict[str, Any] | None:
    """What limiters hear of an event; None for one that is the client's alone."""
    match event:
        case Joined(at_ms, supports):
            said: dict[str, Any] = {"event": "joined", "at_ms": at_ms, "supports_throttle": supports}
        case Left(at_ms):
            said = {"event": "left", "at_ms": at_ms}
        case Paused(at_ms, cause, reason, producer):
            said = {"event": "reads_paused", "at_ms": at_ms, "cause": cause, "reason": protocol_reason(reason)}
            if producer is not None:
                said |= producer._asdict()
        case ReadsResumed(at_ms, off_ms):
            said = {"event": "reads_resumed", "at_ms": at_ms, "off_ms": off_ms}
        case _:
            return None
    return said | {"connection": connection}


def probe_row(view: PlainData, producers: Producers) -> dict[str, Any]:
    """The view of a connection (throttle-protocol 19), with names."""
    reasons = {condition_hold(reason): {"reason": held} for held, reason in REASONS.items()}
    named = {int(id_): producers.name_of(int(id_))._asdict() for id_ in view["producers"]}
    holds = reasons | {producer_hold(id_): name for id_, name in named.items()}
    return dict(view) | {
        "holds": [holds[hold] for hold in view["holds"]],
        "producers": [
            named[int(id_)] | one | {"held": [protocol_reason(Reason(code)) for code in one["held"]]}
            for id_, one in view["producers"].items()
        ],
    }


def _objects(value: Any, name: str, keys: set[str]) -> list[Mapping[str, Any]]:
    items = [] if value is None else value
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise InvalidArgument(f"{name}: got {_cut(value)}; allowed: a list of objects with {', '.join(sorted(keys))}")
    for item in items:
        _refuse_unknown(item, keys, name)
    return items


def _refuse_unknown(row: Mapping[str, Any], known: set[str], where: str) -> None:
    for name in row:
        if name not in known:
            near = difflib.get_close_matches(name, sorted(known), n=1)
            remedy = f"did you mean {near[0]}?" if near else "leave it out"
            raise InvalidArgument(f"{where}: got {_cut(name)}; allowed are {', '.join(sorted(known))}; {remedy}")
