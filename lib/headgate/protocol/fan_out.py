"""Rows through the router: marks for all producers of a topic, before connections are fed (throttle-protocol 7.1)."""

import json
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.core.kernels.columns import Flags, Ints
from headgate.core.kernels.protocol.types import NONE
from headgate.core.numbers import MAX
from headgate.core.protocol.broker.checks import is_time
from headgate.core.protocol.broker.inputs import NULL, CloseProducer, Connect, Input, Mark, Open, Unmark
from headgate.core.protocol.broker.router import Routed, Router
from headgate.protocol.feeding import KINDS, Row, input_of, together
from headgate.protocol.numbering import Numbering
from headgate.protocol.schemas import ROWS
from headgate.protocol.state import SlotState

_LIFE = pa.array(["connect", "close"])
_ROUTED = pa.array(["connect", "close", "open", "close_producer", "mark", "unmark"])
_TAKEN = frozenset(_ROUTED.to_pylist())
_WHO = ["kind", "connection", "producer", "by_marks"]
_PLACE = "place"
_DIGITS, _NO_REASON = 12, " 00"
"""Of an event id: a place in the order, and an end that `feeding.together` leaves out: no two are of one publish."""


def fanned_out(
    state: SlotState, rows: pa.Table, fed: Ints, horizon_ms: int, *, needs_buckets: bool, obedient: bool
) -> tuple[pa.Table, Ints]:
    """The rows at `fed` with each mark at every producer of its topic: all rows, the places to feed now.

    The router's state is kept in `state.fan_out`, as JSON; "" at first. Rows of one millisecond are fed in one call,
    but for late ones, so that their cut into batches does not show. Marks and unmarks that the router takes are in
    other rows than they came in: with ids and ordinals, or, for obedient clients, with names, and then counted as they
    are fed. horizon_ms: of `silence.Silence`.
    """
    chosen = fed[_is_routed(rows.select(_WHO).take(pa.array(fed)), obedient=obedient)]
    if state.fan_out and not len(chosen):
        return rows, fed
    stage = _Stage(state, horizon_ms, needs_buckets=needs_buckets, obedient=obedient)
    stage.run(rows.take(pa.array(chosen)).append_column(_PLACE, pa.array(chosen)).to_pylist())
    made = pa.Table.from_pylist(stage.made, ROWS)
    stays = np.setdiff1d(fed, np.array(stage.replaced, np.int64))
    places = np.append(stays, np.arange(len(rows), len(rows) + len(made)))
    state.fan_out = stage.stored()
    return pa.concat_tables([rows, made]).combine_chunks(), places


def _is_routed(rows: pa.Table, *, obedient: bool) -> Flags:
    """Rows that say who is open or held. Of obedient clients every row of `marks` that names a producer opens it."""
    wanted = pc.is_in(rows["kind"], value_set=_ROUTED)
    if obedient:
        wanted = pc.or_(wanted, pc.is_valid(rows["producer"]))
    else:
        wanted = pc.and_not(wanted, pc.and_(rows["by_marks"], pc.is_in(rows["kind"], value_set=_LIFE)))
    flags: Flags = pc.and_(wanted, pc.is_valid(rows["connection"])).to_numpy()
    return flags


