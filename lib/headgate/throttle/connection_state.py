"""What a domain keeps of connections: who is open or finishes, what marks them, and what their IO threads hold."""

from dataclasses import dataclass, field

import pyarrow as pa

from headgate.core.kernels.domain_types import NONE, Ints
from headgate.throttle.columns import empty_columns, no_strings

CONNECTION_FIELDS = (
    *("thread", "is_closed", "in_flight", "remaining", "window_start_ns", "open_until_ns", "cooling_until_ns"),
    "marks",
)
THREAD_FIELDS = ("thread", "bytes_in_flight", "is_flagged")


@dataclass
class ConnectionState:
    """Connections in the order in which they were opened, and IO threads with bytes in flight.

    thread, open_until_ns, cooling_until_ns: NONE where there is none yet. is_closed: 1 while requests of a closed one
    are in flight. marks: a bit for each of connection_rules.CONDITIONS.
    """

    name: pa.StringArray = field(default_factory=no_strings)
    kept: dict[str, Ints] = field(default_factory=lambda: empty_columns(dict.fromkeys(CONNECTION_FIELDS, 1)))
    threads: dict[str, Ints] = field(default_factory=lambda: empty_columns(dict.fromkeys(THREAD_FIELDS, 1)))

    @property
    def is_open(self) -> bool:
        """Whether time alone would bring output: a cooldown's hold that ends."""
        return bool((self.kept["cooling_until_ns"] != NONE).any())
