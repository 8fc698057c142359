"""State of a domain, and its one codec.

State is a version and Arrow blocks: one a kind of record and broker, named by the schema's metadata. What is empty is
not written.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from headgate.core.kernels.domain_types import NONE, Ints
from headgate.core.usage import USAGE_COLUMNS
from headgate.errors import StateError
from headgate.throttle.blocks import decode_all, encode_all
from headgate.throttle.changes import CHANGES, Change, changes_of, changes_table
from headgate.throttle.columns import BUCKET_FIELDS, empty_columns, no_ints, no_strings, numbers, strings
from headgate.throttle.connection_state import CONNECTION_FIELDS, THREAD_FIELDS, ConnectionState
from headgate.throttle.connection_topics import ConnectionTopics
from headgate.throttle.dispatch_state import LEVEL_FIELDS, RATES, READ_FIELDS, Averages, DispatchState
from headgate.throttle.limits import Book
from headgate.throttle.schemas import DISPATCH_COUNTS
from headgate.throttle.seen import Seen
from headgate.throttle.subscribe_state import SUBSCRIBE_FIELDS, SubscribeState
from headgate.throttle.unload_state import UnloadState

VERSION = 6

LIMITER_FIELDS = dict.fromkeys(BUCKET_FIELDS, 2) | dict.fromkeys(
    ("next_drain_ns", "born", "group", "cause", "held_ns"), 1
)
"""Columns stored for each limiter, and how many dimensions they have. Queues are apart."""
STORED_AS = {"born": np.int8, "group": np.int32, "cause": np.int8, "level": np.int32}
"""Columns stored with fewer bits than they have in memory."""
WITHHELD_FIELDS = ("producer", "at_ns", "topic", "messages", "bytes", "seq")
COUNT_FIELDS = tuple(f"count_{column}" for column in range(USAGE_COLUMNS))
KEYS_OF_USAGE = ("topic", "second", "since_ns")
USAGE_FIELDS = (*KEYS_OF_USAGE, *COUNT_FIELDS)


class Clock(NamedTuple):
    """How far a broker is, the same under every key that hears its ticks.

    high_us: highest event time heard of. done_ns: time up to which everything is done, behind by the hold-back.
    """

    high_us: int = NONE
    done_ns: int = NONE


@dataclass
class DomainState:
    """One broker's limiters under one state key. Their positions are in order of registration, which never changes."""

    broker: str
    clock: Clock = field(default_factory=Clock)
    keys: pa.StringArray = field(default_factory=no_strings)
    limiters: dict[str, Ints] = field(default_factory=lambda: empty_columns(LIMITER_FIELDS))
    # Queue entries in the order of limiter, then place in its queue.
    entry_limiter: Ints = field(default_factory=no_ints)
    entry_producer: Ints = field(default_factory=no_ints)
    # Producers that wait: topic's limiter, name, connection.
    producer_topic: Ints = field(default_factory=no_ints)
    producer_name: pa.StringArray = field(default_factory=no_strings)
    producer_connection: pa.StringArray = field(default_factory=no_strings)
    # Arrivals withheld (offered traffic), in order per producer: columns of WITHHELD_FIELDS.
    withheld: dict[str, Ints] = field(default_factory=lambda: empty_columns(dict.fromkeys(WITHHELD_FIELDS, 1)))
    # Usage of the open second of the topics that have one or that are throttled: columns of USAGE_FIELDS.
    usage: dict[str, Ints] = field(default_factory=lambda: empty_columns(dict.fromkeys(USAGE_FIELDS, 1)))
    seen: Seen = field(default_factory=Seen)
    dispatch: DispatchState = field(default_factory=DispatchState)
    subscribes: SubscribeState = field(default_factory=SubscribeState)
    unloads: UnloadState = field(default_factory=UnloadState)
    connections: ConnectionState = field(default_factory=ConnectionState)
    connection_topics: ConnectionTopics = field(default_factory=ConnectionTopics)
    # Rows that wait (hold-back), by kind (schemas.TRAFFIC); kinds without any are left out.
    held: dict[str, pa.Table] = field(default_factory=dict)
    pending: list[Change] = field(default_factory=list)
    book: Book = field(default_factory=Book)

    @property
    def is_open(self) -> bool:
        """Whether time alone would bring output."""
        return (
            self.dispatch.is_open
            or self.connections.is_open
            or bool(len(self.entry_limiter) or len(self.withheld["at_ns"]) or len(self.usage["topic"]) or self.held)
        )


@dataclass
class KeyState:
    """State behind one key of the operator: its brokers' domains, and what those yet to come begin with.

    clocks: of the brokers heard of that have no domain here. changes: a table (limits.CHANGES), as most batches have no
    use for them and there may be many. forgotten_us: up to there `changes` has no longer what was superseded. taken:
    how many of the changes given to the operator at its start were looked at (state key `topic` only).
    """

    domains: dict[str, DomainState] = field(default_factory=dict)
    clocks: dict[str, Clock] = field(default_factory=dict)
    changes: pa.Table = field(default_factory=CHANGES.empty_table)
    forgotten_us: int = NONE
    taken: int = 0

    @property
    def heard(self) -> dict[str, Clock]:
        """The clock of every broker heard of."""
        return self.clocks | {broker: domain.clock for broker, domain in self.domains.items()}


