"""What is kept of connections between batches, and its codec: one Arrow block a broker and kind of record."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from headgate.arrow.blocks import decode_all, encode_all
from headgate.arrow.columns import no_ints, no_strings, numbers, whole
from headgate.core.connections.connection_reads import NUMBERS
from headgate.core.kernels.columns import Ints
from headgate.errors import StateError

VERSION = 1
COLUMNS = (*NUMBERS, "attached")
"""Of a connection: the numbers of its ConnectionReads, and whether a row `attach` told of a topic (0, 1)."""


def _no_numbers() -> Ints:
    return np.empty((0, len(COLUMNS)), np.int64)


@dataclass
class BrokerConnections:
    """A broker's connections in the order in which they were heard of.

    numbers: of each, COLUMNS. Topics with the position of a connection that they have a
    producer on, by connection.
    """

    name: pa.StringArray = field(default_factory=no_strings)
    numbers: Ints = field(default_factory=_no_numbers)
    topic: pa.StringArray = field(default_factory=no_strings)
    topic_connection: Ints = field(default_factory=no_ints)


Brokers = dict[str, BrokerConnections]
"""The state behind one key."""


def encode_state(brokers: Brokers) -> bytes:
    """The state as blocks; `decode_state` gives an equal one back."""
    return encode_all([table for broker, kept in brokers.items() for table in _tables(broker, kept)])


def _tables(broker: str, kept: BrokerConnections) -> Iterator[pa.Table]:
    columns = dict(zip(COLUMNS, np.ascontiguousarray(kept.numbers.T), strict=True))
    parts = {
        "connections": {"connection": kept.name} | {name: column for name, column in columns.items() if column.any()},
        "topics": {"topic": kept.topic, "connection": kept.topic_connection},
    }
    for kind, part in parts.items():
        if len(next(iter(part.values()))):
            yield pa.table(part).replace_schema_metadata({"kind": kind, "broker": broker})


def decode_state(version: int, blocks: bytes) -> Brokers:
    """The state that was encoded. Raises StateError for another version."""
    if version != VERSION:
        raise StateError(
            f"the checkpoint's state has version {version}, this headgate reads version {VERSION}: start with a new "
            "--checkpoint after the tables connections and connection_topics were moved away, or go back to the "
            "headgate that wrote it"
        )
    brokers: Brokers = {}
    for table in decode_all(blocks):
        metadata = {key.decode(): value.decode() for key, value in table.schema.metadata.items()}
        kept = brokers.setdefault(metadata["broker"], BrokerConnections())
        if metadata["kind"] == "topics":
            kept.topic, kept.topic_connection = whole(table["topic"]), numbers(table["connection"])
            continue
        zeros = np.zeros(len(table), np.int64)
        present = set(table.schema.names)
        kept.name = whole(table["connection"])
        kept.numbers = np.stack([numbers(table[name]) if name in present else zeros for name in COLUMNS], axis=1)
    return brokers
