"""ROWS as arrays, in the order in which they act: what the kernels of the machines are fed (throttle-protocol 7.1)."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.columns import encoded, places, whole
from headgate.core.kernels.columns import Flags, Ints, Records
from headgate.core.kernels.protocol.types import (
    BUCKET,
    CLOSE,
    CONNECT,
    MARK,
    NONE,
    OPEN,
    OPERATION,
    RECEIPT,
    TRIP,
    TURN,
)
from headgate.core.numbers import MAX, MIN
from headgate.protocol.feeding import KINDS

_KINDS = pa.array(list(KINDS))
_NO_KIND = 99
_REASON = 3
"""Characters at the end of a mark's event id that say its reason."""


class Operations(NamedTuple):
    """What a kernel is fed. connection, names: the state's, with those that are new at their end.

    turns: of all connections that rows are of. of_no_connection, of_no_kind: rows that reach no machine.
    """

    connection: pa.StringArray
    names: pa.StringArray
    turns: Records
    operations: Records
    trips: Records
    buckets: Records
    of_no_connection: Ints
    of_no_kind: Ints


def operations_of(
    rows: pa.Table, fed: Ints, connection: pa.StringArray, names: pa.StringArray, *, obedient: bool
) -> Operations:
    """The rows whose places are in `fed`. obedient: nobody says what clients there are, so marks open connections."""
    at_ms, rank = _ints(rows["at_ms"], MIN)[fed], _ints(pc.index_in(rows["kind"], _KINDS), _NO_KIND)[fed]
    by_marks = _flags(rows["by_marks"], null=False)[fed]
    connection, of_connection = _known(rows["connection"], connection, fed)
    kept = (of_connection != NONE) & (rank != _NO_KIND)
    if not obedient:
        kept &= ~(by_marks & ((rank == CONNECT) | (rank == CLOSE)))
    chosen = np.flatnonzero(kept)
    order = chosen[np.lexsort((rank[chosen], at_ms[chosen], of_connection[chosen]))]
    keys = np.stack([of_connection[order], at_ms[order], rank[order]])
    order = _ties_in_order(rows, fed, order, keys)
    ordered = fed[order]
    operations = np.zeros(len(order), OPERATION)
    operations["row"], operations["at_ms"], operations["kind"] = ordered, np.maximum(at_ms[order], NONE), rank[order]
    operations["connection"], operations["by_marks"] = of_connection[order], by_marks[order]
    names = _lay_fields(operations, rows, names, obedient=obedient)
    trips, buckets = _lay_trips(operations, rows)
    operations = _together(operations, rows, trips)
    return Operations(
        connection=connection,
        names=names,
        turns=_turns(operations, np.unique(of_connection[of_connection != NONE])),
        operations=operations,
        trips=trips,
        buckets=buckets,
        of_no_connection=fed[of_connection == NONE],
        of_no_kind=fed[(of_connection != NONE) & (rank == _NO_KIND)],
    )


def _ints(column: pa.ChunkedArray, null: int) -> Ints:
    numbers: Ints = column.fill_null(null).to_numpy().astype(np.int64) if column.null_count else column.to_numpy()
    return numbers.astype(np.int64, copy=False)


def _flags(column: pa.ChunkedArray, *, null: bool) -> Flags:
    flags: Flags = column.fill_null(null).to_numpy(zero_copy_only=False)
    return flags


def _known(column: pa.ChunkedArray, known: pa.StringArray, wanted: Ints) -> tuple[pa.StringArray, Ints]:
    """The values known with those that are new, and the place among them of each wanted row (NONE for null)."""
    distinct, codes = encoded(column)
    codes = codes[wanted]
    place = np.append(places(known, distinct), NONE)
    is_new = np.zeros(len(place), np.bool_)
    is_new[codes] = True
    is_new &= place == NONE
    is_new[-1] = False
    place[is_new] = np.arange(is_new.sum()) + len(known)
    if is_new.any():
        known = pa.concat_arrays([known, distinct.filter(pa.array(is_new[:-1]))])
    return known, place[codes]


def _ties_in_order(rows: pa.Table, fed: Ints, order: Ints, keys: Ints) -> Ints:
    """Rows of one connection, time and kind by nanoseconds (none last), producer (none first), ordinal or request id,
    event id.
    """
    same = (keys[:, 1:] == keys[:, :-1]).all(axis=0)
    tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
    if not len(tied):
        return order
    group = np.cumsum(~np.append(False, same))[tied]
    some = rows.select(["at_ns", "producer_id", "ordinal", "request_id", "event_id"]).take(pa.array(fed[order[tied]]))
    number = pc.if_else(pa.array(keys[2][tied] == RECEIPT), some["request_id"], some["ordinal"])
    table = pa.table(
        {
            "group": group,
            "at_ns": some["at_ns"].fill_null(MAX),
            "producer": some["producer_id"],
            "number": number,
            "event_id": some["event_id"].fill_null(""),
        }
    )
    sort_keys = [(name, "ascending", "at_start") for name in table.column_names]
    order[tied] = order[tied][pc.sort_indices(table, sort_keys).to_numpy()]
    return order


