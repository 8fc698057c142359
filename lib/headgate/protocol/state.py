"""What is kept of connections between batches, and its codec: Arrow blocks, a row a connection or row that waits."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headgate.arrow.blocks import decode_all, encode_all
from headgate.arrow.columns import no_strings, whole
from headgate.core.kernels.columns import Flags, Ints
from headgate.core.kernels.protocol.types import NONE
from headgate.core.numbers import MIN
from headgate.errors import StateError
from headgate.protocol.closed_producers import CLOSED
from headgate.protocol.schemas import ROWS
from headgate.protocol.stored import Columns, no_machines, type_of

VERSION = 4
NOT_YET = MIN
_TEXTS = ("connection", "names", "settings")
_CLOCK = ("inputs_ms", "marks_ms", "done_ms")
_OF_NAMES = (("producers", "topic"), ("named", "topic"), ("named", "name"))


@dataclass
class SlotState:
    """The state behind one key.

    inputs_ms, marks_ms: the highest times heard of from each source; done_ms: the watermark, up to which all was fed.
    NEVER: nothing yet.
    connection: names, a row each of the table `connections`. names: topics and names of producers, settings: JSON;
    both as the tables of `machines` number them.
    kept: ROWS above the watermark. closed: producers that closed (`closed_producers.CLOSED`).
    fan_out: the router's state (`fan_out.fanned_out`), "": marks are not fanned out.
    """

    inputs_ms: int = NOT_YET
    marks_ms: int = NOT_YET
    done_ms: int = NOT_YET
    connection: pa.StringArray = field(default_factory=no_strings)
    names: pa.StringArray = field(default_factory=no_strings)
    settings: pa.StringArray = field(default_factory=no_strings)
    machines: dict[str, Columns] = field(default_factory=no_machines)
    kept: pa.Table = field(default_factory=ROWS.empty_table)
    closed: pa.Table = field(default_factory=CLOSED.empty_table)
    fan_out: str = ""

    @property
    def high_ms(self) -> int:
        """The highest time of all sources."""
        return max(self.inputs_ms, self.marks_ms)

    @property
    def due_ms(self) -> Ints:
        """When each connection acts next by itself; numbers.MAX: never."""
        return self.machines["connections"]["due_ms"]

    def open_connections(self) -> pa.Array:
        """The names of connections that are open."""
        return self.connection.filter(pa.array(self.machines["connections"]["is_open"] != 0))

    def closings_ms(self) -> dict[str, int]:
        """When connections closed last, of those of which a close is known."""
        closed_ms = self.machines["connections"]["closed_ms"]
        is_known = closed_ms != NONE
        names = self.connection.filter(pa.array(is_known)).to_pylist()
        return dict(zip(names, closed_ms[is_known].tolist(), strict=True))

    def keep(self, stay: Flags) -> None:
        """Leave out all other connections, with what they have; their names stay."""
        tables = self.machines
        self.connection = self.connection.filter(pa.array(stay))
        connection, of_producer = np.cumsum(stay) - 1, stay[tables["producers"]["connection"]]
        producer = np.cumsum(of_producer) - 1
        for table, columns in tables.items():
            if table == "connections":
                mask = stay
            elif "connection" in columns:
                mask = stay[columns["connection"]]
            else:
                mask = of_producer[columns["producer"]]
            tables[table] = {name: column[mask] for name, column in columns.items()}
        for columns in tables.values():
            if "connection" in columns:
                columns["connection"] = connection[columns["connection"]]
            if "producer" in columns:
                columns["producer"] = producer[columns["producer"]]

    def drop_unused(self) -> None:
        """Forget names and settings that nothing has any more."""
        self.names = _renumbered(self.names, [(self.machines[table], name) for table, name in _OF_NAMES])
        self.settings = _renumbered(self.settings, [(self.machines["connections"], "settings")])


def _renumbered(values: pa.StringArray, columns: list[tuple[Columns, str]]) -> pa.StringArray:
    """The values that columns point to, none twice; -1 points to none."""
    is_used = np.zeros(len(values) + 1, np.bool_)
    for table, name in columns:
        is_used[table[name]] = True
    used = values.filter(pa.array(is_used[:-1])).dictionary_encode()
    places = np.full(len(values) + 1, -1, np.int64)
    places[:-1][is_used[:-1]] = used.indices.to_numpy()
    for table, name in columns:
        table[name] = places[table[name]]
    return used.dictionary


def encode_state(state: SlotState) -> bytes:
    """The state as blocks; `decode_state` gives an equal one back."""
    clock = pa.table({name: [getattr(state, name)] for name in _CLOCK})
    texts = [pa.table([getattr(state, name)], [name]) for name in _TEXTS]
    router = pa.table({"fan_out": [state.fan_out]})
    return encode_all([clock, *texts, *map(pa.table, state.machines.values()), state.kept, state.closed, router])


def decode_state(version: int, blocks: bytes) -> SlotState:
    """The state that was encoded. Raises StateError for another version."""
    if version != VERSION:
        raise StateError(
            f"the checkpoint's state has version {version}, this headgate reads version {VERSION}: start with a new "
            "--checkpoint and --output, or go back to the headgate that wrote it"
        )
    clock, connection, names, settings, *rest = decode_all(blocks)
    (row,) = clock.to_pylist()
    tables, (kept, closed, router) = rest[: len(no_machines())], rest[len(no_machines()) :]
    machines = {
        name: {column: _numbers(stored[column], type_of(name, column)) for column in stored.column_names}
        for name, stored in zip(no_machines(), tables, strict=True)
    }
    texts = [whole(table.column(0)) for table in (connection, names, settings)]
    named = dict(zip(_TEXTS, texts, strict=True))
    fan_out = router["fan_out"][0].as_py()
    return SlotState(**row, **named, machines=machines, kept=kept, closed=closed, fan_out=fan_out)


def _numbers(column: pa.ChunkedArray, of_type: Any) -> NDArray[Any]:
    numbers: NDArray[Any] = column.to_numpy().astype(of_type, copy=False)
    return numbers