def _table(kind: str, broker: str, columns: dict[str, object], **numbers: int) -> pa.Table:
    metadata = {"kind": kind, "broker": broker} | {name: str(value) for name, value in numbers.items()}
    return pa.table(columns).replace_schema_metadata(metadata)


def _domain_tables(domain: DomainState) -> Iterator[pa.Table]:
    columns = {"key": domain.keys} | _columns(domain.limiters, LIMITER_FIELDS)
    yield _table("limiters", domain.broker, columns, **domain.clock._asdict())
    parts = {
        "entries": {"limiter": domain.entry_limiter, "producer": domain.entry_producer},
        "producers": {
            "topic": domain.producer_topic,
            "producer": domain.producer_name,
            "connection": domain.producer_connection,
        },
        "withheld": domain.withheld,
        "usage": {name: column for name, column in domain.usage.items() if name in KEYS_OF_USAGE or column.any()},
    }
    for kind, part in parts.items():
        if len(next(iter(part.values()))):
            yield _table(kind, domain.broker, part)
    yield from _dispatch_tables(domain.broker, domain.dispatch)
    for kind, seen in (("seen", domain.seen), ("dispatch_seen", domain.dispatch.seen)):
        if len(seen.topic):
            yield _table(kind, domain.broker, {"topic": seen.topic, "group": seen.group}, epoch=seen.epoch)
    yield from _subscribe_tables(domain.broker, domain.subscribes)
    if domain.unloads.is_begun:
        yield _table("unloads", domain.broker, {name: [value] for name, value in asdict(domain.unloads).items()})
    yield from _connection_tables(domain.broker, domain.connections)
    if len(domain.connection_topics.pairs):
        yield _table("connection_names", domain.broker, {"connection": domain.connection_topics.connections})
        yield _table("connection_topics", domain.broker, {"pair": domain.connection_topics.pairs})
    for kind, held in domain.held.items():
        yield held.replace_schema_metadata({"kind": "held", "broker": domain.broker, "of": kind})
    for kind, changes in (("pending", domain.pending), ("book", domain.book.changes())):
        if changes:
            yield changes_table(changes).replace_schema_metadata({"kind": kind, "broker": domain.broker})


def _subscribe_tables(broker: str, state: SubscribeState) -> Iterator[pa.Table]:
    if len(state.topic):
        names = {"topic": state.topic, "client": state.client, "consumer": state.consumer}
        yield _table("subscribes", broker, {**names, "consumer_id": state.consumer_id, **state.buckets})


def _connection_tables(broker: str, state: ConnectionState) -> Iterator[pa.Table]:
    if len(state.name):
        yield _table("connections", broker, {"connection": state.name, **state.kept})
    if len(state.threads["thread"]):
        yield _table("io_threads", broker, {**state.threads})


def _dispatch_tables(broker: str, state: DispatchState) -> Iterator[pa.Table]:
    parts: dict[str, dict[str, object]] = {
        "dispatch_topics": {"topic": state.topics, "level": state.level_of.astype(STORED_AS["level"])},
        "dispatch_levels": {"key": state.keys} | _columns(state.levels, LEVEL_FIELDS),
        "dispatch_subscriptions": {
            "topic": state.subscription_topic,
            "subscription": state.subscription_name,
            "due_ns": state.subscription_due_ns,
            "held_by": state.subscription_held_by,
        },
        "dispatch_reads": {name: state.reads[name] for name in READ_FIELDS},
        "dispatch_open": {"second": state.open_second, "topic": state.open_topic, "subscription": state.open_name}
        | dict(zip(DISPATCH_COUNTS, state.open_counts.T, strict=True)),
    }
    for kind, part in parts.items():
        table = _table(kind, broker, part)
        if len(table):
            yield table
    published = state.published
    if published.since_ns != NONE:
        columns = {"topic": published.topic} | _columns({name: getattr(published, name) for name in RATES}, RATES)
        numbers = {"since_ns": published.since_ns, "interval": published.interval}
        yield _table("publish_averages", broker, columns, **numbers)


def _columns(values: dict[str, Ints], fields: dict[str, int]) -> dict[str, object]:
    """Columns of limiters, those of two dimensions as two."""
    columns: dict[str, object] = {}
    for name, dimensions in fields.items():
        if dimensions == 1:
            columns[name] = values[name].astype(STORED_AS.get(name, np.int64), copy=False)
        else:
            columns |= {f"messages_{name}": values[name][:, 0], f"bytes_{name}": values[name][:, 1]}
    return columns