def _lay_fields(operations: Records, rows: pa.Table, names: pa.StringArray, *, obedient: bool) -> pa.StringArray:
    """The plain fields; returns the names with those that are new."""
    place, kind = operations["row"], operations["kind"]
    operations["producer"] = _ints(rows["producer_id"], 0)[place]
    operations["has_producer"] = _flags(rows["producer_id"].is_valid(), null=False)[place]
    ordinal, request_id = _ints(rows["ordinal"], 0)[place], _ints(rows["request_id"], NONE)[place]
    operations["number"] = np.where(kind == RECEIPT, request_id, ordinal)
    operations["reason"] = _ints(rows["reason"], NONE)[place]
    supports, trigger = _flags(rows["supports_throttle"], null=False), _flags(rows["trigger"], null=True)
    supports = supports[place] | (operations["by_marks"] != 0)
    operations["flag"] = np.where(kind == CONNECT, supports, trigger[place])
    operations["topic"] = operations["name"] = NONE
    named = np.flatnonzero((kind == OPEN) | (operations["by_marks"] != 0) | obedient)
    for field, column in (("topic", "topic"), ("name", "producer")):
        some = rows[column].take(pa.array(place[named]))
        names, operations[field][named] = _known(some, names, np.arange(len(named)))
    return names


def _lay_trips(operations: Records, rows: pa.Table) -> tuple[Records, Records]:
    """Trips and buckets, those of marks first, then those of quotes, as they lie in memory."""
    lists = whole(rows["trips"])
    starts, counts = _spans(lists)
    place, is_mark = operations["row"], operations["kind"] == MARK
    operations["trips"] = np.where(is_mark, counts[place], 0)
    operations["first_trip"] = np.where(operations["trips"] > 0, starts[place], NONE)
    operations["second_trip"] = np.where(operations["trips"] > 1, starts[place] + 1, NONE)
    found = lists.values
    there = _flags(found.is_valid(), null=False)
    trips = np.empty(len(found), TRIP)
    trips["reason"] = np.where(there, _ints(found.field("reason"), NONE), NONE)
    trips["ordinal"] = np.where(there, _ints(found.field("ordinal"), 0), 0)
    trips["first_bucket"], trips["buckets"] = _spans(found.field("buckets"))
    trips["buckets"][~there] = 0
    of_trips, own = found.field("buckets").values, whole(rows["buckets"])
    starts, counts = _spans(own)
    operations["first_bucket"], operations["buckets"] = starts[place] + len(of_trips), counts[place]
    return trips, np.concatenate([_buckets(of_trips), _buckets(own.values)])


def _spans(lists: pa.ListArray) -> tuple[Ints, Ints]:
    """Where each list begins among all values, and how many it has: none where it is null."""
    offsets = lists.offsets.to_numpy().astype(np.int64)
    counts = np.diff(offsets)
    if lists.null_count:
        counts[lists.is_null().to_numpy(zero_copy_only=False)] = 0
    return offsets[:-1], counts


def _buckets(values: pa.StructArray) -> Records:
    buckets = np.empty(len(values), BUCKET)
    balance, rate = values.field("balance"), values.field("rate")
    buckets["balance"], buckets["rate"] = _ints(balance, 0), _ints(rate, 0)
    is_bucket = values.is_valid().to_numpy(zero_copy_only=False) & balance.is_valid().to_numpy(zero_copy_only=False)
    buckets["rate"][~is_bucket] = 0
    return buckets


def _together(operations: Records, rows: pa.Table, trips: Records) -> Records:
    """One operation of the marks that one publish brought about, which are two rows of `marks` at most."""
    is_mark = (operations["kind"] == MARK) & (operations["by_marks"] != 0)
    before, after = operations[:-1], operations[1:]
    may_join = is_mark[:-1] & is_mark[1:]
    for name in ("connection", "at_ms", "topic", "name"):
        may_join &= before[name] == after[name]
    seconds = np.flatnonzero(may_join) + 1
    reasons = trips["reason"][operations["first_trip"]] if len(trips) else np.empty(0, np.int64)
    seconds = seconds[reasons[seconds - 1] < reasons[seconds]]
    event_ids = whole(rows["event_id"].take(pa.array(operations["row"][np.concatenate([seconds - 1, seconds])])))
    publish = pc.utf8_slice_codeunits(event_ids, 0, -_REASON)
    seconds = seconds[pc.equal(publish[: len(seconds)], publish[len(seconds) :]).to_numpy(zero_copy_only=False)]
    operations["second_trip"][seconds - 1] = operations["first_trip"][seconds]
    operations["trips"][seconds - 1] = 2
    stay = np.ones(len(operations), np.bool_)
    stay[seconds] = False
    return operations[stay] if len(seconds) else operations


def _turns(operations: Records, connections: Ints) -> Records:
    turns = np.empty(len(connections), TURN)
    turns["connection"] = connections
    turns["first"] = np.searchsorted(operations["connection"], connections)
    turns["end"] = np.searchsorted(operations["connection"], connections, side="right")
    return turns
