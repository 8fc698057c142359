"""Conditions of connections and IO threads that hold reads: pending publishes, buffers, cooldown (rate-limiters 10)."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Self

from headgate.core.connections.connection_limits import ConditionLimits
from headgate.core.connections.connection_rules import CONDITIONS, Connection, ConnectionRules, IoThread
from headgate.core.names import known, unused
from headgate.core.numbers import at_least, flag, int64
from headgate.core.ordered_time import enter
from headgate.core.publish.throttle_tracker import ThrottleTracker, ThrottleType
from headgate.core.state import PlainData, check_fields
from headgate.errors import InvalidArgument

_PLAIN = ("window_start_ns", "remaining", "in_flight", "open_until_ns", "cooling_until_ns")


class ConnectionConditions:
    """The rules (connection_rules) on connections of its own, each with the tracker that follows its marks.

    A connection that joins a held thread is not marked until the next crossing. Operations act at the highest time
    seen, after the cooldown holds that end by then. Each of them returns the connection's marked types in the order
    of ThrottleType, and raises InvalidArgument for unknown names and values out of range.

    Arguments, each with its range:
        connections: name to IO thread (integer or string), present from `created_ns` on.
        created_ns: the first instant.
        limits: see ConditionLimits.

    Source: PIP-434 and rate-limiters 10.
    """

    __slots__ = ("_connections", "_on_threads", "_rules", "_threads", "_trackers", "high_ns")

    def __init__(
        self, connections: Mapping[str, int | str], *, created_ns: int, limits: ConditionLimits | None = None
    ) -> None:
        self.high_ns = int64(created_ns, "created_ns")
        self._rules = ConnectionRules(
            ConditionLimits() if limits is None else limits, self._heard, lambda thread: self._on_threads[thread.name]
        )
        self._connections: dict[str, Connection] = {}
        self._trackers: dict[str, ThrottleTracker] = {}
        self._threads: dict[int | str, IoThread] = {}
        self._on_threads: dict[int | str, list[Connection]] = {}
        for name, thread in connections.items():
            self.join(name, thread, created_ns)

    @property
    def limits(self) -> ConditionLimits:
        """What it was made with."""
        return self._rules.limits

    def join(self, connection: str, thread: int | str, now_ns: int) -> list[str]:
        """Open a connection on an IO thread; a name that was joined before is refused."""
        at_ns = self._enter(now_ns)
        unused(self._connections, connection, "connection")
        if not isinstance(thread, str):
            int64(thread, "thread")
        joined = Connection(
            connection, len(self._connections), self._thread(thread), at_ns, self.limits.cooldown_permits
        )
        self._keep(joined, ThrottleTracker())
        return []

    def start(self, connection: str, bytes_: int, now_ns: int) -> list[str]:
        """One publish request of `bytes_` >= 0 begins. rate-limiters 10.1, 10.2"""
        at_ns = self._enter(now_ns)
        starting = self._connection(connection)
        at_least(0, bytes_, "bytes")
        self._rules.start(starting, bytes_, at_ns)
        return self._marked(connection)

    def finish(self, connection: str, bytes_: int, now_ns: int) -> list[str]:
        """One publish request ends; refused without a start or for more bytes than the thread holds. 10.1, 10.2"""
        at_ns = self._enter(now_ns)
        finishing = self._connection(connection)
        at_least(0, bytes_, "bytes")
        self._rules.finish(finishing, bytes_, at_ns)
        return self._marked(connection)

    def writable(self, connection: str, value: bool, now_ns: int) -> list[str]:
        """The outbound buffer crossed a water mark: `value` false holds reads, true opens the cooldown. 10.3"""
        at_ns = self._enter(now_ns)
        self._rules.writable(self._connection(connection), flag(value, "value"), at_ns)
        return self._marked(connection)

    def command(self, connection: str, command: str, now_ns: int) -> list[str]:
        """A command arrived, and is processed always; during a cooldown all but PING and PONG take permits. 10.3"""
        at_ns = self._enter(now_ns)
        sender = self._connection(connection)
        if not isinstance(command, str):
            raise InvalidArgument(f"command: got {command!r}, allowed is a string")
        self._rules.command(sender, command, at_ns)
        return self._marked(connection)

    def close(self, connection: str, now_ns: int) -> list[str]:
        """The connection is gone: its counts still move, its reads and metrics do not. rate-limiters 5.2"""
        self._enter(now_ns)
        known(self._trackers, connection, "connection").close()
        return self._marked(connection)

    def throttled(self, connection: str, now_ns: int) -> list[str]:
        """The connection's marked types."""
        self._enter(now_ns)
        return self._marked(connection)

    def auto_read(self, connection: str, now_ns: int) -> bool:
        """Whether the connection is being read."""
        self._enter(now_ns)
        return known(self._trackers, connection, "connection").auto_read

    def metrics(self, connection: str, now_ns: int) -> dict[str, int]:
        """The connection's `paused`, `resumed` and `throttled_connections`. rate-limiters 5.3"""
        self._enter(now_ns)
        return known(self._trackers, connection, "connection").metrics()

    def advance(self, now_ns: int) -> None:
        """End the cooldown holds due by `now_ns` and move time there; no other effect. rate-limiters 3.1"""
        self._enter(now_ns)

    def state(self) -> PlainData:
        """Parameters and state as plain data; threads are a list of [thread, bytes in flight, flagged]."""
        threads = self._threads.values()
        return {
            "high_ns": self.high_ns,
            "limits": asdict(self.limits),
            "threads": [[thread.name, thread.bytes_in_flight, thread.flagged] for thread in threads],
            "connections": {
                name: {"thread": kept.thread.name}
                | {plain: getattr(kept, plain) for plain in _PLAIN}
                | {"tracker": self._trackers[name].state()}
                for name, kept in self._connections.items()
            },
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Rebuild the object that `state` was taken from. Raises StateError for fields of another version."""
        check_fields(cls.__name__, state, ("high_ns", "limits", "threads", "connections"))
        conditions = cls({}, created_ns=state["high_ns"], limits=ConditionLimits(**state["limits"]))
        for name, bytes_, flagged in state["threads"]:
            thread = conditions._thread(name)
            thread.bytes_in_flight, thread.flagged = bytes_, flagged
        for place, (name, kept) in enumerate(state["connections"].items()):
            check_fields(Connection.__name__, kept, ("thread", *_PLAIN, "tracker"))
            tracker = ThrottleTracker.from_state(kept["tracker"])
            counts = tracker.counts()
            connection = Connection(
                name,
                place,
                conditions._threads[kept["thread"]],
                **{plain: kept[plain] for plain in _PLAIN},
                marked={type_ for type_ in CONDITIONS if type_ in counts},
            )
            conditions._keep(connection, tracker)
            conditions._rules.watch(connection)
        return conditions

    def _enter(self, now_ns: int) -> int:
        self.high_ns = enter(now_ns, self.high_ns)
        self._rules.run_due(self.high_ns)
        return self.high_ns

    def _heard(self, at_ns: int, connection: Connection, type_: ThrottleType, *, marks: bool) -> None:
        del at_ns
        tracker = self._trackers[connection.name]
        if marks:
            tracker.mark(type_)
        else:
            tracker.unmark(type_)

    def _keep(self, connection: Connection, tracker: ThrottleTracker) -> None:
        self._connections[connection.name] = connection
        self._trackers[connection.name] = tracker
        self._on_threads[connection.thread.name].append(connection)

    def _thread(self, name: int | str) -> IoThread:
        if name not in self._threads:
            self._threads[name], self._on_threads[name] = IoThread(name), []
        return self._threads[name]

    def _connection(self, name: str) -> Connection:
        return known(self._connections, name, "connection")

    def _marked(self, name: str) -> list[str]:
        return list(known(self._trackers, name, "connection").counts())
