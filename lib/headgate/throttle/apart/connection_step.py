"""What connections do: conditions 10.1 to 10.3 in the order of time, apart from publishes and all else.

The rules are the core's (`connection_rules`); here is only which connections there are (rate-limiters 10).
"""

import json
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from headgate.arrow.columns import encoded, numbers
from headgate.arrow.schemas import DEAD_LETTERS
from headgate.core.connections.connection_rules import (
    BUFFER,
    CONDITIONS,
    COOLDOWN,
    THREAD_BYTES,
    Connection,
    ConnectionRules,
)
from headgate.core.kernels.columns import NO_VALUE
from headgate.core.publish.throttle_tracker import ThrottleType
from headgate.rows.kinds import CONNECTION
from headgate.throttle.apart.connection_objects import Connections
from headgate.throttle.limits.changes import Change
from headgate.throttle.ordering import Due, order
from headgate.throttle.schemas import MARKS
from headgate.throttle.state import DomainState

OPEN, CLOSE, MARK, UNMARK = "open", "close", "mark", "unmark"
CONNECTION_SCOPE, THREAD_SCOPE = "connection", "io_thread"


class Row(NamedTuple):
    """A row of kind connection, at the time at which it acts."""

    at_ns: int
    seq: int
    connection: str
    action: str
    io_thread: int
    bytes: int
    command: str


def step_connections(domain: DomainState, due: Due) -> dict[str, pa.Table]:
    """Carry out what connections did and changes of their limits, in the order of time, and let time come to until_ns.

    Returns MARKS in the order of time, and DEAD_LETTERS for rows that cannot be: these change nothing.
    """
    rows, changes = due.rows, due.changes
    rows = rows.take(pa.array(order(rows))) if len(rows) else rows
    step = _Step(domain, encoded(rows["connection"])[0])
    done_ns = domain.clock.done_ns
    ends_ns = [max(change.effective_us * 1000, done_ns) for change in changes]
    letters = []
    taken = 0
    for place, row in enumerate(_rows(rows, done_ns)):
        while taken < len(changes) and ends_ns[taken] <= row.at_ns:
            step.follow(changes[taken], ends_ns[taken])
            taken += 1
        reason = step.carry_out(row)
        if reason is not None:
            letters.append({"reason": reason, "raw": _raw(rows, place), "source": None, "offset": None})
    for change, at_ns in zip(changes[taken:], ends_ns[taken:], strict=True):
        step.follow(change, at_ns)
    step.come_to(due.until_ns)
    return {"marks": step.marks(), "dead_letters": pa.Table.from_pylist(letters, DEAD_LETTERS)}


def _rows(rows: pa.Table, done_ns: int) -> Sequence[Row]:
    at_ns = np.maximum(numbers(rows["event_time_us"]) * 1000, done_ns).tolist() if len(rows) else []
    columns = (rows[name].to_pylist() for name in ("seq", "connection", "action", "io_thread", "bytes", "command"))
    return list(map(Row, at_ns, *columns))


def _raw(rows: pa.Table, place: int) -> str:
    """The row as JSON, as the input had it: nulls left out."""
    row = rows.slice(place, 1).select(CONNECTION.schema.names).to_pylist()[0]
    had = {"event_time": row.pop("event_time_us"), "kind": "connection"} | row
    return json.dumps({name: value for name, value in had.items() if value is not None})