def _of_columns(table: pa.Table, fields: dict[str, int]) -> dict[str, Ints]:
    """The inverse of `_columns`."""
    return {
        name: numbers(table[name])
        if dimensions == 1
        else np.stack([numbers(table[f"messages_{name}"]), numbers(table[f"bytes_{name}"])], axis=1)
        for name, dimensions in fields.items()
    }


def encode_state(state: KeyState) -> bytes:
    """The state as blocks; `decode_state` gives an equal one back, field for field."""
    metadata = {"kind": "changes", "forgotten_us": str(state.forgotten_us), "taken": str(state.taken)}
    tables = [state.changes.replace_schema_metadata(metadata)]
    if state.clocks:
        clocks = zip(*state.clocks.values(), strict=True)
        columns = {"broker": list(state.clocks)} | dict(zip(Clock._fields, clocks, strict=True))
        tables.append(pa.table(columns).replace_schema_metadata({"kind": "clocks"}))
    for domain in state.domains.values():
        tables += _domain_tables(domain)
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
            state.clocks = {broker: Clock(*clock) for broker, *clock in zip(brokers, *clocks, strict=True)}
            continue
        broker = metadata["broker"]
        domain = state.domains.setdefault(broker, DomainState(broker))
        _take_table(domain, table, metadata)
    return state


def _take_table(domain: DomainState, table: pa.Table, metadata: dict[str, str]) -> None:
    match metadata["kind"]:
        case "limiters":
            domain.clock = Clock(*(int(metadata[name]) for name in Clock._fields))
            domain.keys, domain.limiters = strings(table["key"]), _of_columns(table, LIMITER_FIELDS)
        case "entries":
            domain.entry_limiter, domain.entry_producer = numbers(table["limiter"]), numbers(table["producer"])
        case "producers":
            domain.producer_topic = numbers(table["topic"])
            domain.producer_name, domain.producer_connection = strings(table["producer"]), strings(table["connection"])
        case "withheld":
            domain.withheld = {name: numbers(table[name]) for name in WITHHELD_FIELDS}
        case "usage":
            zeros = np.zeros(len(table), np.int64)
            domain.usage = {
                name: numbers(table[name]) if name in table.schema.names else zeros for name in USAGE_FIELDS
            }
        case "seen":
            domain.seen = _seen(table, metadata)
        case "held":
            domain.held[metadata["of"]] = table.replace_schema_metadata(None)
        case "pending":
            domain.pending = changes_of(table)
        case "book":
            domain.book = Book.from_changes(changes_of(table))
        case "subscribes":
            kept = domain.subscribes
            kept.topic, kept.client, kept.consumer = (strings(table[name]) for name in ("topic", "client", "consumer"))
            kept.consumer_id = numbers(table["consumer_id"])
            kept.buckets = {name: numbers(table[name]) for name in SUBSCRIBE_FIELDS}
        case "unloads":
            domain.unloads = UnloadState(**table.to_pylist()[0])
        case "connections":
            domain.connections.name = strings(table["connection"])
            domain.connections.kept = {name: numbers(table[name]) for name in CONNECTION_FIELDS}
        case "io_threads":
            domain.connections.threads = {name: numbers(table[name]) for name in THREAD_FIELDS}
        case "connection_names":
            domain.connection_topics.connections = strings(table["connection"])
        case "connection_topics":
            domain.connection_topics.pairs = numbers(table["pair"])
        case kind:
            _take_dispatch_table(domain.dispatch, kind, table, metadata)


def _take_dispatch_table(state: DispatchState, kind: str, table: pa.Table, metadata: dict[str, str]) -> None:
    match kind:
        case "dispatch_topics":
            state.topics, state.level_of = strings(table["topic"]), numbers(table["level"])
        case "dispatch_levels":
            state.keys, state.levels = strings(table["key"]), _of_columns(table, LEVEL_FIELDS)
        case "dispatch_subscriptions":
            state.subscription_topic, state.subscription_name = strings(table["topic"]), strings(table["subscription"])
            state.subscription_due_ns = numbers(table["due_ns"])
            state.subscription_held_by = numbers(table["held_by"])
        case "dispatch_reads":
            state.reads = {name: numbers(table[name]) for name in READ_FIELDS}
        case "dispatch_open":
            state.open_second = numbers(table["second"])
            state.open_topic, state.open_name = strings(table["topic"]), strings(table["subscription"])
            state.open_counts = np.stack([numbers(table[name]) for name in DISPATCH_COUNTS], axis=1)
        case "publish_averages":
            since_ns, interval = int(metadata["since_ns"]), int(metadata["interval"])
            state.published = Averages(since_ns, interval, numbers(table["topic"]), **_of_columns(table, RATES))
        case "dispatch_seen":
            state.seen = _seen(table, metadata)
        case _:
            raise StateError(f"the checkpoint's state holds a table {kind!r} that this headgate does not know")


def _seen(table: pa.Table, metadata: dict[str, str]) -> Seen:
    return Seen(int(metadata["epoch"]), numbers(table["topic"]), numbers(table["group"]))
