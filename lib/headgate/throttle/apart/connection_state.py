"""What a domain keeps of connections: who is open or finishes, what marks them, and what their IO threads hold."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import pyarrow as pa

from headgate.arrow.columns import empty_columns, no_strings, numbers, whole
from headgate.core.kernels.columns import NO_VALUE, Ints
from headgate.throttle.state_tables import StatePart, not_empty

CONNECTION_FIELDS = (
    *("thread", "is_closed", "in_flight", "remaining", "window_start_ns", "open_until_ns", "cooling_until_ns"),
    "marks",
)
THREAD_FIELDS = ("thread", "bytes_in_flight", "is_flagged")


@dataclass
class ConnectionState(StatePart):
    """Connections in the order in which they were opened, and IO threads with bytes in flight.

    thread, open_until_ns, cooling_until_ns: NO_VALUE where there is none. is_closed: 1 while requests of a closed one
    are in flight. marks: a bit for each of connection_rules.CONDITIONS.
    """

    TABLES: ClassVar = ("connections", "io_threads")

    name: pa.StringArray = field(default_factory=no_strings)
    kept: dict[str, Ints] = field(default_factory=lambda: empty_columns(dict.fromkeys(CONNECTION_FIELDS, 1)))
    threads: dict[str, Ints] = field(default_factory=lambda: empty_columns(dict.fromkeys(THREAD_FIELDS, 1)))

    @property
    def is_begun(self) -> bool:
        """See StatePart."""
        return bool(len(self.name) or len(self.threads["thread"]))

    @property
    def is_open(self) -> bool:
        """See StatePart: a cooldown's hold ends."""
        return bool((self.kept["cooling_until_ns"] != NO_VALUE).any())

    def is_due(self, until_ns: int) -> bool:
        """See StatePart: a cooldown's hold ends by then."""
        cooling_ns = self.kept["cooling_until_ns"]
        return bool(((cooling_ns != NO_VALUE) & (cooling_ns <= until_ns)).any())

    def tables(self) -> Iterator[tuple[str, pa.Table]]:
        """See StatePart."""
        yield from not_empty(connections={"connection": self.name, **self.kept}, io_threads=self.threads)

    def take(self, name: str, table: pa.Table) -> None:
        """See StatePart."""
        if name == "connections":
            self.name = whole(table["connection"])
            self.kept = {name: numbers(table[name]) for name in CONNECTION_FIELDS}
        else:
            self.threads = {name: numbers(table[name]) for name in THREAD_FIELDS}