class _Stage:
    """One pass over rows in the order in which they act, over all connections.

    made: rows instead of those at `replaced`.
    """

    def __init__(self, kept: SlotState, horizon_ms: int, *, needs_buckets: bool, obedient: bool) -> None:
        state = json.loads(kept.fan_out or "{}")
        stored = state.get("router")
        self._router = (
            Router(needs_buckets=needs_buckets)
            if stored is None
            else Router.from_state(stored, needs_buckets=needs_buckets)
        )
        self._numbering = {name: Numbering.from_state(one) for name, one in state.get("numbering", {}).items()}
        self._names = {
            (connection, id_): (topic, name)
            for connection, one in state.get("numbering", {}).items()
            for topic, name, id_ in one.get("ids", ())
        }
        self._obedient = obedient
        self._horizon_ms = horizon_ms
        self._closings_ms = kept.closings_ms()
        self.made: list[Row] = []
        self.replaced: list[int] = []

    def stored(self) -> str:
        """The state for the next batch."""
        numbering = {name: one.state() for name, one in self._numbering.items()}
        return json.dumps({"router": self._router.state(), "numbering": numbering}, separators=(",", ":"))

    def run(self, rows: list[Row]) -> None:
        for connection, some in groupby(sorted(rows, key=_place), lambda row: row["connection"]):
            for one in together(some):
                self._take(connection, one)

    def _take(self, connection: str, rows: list[Row]) -> None:
        row = rows[0]
        if row["kind"] in {"connect", "open"} and self._is_over(connection, row["at_ms"]):
            return
        numbering = self._numbering.setdefault(connection, Numbering())
        if self._obedient:
            for made_up in self._made_up(connection, row, numbering):
                self._router.feed(connection, made_up)
        given = input_of(rows, numbering) if row["kind"] in _TAKEN else None
        if given is not None:
            self._keep(self._router.feed(connection, given), given, rows)
        if not self._router.is_connected(connection):
            del self._numbering[connection]
        elif isinstance(given, CloseProducer) and not self._router.is_open(connection, given.producer):
            numbering.forget(given.producer)

    def _is_over(self, connection: str, at_ms: int) -> bool:
        """Whether the connection has closed since, as its machine has it."""
        closed_ms = self._closings_ms.get(connection, NONE)
        if not self._router.is_connected(connection):
            closed_ms = max(closed_ms, self._horizon_ms)
        return is_time(at_ms) and at_ms <= closed_ms

    def _made_up(self, connection: str, row: Row, numbering: Numbering) -> Iterator[Input]:
        """What obedient clients did before a row of `marks`, as the forms have it."""
        is_over = self._is_over(connection, row["at_ms"])
        if row["kind"] not in {"connect", "close"} and not is_over and not self._router.is_connected(connection):
            yield Connect(row["at_ms"], supports=True)
        if row["producer"] is not None and numbering.id_of(row["topic"], row["producer"]) is None:
            id_ = numbering.add(row["topic"], row["producer"])
            self._names[connection, id_] = row["topic"], row["producer"]
            yield Open(row["at_ms"], id_, row["topic"])

    def _keep(self, routed: Iterable[Routed], given: Input, rows: list[Row]) -> None:
        goes_on = False
        for connection, one in routed:
            if one is given:
                goes_on = True
            elif isinstance(one, Mark | Unmark):
                self.made.append(self._row_of(connection, one, rows[0]["at_ns"]))
        if not goes_on:
            self.replaced += [row[_PLACE] for row in rows]

    def _row_of(self, connection: str, one: Mark | Unmark, at_ns: int | None) -> Row:
        """ROWS of what a machine is to be fed. at_ns: of the row that it is made of."""
        row: dict[str, Any] = dict.fromkeys(ROWS.names)
        row |= {"event_id": f"{len(self.made):0{_DIGITS}}{_NO_REASON}", "at_ms": one.at_ms, "connection": connection}
        row["at_ns"] = at_ns
        row["by_marks"] = self._obedient
        if self._obedient:
            row["topic"], row["producer"] = self._names[connection, one.producer]
        else:
            row["producer_id"] = one.producer
        if isinstance(one, Mark):
            return row | {"kind": "mark", "trips": [_trip(trip) for trip in one.trips], "trigger": one.trigger}
        return row | {"kind": "unmark", "reason": int(one.reason), "ordinal": None if self._obedient else one.ordinal}


def _place(row: Row) -> tuple[int, int, int, str, int, int, str]:
    """Where a row acts, over all connections; of one connection as `feeding.in_order` has it."""
    kind = KINDS[row["kind"]]
    producer, ordinal = (NULL if row[name] is None else row[name] for name in ("producer_id", "ordinal"))
    at_ms = NULL if row["at_ms"] is None else row["at_ms"]
    at_ns = MAX if row["at_ns"] is None else row["at_ns"]
    return (at_ms, kind.RANK, at_ns, row["connection"], producer, ordinal, row["event_id"] or "")


def _trip(trip: Any) -> dict[str, Any]:
    buckets = [{"balance": balance, "rate": rate} for balance, rate in trip.buckets]
    return {"reason": int(trip.reason), "ordinal": trip.ordinal, "buckets": buckets}
