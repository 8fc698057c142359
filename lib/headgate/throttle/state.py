"""State of a domain, and its one codec.

State is a version and Arrow blocks: one a kind of record and broker, named by the schema's metadata. What is empty is
not written.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from headgate.arrow.blocks import decode_all, encode_all
from headgate.arrow.columns import BUCKET_FIELDS, empty_columns, no_ints, no_strings, numbers, whole
from headgate.core.kernels.columns import NO_VALUE, Ints
from headgate.core.usage import USAGE_COLUMNS
from headgate.errors import StateError
from headgate.throttle.apart.connection_state import ConnectionState
from headgate.throttle.apart.connection_topics import ConnectionTopics
from headgate.throttle.apart.subscribe_state import SubscribeState
from headgate.throttle.apart.unload_state import UnloadState
from headgate.throttle.dispatch.dispatch_state import DispatchState
from headgate.throttle.groups.known_topics import KnownTopics
from headgate.throttle.limits.changes import CHANGES, Change, changes_of, changes_table
from headgate.throttle.limits.effective_limits import EffectiveLimits
from headgate.throttle.state_tables import (
    STORED_AS,
    StatePart,
    by_dimension,
    hours,
    not_empty,
    of_dimensions,
    with_numbers,
)

VERSION = 8

LIMITER_FIELDS = dict.fromkeys(BUCKET_FIELDS, 2) | dict.fromkeys(
    ("next_drain_ns", "initialised", "group", "cause", "held_ns"), 1
)
"""Columns stored for each limiter, and how many dimensions they have. Queues are apart."""
WITHHELD_FIELDS = ("producer", "at_ns", "topic", "messages", "bytes", "seq")
COUNT_FIELDS = tuple(f"count_{column}" for column in range(USAGE_COLUMNS))
KEYS_OF_USAGE = ("topic", "second", "since_ns")
USAGE_FIELDS = (*KEYS_OF_USAGE, *COUNT_FIELDS)


class BrokerClock(NamedTuple):
    """How far a broker is, the same under every key that hears its ticks.

    high_us: highest event time heard of. done_ns: time up to which everything is done, behind by the hold-back.
    """

    high_us: int = NO_VALUE
    done_ns: int = NO_VALUE


@dataclass
class DomainState:
    """One broker's limiters under one state key. Their positions are in order of registration, which never changes, but
    for those that are forgotten (throttle.forget) and registered again.
    """

    broker: str
    clock: BrokerClock = field(default_factory=BrokerClock)
    keys: pa.StringArray = field(default_factory=no_strings)
    limiters: dict[str, Ints] = field(default_factory=lambda: empty_columns(LIMITER_FIELDS))
    # Of a topic's limiter: the number of the hour of its newest publish.
    hour: Ints = field(default_factory=no_ints)
    # Queue entries in the order of limiter, then place in its queue, and how many marks each stands for.
    entry_limiter: Ints = field(default_factory=no_ints)
    entry_producer: Ints = field(default_factory=no_ints)
    entry_count: Ints = field(default_factory=no_ints)
    # Producers that wait: topic's limiter, name, connection.
    producer_topic: Ints = field(default_factory=no_ints)
    producer_name: pa.StringArray = field(default_factory=no_strings)
    producer_connection: pa.StringArray = field(default_factory=no_strings)
    # Arrivals withheld (offered traffic), in order per producer: columns of WITHHELD_FIELDS.
    withheld: dict[str, Ints] = field(default_factory=lambda: empty_columns(dict.fromkeys(WITHHELD_FIELDS, 1)))
    # Usage of the open second of the topics that have one or that are throttled: columns of USAGE_FIELDS.
    usage: dict[str, Ints] = field(default_factory=lambda: empty_columns(dict.fromkeys(USAGE_FIELDS, 1)))
    known_topics: KnownTopics = field(default_factory=KnownTopics)
    dispatch: DispatchState = field(default_factory=DispatchState)
    subscribes: SubscribeState = field(default_factory=SubscribeState)
    unloads: UnloadState = field(default_factory=UnloadState)
    connections: ConnectionState = field(default_factory=ConnectionState)
    connection_topics: ConnectionTopics = field(default_factory=ConnectionTopics)
    # Rows that wait (hold-back), by kind (schemas.TRAFFIC); kinds without any are left out.
    held: dict[str, pa.Table] = field(default_factory=dict)
    pending: list[Change] = field(default_factory=list)
    in_force: EffectiveLimits = field(default_factory=EffectiveLimits)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is kept but limits and the clock."""
        return not (len(self.keys) or self.held or self.is_open or any(getattr(self, name).is_begun for name in PARTS))

    @property
    def is_open(self) -> bool:
        """Whether time alone would bring output."""
        return any(getattr(self, name).is_open for name in PARTS) or bool(
            len(self.entry_limiter) or len(self.withheld["at_ns"]) or len(self.usage["topic"]) or self.held
        )


PARTS: dict[str, type[StatePart]] = {
    "dispatch": DispatchState,
    "subscribes": SubscribeState,
    "unloads": UnloadState,
    "connections": ConnectionState,
    "connection_topics": ConnectionTopics,
}
"""Fields of a domain that say themselves how they are stored."""
_PART_OF = {table: name for name, part in PARTS.items() for table in part.TABLES}


