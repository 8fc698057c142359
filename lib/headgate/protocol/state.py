"""What is kept of connections between batches, and its codec: Arrow blocks, a row a connection or row that waits."""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from headgate.core.kernels.domain_types import Ints
from headgate.core.numbers import MIN
from headgate.errors import StateError
from headgate.protocol.schemas import ROWS
from headgate.throttle.blocks import decode_all, encode_all
from headgate.throttle.columns import no_ints, no_strings, numbers, strings

VERSION = 1
NEVER = MIN
_CLOCK = ("inputs_ms", "marks_ms", "done_ms")


@dataclass
class SlotState:
    """The state behind one key.

    inputs_ms, marks_ms: the highest times heard of from each source; done_ms: the watermark, up to which all was fed.
    NEVER: nothing yet.
    connection, due_ms, machine: names, when each acts next by itself (numbers.MAX: never), and itself as JSON.
    kept: ROWS above the watermark.
    """

    inputs_ms: int = NEVER
    marks_ms: int = NEVER
    done_ms: int = NEVER
    connection: pa.StringArray = field(default_factory=no_strings)
    due_ms: Ints = field(default_factory=no_ints)
    machine: pa.StringArray = field(default_factory=no_strings)
    kept: pa.Table = field(default_factory=ROWS.empty_table)

    @property
    def high_ms(self) -> int:
        """The highest time of all sources."""
        return max(self.inputs_ms, self.marks_ms)


def encode_state(state: SlotState) -> bytes:
    """The state as blocks; `decode_state` gives an equal one back."""
    clock = pa.table({name: [getattr(state, name)] for name in _CLOCK})
    machines = pa.table({"connection": state.connection, "due_ms": state.due_ms, "machine": state.machine})
    return encode_all([clock, machines, state.kept])


def decode_state(version: int, blocks: bytes) -> SlotState:
    """The state that was encoded. Raises StateError for another version."""
    if version != VERSION:
        raise StateError(
            f"the checkpoint's state has version {version}, this headgate reads version {VERSION}: start with a new "
            "--checkpoint and --output, or go back to the headgate that wrote it"
        )
    clock, machines, kept = decode_all(blocks)
    (row,) = clock.to_pylist()
    due_ms = np.array(numbers(machines["due_ms"]), np.int64)
    columns = (strings(machines["connection"]), due_ms, strings(machines["machine"]))
    return SlotState(row["inputs_ms"], row["marks_ms"], row["done_ms"], *columns, kept)
