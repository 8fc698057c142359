"""Conditions of connections and IO threads that hold reads: pending publishes, buffers, cooldown (rate-limiters 10)."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from headgate.core.deferred import enter, run_all_due
from headgate.core.names import known, unused
from headgate.core.numbers import MILLISECOND_NS, at_least, flag, int64, sat
from headgate.core.state import PlainData, check_fields
from headgate.core.throttle_tracker import ThrottleTracker, ThrottleType
from headgate.errors import InvalidArgument

MEBIBYTE = 1_048_576
ALWAYS_FREE_COMMANDS = frozenset({"PING", "PONG"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionLimits:
    """Limits that are off never mark; the defaults are Pulsar's where it has one. Source: rate-limiters 10, 11

    Arguments, each with its range:
        max_pending_publish_requests: requests in flight per connection; 0 or below: off.
        max_publish_buffer_mib: MiB in flight over all IO threads; 0 or below: off.
        io_threads: number of IO threads, >= 1, required when the buffer is limited.
        pause_if_unwritable: whether the outbound buffer and the cooldown hold reads.
        cooldown_ms: after the buffer became writable; 0 or below: no cooldown.
        cooldown_permits, cooldown_period_ms: commands per period during a cooldown, each >= 1 where there is one.

    Raises InvalidArgument for values out of range.
    """

    max_pending_publish_requests: int = 1000
    max_publish_buffer_mib: int = -1
    io_threads: int | None = None
    pause_if_unwritable: bool = False
    cooldown_ms: int = 5000
    cooldown_permits: int = 5
    cooldown_period_ms: int = 10

    def __post_init__(self) -> None:
        int64(self.max_pending_publish_requests, "max_pending_publish_requests")
        if int64(self.max_publish_buffer_mib, "max_publish_buffer_mib") > 0:
            if self.io_threads is None:
                raise InvalidArgument("io_threads: missing; a publish buffer limit is divided among the IO threads")
            at_least(1, self.io_threads, "io_threads")
        flag(self.pause_if_unwritable, "pause_if_unwritable")
        int64(self.cooldown_ms, "cooldown_ms")
        int64(self.cooldown_permits, "cooldown_permits")
        int64(self.cooldown_period_ms, "cooldown_period_ms")
        if self.cools_down:
            at_least(1, self.cooldown_permits, "cooldown_permits")
            at_least(1, self.cooldown_period_ms, "cooldown_period_ms")

    @property
    def cools_down(self) -> bool:
        """Whether a cooldown follows when a connection becomes writable."""
        return self.pause_if_unwritable and self.cooldown_ms > 0

    @property
    def thread_limit_bytes(self) -> int | None:
        """Bytes in flight per IO thread above which its connections are held, None when off. rate-limiters 10.2"""
        if self.max_publish_buffer_mib <= 0 or self.io_threads is None:
            return None
        return sat(self.max_publish_buffer_mib * MEBIBYTE // self.io_threads)


@dataclass(slots=True)
class Connection:
    """One connection: its IO thread, its tracker, what is in flight, and its cooldown."""

    thread: int | str
    window_start_ns: int
    remaining: int
    in_flight: int = 0
    open_until_ns: int | None = None
    cooling_until_ns: int | None = None
    tracker: ThrottleTracker = field(default_factory=ThrottleTracker)

    def due_ns(self) -> int | None:
        """When the cooldown's hold ends."""
        return self.cooling_until_ns

    def run_due(self, at_ns: int) -> None:
        """End the cooldown's hold."""
        del at_ns
        self.cooling_until_ns = None
        self.tracker.unmark(ThrottleType.CONNECTION_PAUSE_RECEIVING_COOLDOWN_RATE_LIMIT)


@dataclass(slots=True)
class IoThread:
    """One IO thread: publish bytes in flight, and whether its connections are held for them."""

    bytes_in_flight: int = 0
    flagged: bool = False