@dataclass
class KeyState:
    """State behind one key of the operator: its brokers' domains, and what those yet to come begin with.

    clocks: of the brokers heard of that have no domain here. changes: a table (limits.changes.CHANGES), as most
    batches have no use for them and there may be many. forgotten_us: up to there `changes` has no longer what was
    superseded. taken: the number (seq) of the first of the changes given to the operator at its start that was not
    looked at (state key `topic` only).
    """

    domains: dict[str, DomainState] = field(default_factory=dict)
    clocks: dict[str, BrokerClock] = field(default_factory=dict)
    changes: pa.Table = field(default_factory=CHANGES.empty_table)
    forgotten_us: int = NO_VALUE
    taken: int = 0

    @property
    def heard(self) -> dict[str, BrokerClock]:
        """The clock of every broker heard of."""
        return self.clocks | {broker: domain.clock for broker, domain in self.domains.items()}


def _domain_tables(domain: DomainState) -> Iterator[tuple[str, pa.Table]]:
    columns = {"key": domain.keys, "hour": domain.hour.astype(STORED_AS["hour"])}
    columns |= by_dimension(domain.limiters, LIMITER_FIELDS)
    yield "limiters", with_numbers(columns, **domain.clock._asdict())
    producers = {
        "topic": domain.producer_topic,
        "producer": domain.producer_name,
        "connection": domain.producer_connection,
    }
    usage = {name: column for name, column in domain.usage.items() if name in KEYS_OF_USAGE or column.any()}
    yield from not_empty(
        entries={"limiter": domain.entry_limiter, "producer": domain.entry_producer},
        producers=producers,
        withheld=domain.withheld,
        usage=usage,
    )
    if (domain.entry_count != 1).any():
        yield "entry_counts", pa.table({"count": domain.entry_count})
    if len(domain.known_topics.topic):
        yield "known_topics", domain.known_topics.table
    for name, changes in (("pending", domain.pending), ("limits", domain.in_force.changes())):
        if changes:
            yield name, changes_table(changes)
    for name in PARTS:
        part: StatePart = getattr(domain, name)
        if part.is_begun:
            yield from part.tables()


def encode_state(state: KeyState) -> bytes:
    """The state as blocks; `decode_state` gives an equal one back, field for field."""
    metadata = {"kind": "changes", "forgotten_us": str(state.forgotten_us), "taken": str(state.taken)}
    tables = [state.changes.replace_schema_metadata(metadata)]
    if state.clocks:
        clocks = zip(*state.clocks.values(), strict=True)
        columns = {"broker": list(state.clocks)} | dict(zip(BrokerClock._fields, clocks, strict=True))
        tables.append(pa.table(columns).replace_schema_metadata({"kind": "clocks"}))
    for domain in state.domains.values():
        named = ((table, {"kind": kind}) for kind, table in _domain_tables(domain))
        held = ((table, {"kind": "held", "of": kind}) for kind, table in domain.held.items())
        for table, kind in (*named, *held):
            metadata = {"broker": domain.broker} | kind | (table.schema.metadata or {})
            tables.append(table.replace_schema_metadata(metadata))
    return encode_all(tables)


def decode_state(version: int, blocks: bytes) -> KeyState:
    """The state that was encoded. Numbers are copies, to be written to; names are views of `blocks`.

    Raises StateError for a version, and for a table, that this headgate does not read.
    """
    if version != VERSION:
        raise StateError(
            f"the checkpoint's state has version {version}, this headgate reads version {VERSION}: "
            "start with a new --output and --checkpoint, or go back to the headgate that wrote it"
        )
    state = KeyState()
    for table in decode_all(blocks):
        metadata = {key.decode(): value.decode() for key, value in table.schema.metadata.items()}
        if metadata["kind"] == "changes":
            state.changes = table.replace_schema_metadata(None)
            state.forgotten_us, state.taken = int(metadata["forgotten_us"]), int(metadata["taken"])
            continue
        if metadata["kind"] == "clocks":
            brokers, *clocks = table.to_pydict().values()
            state.clocks = {broker: BrokerClock(*clock) for broker, *clock in zip(brokers, *clocks, strict=True)}
            continue
        broker = metadata["broker"]
        domain = state.domains.setdefault(broker, DomainState(broker))
        _take_table(domain, table, metadata)
    return state


def _take_table(domain: DomainState, table: pa.Table, metadata: dict[str, str]) -> None:
    match metadata["kind"]:
        case "limiters":
            domain.clock = BrokerClock(*(int(metadata[name]) for name in BrokerClock._fields))
            domain.keys, domain.limiters = whole(table["key"]), of_dimensions(table, LIMITER_FIELDS)
            domain.hour = hours(table)
        case "entries":
            domain.entry_limiter, domain.entry_producer = numbers(table["limiter"]), numbers(table["producer"])
            domain.entry_count = np.ones(len(table), np.int64)
        case "entry_counts":
            domain.entry_count = numbers(table["count"])
        case "producers":
            domain.producer_topic = numbers(table["topic"])
            domain.producer_name, domain.producer_connection = whole(table["producer"]), whole(table["connection"])
        case "withheld":
            domain.withheld = {name: numbers(table[name]) for name in WITHHELD_FIELDS}
        case "usage":
            zeros = np.zeros(len(table), np.int64)
            domain.usage = {
                name: numbers(table[name]) if name in table.schema.names else zeros for name in USAGE_FIELDS
            }
        case "known_topics":
            domain.known_topics = KnownTopics.of(table)
        case "held":
            domain.held[metadata["of"]] = table.replace_schema_metadata(None)
        case "pending":
            domain.pending = changes_of(table)
        case "limits":
            domain.in_force = EffectiveLimits.from_changes(changes_of(table))
        case kind if kind in _PART_OF:
            getattr(domain, _PART_OF[kind]).take(kind, table)
        case kind:
            raise StateError(
                f"the checkpoint's state holds a table {kind!r} that this headgate does not know: "
                "start with a new --output and --checkpoint, or go back to the headgate that wrote it"
            )
