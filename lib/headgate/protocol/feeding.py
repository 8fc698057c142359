"""From rows to the inputs of a connection's machine, in the order in which they act (throttle-protocol 7.1)."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from headgate.core.numbers import MAX
from headgate.core.protocol.broker import inputs
from headgate.core.protocol.broker.inputs import NULL, Input, Trip
from headgate.core.protocol.reasons import COOPERATIVE, Reason
from headgate.protocol.numbering import Numbering

Row = Mapping[str, Any]

KINDS: dict[str, type[Any]] = {
    "connect": inputs.Connect,
    "open": inputs.Open,
    "publish": inputs.Publish,
    "mark": inputs.Mark,
    "receipt": inputs.Receipt,
    "quote": inputs.Quote,
    "condition_set": inputs.ConditionSet,
    "unmark": inputs.Unmark,
    "condition_clear": inputs.ConditionClear,
    "close_producer": inputs.CloseProducer,
    "close": inputs.Close,
}


def in_order(rows: Iterable[Row]) -> list[Row]:
    """Rows by time, rank, nanoseconds (none last), producer (none first), ordinal or request id, event id.

    Unknown kinds are last.
    """
    return sorted(rows, key=_place)


def _place(row: Row) -> tuple[int, int, int, int, int, str]:
    kind = KINDS.get(row["kind"])
    number = row["request_id"] if kind is inputs.Receipt else row["ordinal"]
    return (
        _null_first(row["at_ms"]),
        MAX if kind is None else kind.RANK,
        MAX if row["at_ns"] is None else row["at_ns"],
        _null_first(row["producer_id"]),
        _null_first(number),
        row["event_id"] or "",
    )


def _null_first(value: int | None) -> int:
    return NULL if value is None else value


def together(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """The rows of one input each: marks that one publish brought about are several rows of `marks`."""
    for is_mark, some in groupby(rows, lambda row: bool(row["by_marks"]) and row["kind"] == "mark"):
        if not is_mark:
            yield from ([row] for row in some)
            continue
        one: list[Row] = []
        for row in some:
            if one and not (_publish(one[0]) == _publish(row) and _reason(one[-1]) < _reason(row)):
                yield one
                one = []
            one.append(row)
        yield one


def _publish(row: Row) -> tuple[Any, ...]:
    """What rows of one publish have in common: all of the event id but the reason at its end."""
    return row["topic"], row["producer"], row["event_id"][:-3]


def _reason(row: Row) -> int:
    code: int = row["trips"][0]["reason"]
    return code


def input_of(rows: list[Row], numbering: Numbering) -> Input | None:
    """The input that rows make, with what its numbering found where they come from marks; None for an unknown kind."""
    row = rows[0]
    kind = KINDS.get(row["kind"])
    if kind is None:
        return None
    if row["by_marks"]:
        return _numbered(rows, numbering)
    if kind is inputs.Open and row["producer"] is not None and row["producer_id"] is not None:
        numbering.declare(row["topic"], row["producer"], row["producer_id"])
    values = {name: _VALUES[name](row) for name in kind.__slots__}
    return kind(**values)  # type: ignore[no-any-return]


_VALUES: dict[str, Any] = {
    "at_ms": lambda row: row["at_ms"],
    "supports": lambda row: bool(row["supports_throttle"]),
    "producer": lambda row: row["producer_id"],
    "topic": lambda row: row["topic"],
    "trips": lambda row: [_trip(trip) for trip in row["trips"] or ()],
    "trigger": lambda row: row["trigger"] is not False,
    "request_id": lambda row: row["request_id"],
    "reason": lambda row: row["reason"],
    "ordinal": lambda row: row["ordinal"],
    "buckets": lambda row: _buckets(row["buckets"]),
}


def _trip(trip: Row | None) -> Trip:
    return Trip(None, None) if trip is None else Trip(trip["reason"], trip["ordinal"], _buckets(trip["buckets"]))  # type: ignore[arg-type]


def _buckets(buckets: list[Row | None] | None) -> list[tuple[Any, Any]]:
    return [(None, None) if bucket is None else (bucket["balance"], bucket["rate"]) for bucket in buckets or ()]


def _numbered(rows: list[Row], numbering: Numbering) -> Input:
    row = rows[0]
    at_ms, kind = row["at_ms"], row["kind"]
    if kind == "connect":
        return inputs.Connect(at_ms, supports=True)
    if kind == "close":
        return inputs.Close(at_ms)
    producer = None if row["producer"] is None else numbering.id_of(row["topic"], row["producer"])
    if kind == "mark":
        trips = [trip for one in rows for trip in one["trips"]]
        numbered = [
            Trip(trip["reason"], numbering.mark(producer, trip["reason"]), _buckets(trip["buckets"])) for trip in trips
        ]
        return inputs.Mark(at_ms, producer, numbered, row["trigger"] is not False)  # type: ignore[arg-type]
    reason = Reason(row["reason"])
    if reason in COOPERATIVE:
        return inputs.Unmark(at_ms, producer, reason, numbering.unmark(producer, reason))  # type: ignore[arg-type]
    if kind == "condition_set":
        return inputs.ConditionSet(at_ms, reason, numbering.begin(reason), producer)
    return inputs.ConditionClear(at_ms, reason, numbering.end(reason))
