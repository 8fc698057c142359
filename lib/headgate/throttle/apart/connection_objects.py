"""Connections of a domain as objects of the rules, those alone that something happens to."""

import numpy as np
import pyarrow as pa

from headgate.arrow.columns import no_strings, places
from headgate.core.connections.connection_rules import CONDITIONS, Connection, IoThread
from headgate.core.kernels.columns import NO_VALUE
from headgate.throttle.apart.connection_state import CONNECTION_FIELDS, THREAD_FIELDS, ConnectionState

_BITS = {type_: 1 << bit for bit, type_ in enumerate(CONDITIONS)}


class Connections:
    """A view of a ConnectionState, which `store` brings up to what has happened; places are those of the state.

    names: of the rows that come.
    """

    def __init__(self, state: ConnectionState, names: pa.StringArray) -> None:
        self._state = state
        found = places(state.name, names) if len(state.name) else np.full(len(names), -1)
        self._place = {name: place for name, place in zip(names.to_pylist(), found.tolist(), strict=True) if place >= 0}
        self._loaded: dict[int, Connection] = {}
        self._new: list[str] = []
        self._gone: set[int] = set()
        self.closed: set[int] = set()
        columns = (state.threads[name].tolist() for name in THREAD_FIELDS)
        self._threads = {
            thread: IoThread(thread, bytes_, bool(is_flagged))
            for thread, bytes_, is_flagged in zip(*columns, strict=True)
        }

    @property
    def threads(self) -> list[IoThread]:
        return list(self._threads.values())

    def thread(self, number: int) -> IoThread:
        if number not in self._threads:
            self._threads[number] = IoThread(number)
        return self._threads[number]

    def find(self, name: str) -> Connection | None:
        """The connection of this name, also one that is closed and finishes."""
        place = self._place.get(name)
        return None if place is None else self._at(place)

    def add(self, name: str, at_ns: int, permits: int) -> Connection:
        """A connection that opens; its thread is not known yet."""
        place = len(self._state.name) + len(self._new)
        self._new.append(name)
        self._place[name] = place
        self._loaded[place] = Connection(name, place, IoThread(NO_VALUE), at_ns, permits)
        return self._loaded[place]

    def forget(self, connection: Connection) -> None:
        del self._place[connection.name]
        self._gone.add(connection.place)

    def on_thread(self, thread: IoThread) -> list[Connection]:
        """Those of the thread, in their order."""
        stored = np.flatnonzero(self._state.kept["thread"] == thread.name).tolist()
        found = {place: self._at(place) for place in stored if place not in self._gone}
        found |= {
            place: kept for place, kept in self._loaded.items() if kept.thread is thread and place not in self._gone
        }
        return [found[place] for place in sorted(found)]

    def cooling(self) -> list[Connection]:
        """Those whose cooldown holds them since before."""
        return [self._at(place) for place in np.flatnonzero(self._state.kept["cooling_until_ns"] != NO_VALUE).tolist()]

    def all(self) -> list[Connection]:
        """Every one, in their order."""
        count = len(self._state.name) + len(self._new)
        return [self._at(place) for place in range(count) if place not in self._gone]

    def store(self) -> None:
        state = self._state
        if self._new:
            state.name = pa.concat_arrays([state.name, pa.array(self._new, pa.string())])
            new = np.zeros(len(self._new), np.int64)
            state.kept = {name: np.concatenate([column, new]) for name, column in state.kept.items()}
        loaded = np.array(list(self._loaded), np.int64)
        rows = np.array([self._stored(kept) for kept in self._loaded.values()], np.int64)
        for name, values in zip(CONNECTION_FIELDS, rows.reshape(-1, len(CONNECTION_FIELDS)).T, strict=True):
            state.kept[name][loaded] = values
        if self._gone:
            stay = np.ones(len(state.name), np.bool_)
            stay[list(self._gone)] = False
            state.name = state.name.filter(pa.array(stay)) if stay.any() else no_strings()
            state.kept = {name: column[stay] for name, column in state.kept.items()}
        held = sorted(
            (thread.name, thread.bytes_in_flight, int(thread.flagged))
            for thread in self._threads.values()
            if thread.bytes_in_flight  # without any it is not flagged
        )
        columns = np.array(held, np.int64).reshape(-1, len(THREAD_FIELDS)).T
        state.threads = {name: column.copy() for name, column in zip(THREAD_FIELDS, columns, strict=True)}

    def _at(self, place: int) -> Connection:
        if place not in self._loaded:
            kept = {name: int(column[place]) for name, column in self._state.kept.items()}
            if kept["is_closed"]:
                self.closed.add(place)
            self._loaded[place] = Connection(
                name=self._state.name[place].as_py(),
                place=place,
                thread=IoThread(NO_VALUE) if kept["thread"] == NO_VALUE else self.thread(kept["thread"]),
                window_start_ns=kept["window_start_ns"],
                remaining=kept["remaining"],
                in_flight=kept["in_flight"],
                open_until_ns=None if kept["open_until_ns"] == NO_VALUE else kept["open_until_ns"],
                cooling_until_ns=None if kept["cooling_until_ns"] == NO_VALUE else kept["cooling_until_ns"],
                marked={type_ for type_, bit in _BITS.items() if kept["marks"] & bit},
            )
        return self._loaded[place]

    def _stored(self, kept: Connection) -> tuple[int | str, ...]:
        return (
            kept.thread.name,
            int(kept.place in self.closed),
            kept.in_flight,
            kept.remaining,
            kept.window_start_ns,
            NO_VALUE if kept.open_until_ns is None else kept.open_until_ns,
            NO_VALUE if kept.cooling_until_ns is None else kept.cooling_until_ns,
            sum(_BITS[type_] for type_ in kept.marked),
        )