class ConnectionConditions:
    """Each crossing of a limit marks once and each crossing back unmarks once; limits are compared at the crossing.

    A connection that joins a held thread is not marked until the next crossing. Operations act at the highest time
    seen, after the cooldown holds that end by then. Each of them returns the connection's marked types in the order
    of ThrottleType, and raises InvalidArgument for unknown names and values out of range.

    Arguments, each with its range:
        connections: name to IO thread (integer or string), present from `created_ns` on.
        created_ns: the first instant.
        limits: see ConditionLimits.

    Source: PIP-434 and rate-limiters 10.
    """

    __slots__ = ("_connections", "_threads", "high_ns", "limits")

    def __init__(
        self, connections: Mapping[str, int | str], *, created_ns: int, limits: ConditionLimits | None = None
    ) -> None:
        self.high_ns = int64(created_ns, "created_ns")
        self.limits = ConditionLimits() if limits is None else limits
        self._connections: dict[str, Connection] = {}
        self._threads: dict[int | str, IoThread] = {}
        for name, thread in connections.items():
            self.join(name, thread, created_ns)

    def join(self, connection: str, thread: int | str, now_ns: int) -> list[str]:
        """Open a connection on an IO thread; a name that was joined before is refused."""
        at_ns = self._enter(now_ns)
        unused(self._connections, connection, "connection")
        if not isinstance(thread, str):
            int64(thread, "thread")
        self._threads.setdefault(thread, IoThread())
        self._connections[connection] = Connection(thread, at_ns, self.limits.cooldown_permits)
        return []

    def start(self, connection: str, bytes_: int, now_ns: int) -> list[str]:
        """One publish request of `bytes_` >= 0 begins. rate-limiters 10.1, 10.2"""
        self._enter(now_ns)
        starting = self._connection(connection)
        at_least(0, bytes_, "bytes")
        thread = self._threads[starting.thread]
        starting.in_flight = sat(starting.in_flight + 1)
        if self._limits_requests and starting.in_flight == self.limits.max_pending_publish_requests:
            starting.tracker.mark(ThrottleType.CONNECTION_MAX_PENDING_PUBLISH_REQUESTS_EXCEEDED)
        thread.bytes_in_flight = sat(thread.bytes_in_flight + bytes_)
        limit_bytes = self.limits.thread_limit_bytes
        if limit_bytes is not None and thread.bytes_in_flight > limit_bytes and not thread.flagged:
            thread.flagged = True
            for other in self._on_thread(starting.thread):
                other.tracker.mark(ThrottleType.IO_THREAD_MAX_PENDING_PUBLISH_BYTES_EXCEEDED)
        return list(starting.tracker.counts())

    def finish(self, connection: str, bytes_: int, now_ns: int) -> list[str]:
        """One publish request ends; refused without a start or for more bytes than the thread holds. 10.1, 10.2"""
        self._enter(now_ns)
        finishing = self._connection(connection)
        thread = self._threads[finishing.thread]
        if at_least(0, bytes_, "bytes") > thread.bytes_in_flight:
            raise InvalidArgument(f"bytes: got {bytes_}, the thread holds {thread.bytes_in_flight} in flight")
        if finishing.in_flight == 0:
            raise InvalidArgument(f"finish: connection {connection!r} has no request in flight")
        finishing.in_flight -= 1
        if self._limits_requests and finishing.in_flight == self.limits.max_pending_publish_requests // 2:
            finishing.tracker.unmark(ThrottleType.CONNECTION_MAX_PENDING_PUBLISH_REQUESTS_EXCEEDED)
        thread.bytes_in_flight -= bytes_
        limit_bytes = self.limits.thread_limit_bytes
        if limit_bytes is not None and thread.flagged and thread.bytes_in_flight <= limit_bytes // 2:
            thread.flagged = False
            for other in self._on_thread(finishing.thread):
                other.tracker.unmark(ThrottleType.IO_THREAD_MAX_PENDING_PUBLISH_BYTES_EXCEEDED)
        return list(finishing.tracker.counts())

    def writable(self, connection: str, value: bool, now_ns: int) -> list[str]:
        """The outbound buffer crossed a water mark: `value` false holds reads, true opens the cooldown. 10.3"""
        at_ns = self._enter(now_ns)
        changed = self._connection(connection)
        flag(value, "value")
        if self.limits.pause_if_unwritable and not value:
            changed.tracker.mark(ThrottleType.CONNECTION_OUTBOUND_BUFFER_FULL)
        elif self.limits.pause_if_unwritable:
            changed.tracker.unmark(ThrottleType.CONNECTION_OUTBOUND_BUFFER_FULL)
            if self.limits.cools_down:
                changed.open_until_ns = sat(at_ns + self.limits.cooldown_ms * MILLISECOND_NS)
        return list(changed.tracker.counts())

    def command(self, connection: str, command: str, now_ns: int) -> list[str]:
        """A command arrived, and is processed always; during a cooldown all but PING and PONG take permits. 10.3"""
        at_ns = self._enter(now_ns)
        sender = self._connection(connection)
        if not isinstance(command, str):
            raise InvalidArgument(f"command: got {command!r}, allowed is a string")
        in_cooldown = sender.open_until_ns is not None and at_ns <= sender.open_until_ns
        if in_cooldown and command not in ALWAYS_FREE_COMMANDS:
            self._take_permit(sender, at_ns)
        return list(sender.tracker.counts())

    def close(self, connection: str, now_ns: int) -> list[str]:
        """The connection is gone: its counts still move, its reads and metrics do not. rate-limiters 5.2"""
        self._enter(now_ns)
        closed = self._connection(connection)
        closed.tracker.close()
        return list(closed.tracker.counts())

    def throttled(self, connection: str, now_ns: int) -> list[str]:
        """The connection's marked types."""
        self._enter(now_ns)
        return list(self._connection(connection).tracker.counts())

    def auto_read(self, connection: str, now_ns: int) -> bool:
        """Whether the connection is being read."""
        self._enter(now_ns)
        return self._connection(connection).tracker.auto_read

    def metrics(self, connection: str, now_ns: int) -> dict[str, int]:
        """The connection's `paused`, `resumed` and `throttled_connections`. rate-limiters 5.3"""
        self._enter(now_ns)
        return self._connection(connection).tracker.metrics()

    def advance(self, now_ns: int) -> None:
        """End the cooldown holds due by `now_ns` and move time there; no other effect. rate-limiters 3.1"""
        self._enter(now_ns)

    def state(self) -> PlainData:
        """Parameters and state as plain data; threads are a list of [thread, bytes in flight, flagged]."""
        return {
            "high_ns": self.high_ns,
            "limits": asdict(self.limits),
            "threads": [[name, thread.bytes_in_flight, thread.flagged] for name, thread in self._threads.items()],
            "connections": {name: _connection_state(kept) for name, kept in self._connections.items()},
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Rebuild the object that `state` was taken from. Raises StateError for fields of another version."""
        check_fields(cls.__name__, state, ("high_ns", "limits", "threads", "connections"))
        conditions = cls({}, created_ns=state["high_ns"], limits=ConditionLimits(**state["limits"]))
        conditions._threads = {name: IoThread(bytes_, flagged) for name, bytes_, flagged in state["threads"]}
        conditions._connections = {name: _connection_from(kept) for name, kept in state["connections"].items()}
        return conditions

    @property
    def _limits_requests(self) -> bool:
        return self.limits.max_pending_publish_requests > 0

    def _enter(self, now_ns: int) -> int:
        at_ns = enter(now_ns, self.high_ns)
        run_all_due(list(self._connections.values()), at_ns)
        self.high_ns = at_ns
        return at_ns

    def _connection(self, name: str) -> Connection:
        return known(self._connections, name, "connection")

    def _on_thread(self, thread: int | str) -> list[Connection]:
        return [connection for connection in self._connections.values() if connection.thread == thread]

    def _take_permit(self, sender: Connection, at_ns: int) -> None:
        period_ns = self.limits.cooldown_period_ms * MILLISECOND_NS
        if at_ns > sender.window_start_ns + period_ns:
            sender.remaining = self.limits.cooldown_permits
            sender.window_start_ns = at_ns
        if sender.remaining > 0:
            sender.remaining -= 1
        elif sender.cooling_until_ns is None:
            sender.tracker.mark(ThrottleType.CONNECTION_PAUSE_RECEIVING_COOLDOWN_RATE_LIMIT)
            sender.cooling_until_ns = sat(at_ns + period_ns)


def _connection_state(connection: Connection) -> PlainData:
    fields = {name: getattr(connection, name) for name in Connection.__slots__}
    return {**fields, "tracker": connection.tracker.state()}


def _connection_from(state: Mapping[str, Any]) -> Connection:
    return Connection(**{**state, "tracker": ThrottleTracker.from_state(state["tracker"])})