class _Step:
    """The rules on a domain's connections, and what they tell."""

    def __init__(self, domain: DomainState, names: pa.StringArray) -> None:
        self._domain = domain
        self._seq: int | None = None
        self._told: list[dict[str, object]] = []
        self._connections = Connections(domain.connections, names)
        self._rules = ConnectionRules(domain.in_force.condition_limits, self._heard, self._connections.on_thread)
        for connection in self._connections.cooling():
            self._rules.watch(connection)

    def follow(self, change: Change, at_ns: int) -> None:
        """Other limits hold from `at_ns` on."""
        self.come_to(at_ns)
        before = self._rules.limits
        self._domain.in_force.apply(change)
        if self._domain.in_force.condition_limits != before:
            held, threads = self._connections.all(), self._connections.threads
            self._rules.update(self._domain.in_force.condition_limits, held, threads, at_ns)

    def come_to(self, at_ns: int) -> None:
        """Let the holds end that are due."""
        self._seq = None
        self._rules.run_due(at_ns)

    def carry_out(self, row: Row) -> str | None:
        """Why the row cannot be, or None."""
        self.come_to(row.at_ns)
        self._seq = row.seq
        found = self._connections.find(row.connection)
        reason = _fault(row, found, is_open=found is not None and found.place not in self._connections.closed)
        if reason is not None:
            return reason
        if row.action == CLOSE:
            self._close(row, found)
        elif row.action == "finish" and found is not None:
            self._finish(row, found)
        else:
            self._act(row, self._opened(row, found))
        return None

    def _opened(self, row: Row, found: Connection | None) -> Connection:
        """The connection, opened if it is not open: its recording may begin in the middle of its life."""
        closed, permits = self._connections.closed, self._rules.limits.cooldown_permits
        if found is None:
            found = self._connections.add(row.connection, row.at_ns, permits)
        elif found.place in closed:
            closed.remove(found.place)
            found.window_start_ns, found.remaining = row.at_ns, permits
        else:
            return self._on_thread(row, found)
        self._tell(row.at_ns, row.connection, OPEN)
        return self._on_thread(row, found)

    def _on_thread(self, row: Row, connection: Connection) -> Connection:
        if row.action in {OPEN, "start"} and connection.thread.name == NO_VALUE:
            connection.thread = self._connections.thread(row.io_thread)
        return connection

    def _act(self, row: Row, connection: Connection) -> None:
        match row.action:
            case "start":
                self._rules.start(connection, row.bytes, row.at_ns)
            case "writable" | "unwritable":
                self._rules.writable(connection, row.action == "writable", row.at_ns)
            case "command":
                self._rules.command(connection, row.command, row.at_ns)

    def _finish(self, row: Row, finishing: Connection) -> None:
        self._rules.finish(finishing, row.bytes, row.at_ns)
        if finishing.place in self._connections.closed and not finishing.in_flight:
            self._forget(finishing, row.at_ns)

    def _close(self, row: Row, closing: Connection | None) -> None:
        """What its buffer held is over; what its requests hold, when the last of them has finished."""
        if closing is not None and closing.place in self._connections.closed:
            return
        self._tell(row.at_ns, row.connection, CLOSE)
        if closing is None:
            return
        if closing.in_flight:
            self._connections.closed.add(closing.place)
            self._rules.release(closing, (BUFFER, COOLDOWN), row.at_ns)
        else:
            self._forget(closing, row.at_ns)

    def _forget(self, connection: Connection, at_ns: int) -> None:
        self._rules.release(connection, CONDITIONS, at_ns)
        self._connections.forget(connection)

    def _heard(self, at_ns: int, connection: Connection, type_: ThrottleType, *, marks: bool) -> None:
        scope, limiter = CONNECTION_SCOPE, connection.name
        if type_ is THREAD_BYTES:
            scope, limiter = THREAD_SCOPE, str(connection.thread.name)
        action = MARK if marks else UNMARK
        self._tell(at_ns, connection.name, action, scope=scope, limiter=limiter, type=str(type_))

    def _tell(self, at_ns: int, connection: str, action: str, **held: str) -> None:
        """Note a row of MARKS. held: by what, of marks and unmarks."""
        said = {"at_ns": at_ns, "event_time": at_ns // 1000, "connection": connection, "action": action}
        self._told.append({"broker": self._domain.broker, "seq": self._seq} | said | held)

    def marks(self) -> pa.Table:
        """MARKS, after which the state is as it was left."""
        self._connections.store()
        return pa.Table.from_pylist(self._told, MARKS)


def _fault(row: Row, found: Connection | None, *, is_open: bool) -> str | None:
    """Why a row cannot be, in the words of dead letters; None for a good one."""
    if row.action == OPEN and is_open:
        return f"action: got open, allowed is what an open connection does: {row.connection} is open"
    if row.action not in {OPEN, "start", "finish"}:
        return None
    if found is not None and found.thread.name not in {NO_VALUE, row.io_thread}:
        return (
            f"io_thread: got {row.io_thread}, allowed is {found.thread.name}, which serves connection {row.connection}"
        )
    if row.action != "finish":
        return None
    if found is None or not found.in_flight:
        return f"action: got finish, allowed is another one: connection {row.connection} has no request in flight"
    if row.bytes > found.thread.bytes_in_flight:
        held = found.thread.bytes_in_flight
        return f"bytes: got {row.bytes}, allowed is a whole number up to {held}, which IO thread {row.io_thread} holds"
    return None
