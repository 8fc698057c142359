"""The rules of conditions 10.1 to 10.3, on connections that the caller keeps (rate-limiters 10)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Protocol

from headgate.core.connections.connection_limits import ConditionLimits
from headgate.core.numbers import MAX, MILLISECOND_NS, sat
from headgate.core.publish.throttle_tracker import ThrottleType
from headgate.errors import InvalidArgument

ALWAYS_FREE_COMMANDS = frozenset({"PING", "PONG"})
REQUESTS = ThrottleType.CONNECTION_MAX_PENDING_PUBLISH_REQUESTS_EXCEEDED
THREAD_BYTES = ThrottleType.IO_THREAD_MAX_PENDING_PUBLISH_BYTES_EXCEEDED
BUFFER = ThrottleType.CONNECTION_OUTBOUND_BUFFER_FULL
COOLDOWN = ThrottleType.CONNECTION_PAUSE_RECEIVING_COOLDOWN_RATE_LIMIT
CONDITIONS = (REQUESTS, THREAD_BYTES, BUFFER, COOLDOWN)
"""The types that conditions mark, in their fixed order; all are flags."""


@dataclass(slots=True)
class IoThread:
    """One IO thread: publish bytes in flight, and whether its connections are held for them."""

    name: int | str
    bytes_in_flight: int = 0
    flagged: bool = False


@dataclass(slots=True)
class Connection:
    """One connection: its place among others, its IO thread, what is in flight, its cooldown, and what marks it.

    thread: where it is not known yet, one that is nobody else's.
    """

    name: str
    place: int
    thread: IoThread
    window_start_ns: int
    remaining: int
    in_flight: int = 0
    open_until_ns: int | None = None
    cooling_until_ns: int | None = None
    marked: set[ThrottleType] = field(default_factory=set)


class Tell(Protocol):
    """Hears of each mark and unmark as it happens; dropped ones are none."""

    def __call__(self, at_ns: int, connection: Connection, type_: ThrottleType, *, marks: bool) -> None: ...


class ConnectionRules:
    """Each crossing of a limit marks once and each crossing back unmarks once; limits are compared at the crossing.

    Connections and threads are the caller's, who brings operations in the order of time, and `run_due` before each.

    limits: see ConditionLimits. tell: hears of marks and unmarks. on_thread: the connections of an IO thread, in their
    order.
    """

    __slots__ = ("_cooling", "_on_thread", "_tell", "_thread_limit_bytes", "limits")

    def __init__(
        self, limits: ConditionLimits, tell: Tell, on_thread: Callable[[IoThread], Iterable[Connection]]
    ) -> None:
        self._tell = tell
        self._on_thread = on_thread
        self._cooling: list[tuple[int, int, Connection]] = []
        self._limit(limits)

    def _limit(self, limits: ConditionLimits) -> None:
        self.limits = limits
        self._thread_limit_bytes = limits.thread_limit_bytes

    def start(self, starting: Connection, bytes_: int, at_ns: int) -> None:
        """One publish request of `bytes_` >= 0 begins. rate-limiters 10.1, 10.2"""
        limits, thread = self.limits, starting.thread
        starting.in_flight = sat(starting.in_flight + 1)
        if limits.limits_requests and starting.in_flight == limits.max_pending_publish_requests:
            self._mark(starting, REQUESTS, at_ns)
        thread.bytes_in_flight = sat(thread.bytes_in_flight + bytes_)
        limit_bytes = self._thread_limit_bytes
        if limit_bytes is not None and thread.bytes_in_flight > limit_bytes and not thread.flagged:
            thread.flagged = True
            for other in self._on_thread(thread):
                self._mark(other, THREAD_BYTES, at_ns)

    def finish(self, finishing: Connection, bytes_: int, at_ns: int) -> None:
        """One publish request ends. rate-limiters 10.1, 10.2

        Raises InvalidArgument without a start, and for more bytes than the thread holds; nothing is changed then.
        """
        thread = finishing.thread
        if bytes_ > thread.bytes_in_flight:
            raise InvalidArgument(f"bytes: got {bytes_}, the thread holds {thread.bytes_in_flight} in flight")
        if finishing.in_flight == 0:
            raise InvalidArgument(f"finish: connection {finishing.name!r} has no request in flight")
        limits = self.limits
        finishing.in_flight -= 1
        if limits.limits_requests and finishing.in_flight == limits.max_pending_publish_requests // 2:
            self._unmark(finishing, REQUESTS, at_ns)
        thread.bytes_in_flight -= bytes_
        limit_bytes = self._thread_limit_bytes
        if limit_bytes is not None and thread.flagged and thread.bytes_in_flight <= limit_bytes // 2:
            self._clear(thread, at_ns)

    def writable(self, changed: Connection, value: bool, at_ns: int) -> None:
        """The outbound buffer crossed a water mark: `value` false holds reads, true opens the cooldown. 10.3"""
        if not self.limits.pause_if_unwritable:
            return
        if not value:
            self._mark(changed, BUFFER, at_ns)
            return
        self._unmark(changed, BUFFER, at_ns)
        if self.limits.cools_down:
            changed.open_until_ns = sat(at_ns + self.limits.cooldown_ms * MILLISECOND_NS)

    def command(self, sender: Connection, command: str, at_ns: int) -> None:
        """A command arrived, and is processed always; during a cooldown all but PING and PONG take permits. 10.3"""
        if sender.open_until_ns is None or at_ns > sender.open_until_ns or command in ALWAYS_FREE_COMMANDS:
            return
        period_ns = self.limits.cooldown_period_ms * MILLISECOND_NS
        if at_ns > sender.window_start_ns + period_ns:
            sender.remaining = self.limits.cooldown_permits
            sender.window_start_ns = at_ns
        if sender.remaining > 0:
            sender.remaining -= 1
        elif sender.cooling_until_ns is None:
            self._mark(sender, COOLDOWN, at_ns)
            sender.cooling_until_ns = sat(at_ns + period_ns)
            self.watch(sender)

    def watch(self, cooling: Connection) -> None:
        """End the hold of this connection's cooldown when it is due: for one that was kept elsewhere since it began."""
        if cooling.cooling_until_ns is not None:
            heappush(self._cooling, (cooling.cooling_until_ns, cooling.place, cooling))

    def run_due(self, until_ns: int) -> None:
        """End the holds of cooldowns due at or before `until_ns`, each at its time, in the order of connections."""
        while self._cooling and self._cooling[0][0] <= until_ns and self._cooling[0][0] != MAX:
            due_ns, _, connection = heappop(self._cooling)
            if connection.cooling_until_ns == due_ns:  # else it ended before
                connection.cooling_until_ns = None
                self._unmark(connection, COOLDOWN, due_ns)

    def release(self, connection: Connection, types: Iterable[ThrottleType], at_ns: int) -> None:
        """Unmark these types, whatever marked them; a cooldown that is among them is over."""
        for type_ in types:
            if type_ is COOLDOWN:
                connection.open_until_ns = connection.cooling_until_ns = None
            self._unmark(connection, type_, at_ns)

    def update(
        self, limits: ConditionLimits, connections: Iterable[Connection], threads: Iterable[IoThread], at_ns: int
    ) -> None:
        """Other limits hold from here on, of all connections and threads that are given.

        Nothing is marked by that. What a limit that is off now has marked is unmarked, and what stands at half of the
        new limit or below: no crossing would come there. All else waits for its next crossing. Other permits or another
        period of a cooldown begin a window anew, with all of its permits; a hold that goes on ends when it was due.
        """
        begins_window = limits.cooldown_window != self.limits.cooldown_window
        self._limit(limits)
        half_bytes = -1 if self._thread_limit_bytes is None else self._thread_limit_bytes // 2
        for thread in threads:
            if thread.flagged and (half_bytes < 0 or thread.bytes_in_flight <= half_bytes):
                self._clear(thread, at_ns)
        half_requests = limits.max_pending_publish_requests // 2
        for connection in connections:
            if not limits.limits_requests or connection.in_flight <= half_requests:
                self._unmark(connection, REQUESTS, at_ns)
            if not limits.pause_if_unwritable:
                self._unmark(connection, BUFFER, at_ns)
            if not limits.cools_down:
                self.release(connection, (COOLDOWN,), at_ns)
            if begins_window:
                connection.window_start_ns, connection.remaining = at_ns, limits.cooldown_permits

    def _clear(self, thread: IoThread, at_ns: int) -> None:
        thread.flagged = False
        for other in self._on_thread(thread):
            self._unmark(other, THREAD_BYTES, at_ns)

    def _mark(self, connection: Connection, type_: ThrottleType, at_ns: int) -> None:
        if type_ not in connection.marked:
            connection.marked.add(type_)
            self._tell(at_ns, connection, type_, marks=True)

    def _unmark(self, connection: Connection, type_: ThrottleType, at_ns: int) -> None:
        if type_ in connection.marked:
            connection.marked.remove(type_)
            self._tell(at_ns, connection, type_, marks=False)
