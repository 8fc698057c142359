"""The kinds of traffic rows: what each is called, its columns, what a column may hold. A new kind begins here."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

import pyarrow as pa

from headgate.core.numbers import MAX


class Sort(Enum):
    """What a column holds, and the type of its values."""

    NAME = "name", pa.string()
    TOPIC = "topic", pa.string()
    ACTION = "action", pa.string()
    DIRECTION = "direction", pa.string()
    NUMBER = "number", pa.int64()
    FLAG = "flag", pa.bool_()

    @property
    def type(self) -> pa.DataType:
        """Of the values."""
        return self.value[1]


@dataclass(frozen=True)
class Column:
    """A column of some kinds. allowed: the words of its dead letters. is_optional: null has a meaning."""

    name: str
    sort: Sort
    allowed: str
    is_optional: bool = False


def _number(name: str, *, is_optional: bool = False) -> Column:
    return Column(name, Sort.NUMBER, f"a whole number from 0 to {MAX}", is_optional)


def _flag(name: str) -> Column:
    return Column(name, Sort.FLAG, "true or false", is_optional=True)


def _name(name: str) -> Column:
    return Column(name, Sort.NAME, "a name")


def one_of(names: tuple[str, ...]) -> str:
    """The names as a message says what is allowed."""
    *others, last = names
    return f"{', '.join(others)} or {last}"


OF_ACTION: dict[str, tuple[str, ...]] = {
    "open": ("io_thread",),
    "close": (),
    "writable": (),
    "unwritable": (),
    "start": ("io_thread", "bytes"),
    "finish": ("io_thread", "bytes"),
    "command": ("command",),
}
"""What a connection did, and the columns that say more of it."""
IN, OUT = "in", "out"
"""Directions of usage: published to the topic, dispatched from it."""

TOPIC = Column("topic", Sort.TOPIC, "persistent://tenant/namespace/topic")
PRODUCER, CONNECTION_NAME, SUBSCRIPTION = _name("producer"), _name("connection"), _name("subscription")
CLIENT, CONSUMER, BUNDLE, COMMAND = _name("client"), _name("consumer"), _name("bundle"), _name("command")
ACTION = Column("action", Sort.ACTION, one_of(tuple(OF_ACTION)))
CONSUMER_ID, IO_THREAD, DURATION_MS = _number("consumer_id"), _number("io_thread"), _number("duration_ms")
DIRECTION = Column("direction", Sort.DIRECTION, one_of((IN, OUT)))
FROM_US = Column(
    "from_us",
    Sort.NUMBER,
    "whole microseconds since 1970, before event_time by a day at most, or equal to it where nothing came",
)
MESSAGES, BYTES, ENTRIES = _number("messages"), _number("bytes"), _number("entries", is_optional=True)
CAUGHT_UP, FILTERED = _flag("caught_up"), _flag("filtered")

COLUMNS = (
    *(TOPIC, PRODUCER, CONNECTION_NAME, SUBSCRIPTION, CLIENT, CONSUMER, BUNDLE, COMMAND, ACTION, DIRECTION),
    *(CONSUMER_ID, IO_THREAD, DURATION_MS, FROM_US, MESSAGES, BYTES, ENTRIES, CAUGHT_UP, FILTERED),
)
"""Those of some kinds, in the order in which a dead letter names them."""
JUDGED = ("event_time", "seq", "broker", "topic", "kind", *(column.name for column in COLUMNS if column is not TOPIC))
"""What a dead letter may name, in its order."""
OF_ALL = pa.schema([("event_time_us", pa.int64()), ("seq", pa.int64()), ("broker", pa.string())])
"""What every row has on its way to the operator."""


@dataclass(frozen=True)
class Kind:
    """A kind of traffic rows.

    name: in the column `kind`. block: of the blocks in which its rows travel; empty if they become rows of other kinds
    first. columns: beside those of all rows. by_action: those of its columns that a row has with some actions alone.
    may_lack: names of its columns that may be null, although other kinds need them.
    """

    name: str
    block: str
    columns: tuple[Column, ...]
    by_action: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    may_lack: tuple[str, ...] = ()

    @property
    def schema(self) -> pa.Schema:
        """Of its rows on their way to the operator."""
        return pa.schema([*OF_ALL, *((column.name, column.sort.type) for column in self.columns)])

    @property
    def has_topics(self) -> bool:
        """Whether its rows belong to a topic; else they belong to a broker alone."""
        return TOPIC in self.columns


PUBLISH = Kind("publish", "events", (TOPIC, PRODUCER, CONNECTION_NAME, MESSAGES, BYTES))
DISPATCH = Kind("dispatch", "dispatches", (TOPIC, SUBSCRIPTION, MESSAGES, BYTES, ENTRIES, CAUGHT_UP, FILTERED))
SUBSCRIBE = Kind("subscribe", "subscribes", (TOPIC, CLIENT, CONSUMER, CONSUMER_ID))
UNLOAD = Kind("unload", "unloads", (BUNDLE, DURATION_MS))
CONNECTION = Kind("connection", "connections", (CONNECTION_NAME, ACTION, IO_THREAD, BYTES, COMMAND), OF_ACTION)
KINDS = (PUBLISH, DISPATCH, SUBSCRIBE, UNLOAD, CONNECTION)
"""Those that reach the operator."""

_OF_NOBODY = (PRODUCER, CONNECTION_NAME, SUBSCRIPTION)
USAGE = Kind(
    "usage",
    "",
    (TOPIC, *_OF_NOBODY, DIRECTION, FROM_US, MESSAGES, BYTES),
    may_lack=tuple(column.name for column in _OF_NOBODY),
)
"""What a broker counted of a topic from from_us to event_time: becomes publishes or dispatches (rows.usage)."""
INPUT_KINDS = (*KINDS, USAGE)
"""Those that an input may have."""
_IN_ORDER = (
    *("event_time", "seq", "broker", "topic", "kind", "producer", "connection", "subscription", "client", "consumer"),
    *("consumer_id", "bundle", "action", "command", "io_thread", "duration_ms", "messages", "bytes", "entries"),
    *("caught_up", "filtered", "direction", "from_us"),
)
_TYPES = {column.name: column.sort.type for column in COLUMNS} | {"seq": pa.int64()}
INPUT = pa.schema([(name, _TYPES.get(name, pa.string())) for name in _IN_ORDER])
"""What a traffic row has in an input, with its type in JSON; docs/tables.md describes each column."""
