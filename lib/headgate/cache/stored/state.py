"""What is kept of a slot's brokers between batches, and its codec: Arrow blocks behind a version.

Brokers that nothing came for stay bytes: only those that rows came for are decoded and encoded again.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Self

import pyarrow as pa

from headgate.arrow.blocks import decode_all, encode_all
from headgate.cache.forms import AnyCache
from headgate.cache.schemas import ROWS
from headgate.cache.stored.stored import cache_of, tables_of
from headgate.core.cache.broker import Cache
from headgate.core.numbers import MIN
from headgate.errors import StateError

VERSION = 3
NOT_YET = MIN
_CHANGES = pa.schema([("at_us", pa.int64()), ("values", pa.string())])
_NUMBERS = ("high_us", "done_us", "waiting", "untold_us")
_BROKERS = pa.schema([("broker", pa.string()), *((name, pa.int64()) for name in _NUMBERS), ("blocks", pa.binary())])


@dataclass(frozen=True)
class Change:
    """What conf files said: before every row from `at_us` on these values hold.

    The first one, at NEVER, has the values that each cache begins with; later ones those of dynamic keys that changed.
    """

    at_us: int
    values: dict[str, Any]


@dataclass
class OpenSecond:
    """The second of event time that the last accepted row is in.

    number: seconds since 1970; topics: those that rows were about or entries left; before: totals as it began.
    """

    number: int
    before: dict[str, int]
    topics: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, number: int, before: dict[str, int], topics: Iterable[str]) -> Self:
        """As it was stored."""
        return cls(number, before, set(topics))


@dataclass
class BrokerState:
    """A broker between batches.

    high_us: the highest time of its rows that may act (sifting); done_us: up to which all were fed. NEVER: nothing yet.
    kept: ROWS above it. second: the one that is open, None before the first accepted row. changes: how many of the
    slot's were made. untold_us: the time of the last accepted row that nothing was told of, NEVER: none.
    """

    name: str
    cache: AnyCache
    high_us: int = NOT_YET
    done_us: int = NOT_YET
    kept: pa.Table = field(default_factory=ROWS.empty_table)
    second: OpenSecond | None = None
    changes: int = 1
    untold_us: int = NOT_YET


@dataclass(frozen=True)
class StoredBroker:
    """A broker as bytes, with what tells whether it has anything to do. waiting: rows of `kept`."""

    high_us: int
    done_us: int
    waiting: int
    untold_us: int
    blocks: bytes


@dataclass
class SlotState:
    """The state behind one key: brokers as bytes until they are asked for, and changes in the order of their times."""

    changes: list[Change] = field(default_factory=list)
    brokers: dict[str, StoredBroker] = field(default_factory=dict)


def encode_broker(state: BrokerState) -> StoredBroker:
    """The state as blocks; `decode_broker` gives one back that behaves as it."""
    second = state.second
    opened = None if second is None else [second.number, second.before, sorted(second.topics)]
    values = {"changes": state.changes, "second": opened, "is_readable": isinstance(state.cache, Cache)}
    head = pa.table({"head": [json.dumps(values)]})
    blocks = encode_all([head, state.kept, *_tables_of(state.cache)])
    return StoredBroker(state.high_us, state.done_us, len(state.kept), state.untold_us, blocks)


def decode_broker(name: str, stored: StoredBroker) -> BrokerState:
    """The state that was encoded, of the broker of that name, the cache in the form in which it was."""
    tables = decode_all(stored.blocks)
    (head,) = next(tables)["head"].to_pylist()
    kept, values = next(tables), json.loads(head)
    return BrokerState(
        name,
        _cache_of(tables, is_readable=values["is_readable"]),
        high_us=stored.high_us,
        done_us=stored.done_us,
        kept=kept,
        second=None if values["second"] is None else OpenSecond.of(*values["second"]),
        changes=values["changes"],
        untold_us=stored.untold_us,
    )


def _tables_of(cache: AnyCache) -> list[pa.Table]:
    if isinstance(cache, Cache):
        return tables_of(cache)
    from headgate.cache.stored.stored_arrays import tables_of_arrays  # noqa: PLC0415  loads the compiler

    return tables_of_arrays(cache)


def _cache_of(tables: Iterator[pa.Table], *, is_readable: bool) -> AnyCache:
    if is_readable:
        return cache_of(tables)
    from headgate.cache.stored.stored_arrays import arrays_of_tables  # noqa: PLC0415  loads the compiler

    return arrays_of_tables(tables)


def encode_state(state: SlotState) -> bytes:
    """The state as blocks; `decode_state` gives an equal one back."""
    changes = [{"at_us": change.at_us, "values": json.dumps(change.values)} for change in state.changes]
    brokers = [{"broker": broker, **vars(stored)} for broker, stored in state.brokers.items()]
    return encode_all([pa.Table.from_pylist(changes, _CHANGES), pa.Table.from_pylist(brokers, _BROKERS)])


def is_of_caches(blocks: bytes) -> bool:
    """Whether a state value is of this job, whatever its version."""
    names: list[str] = next(decode_all(blocks)).column_names
    return names == list(map(str, _CHANGES.names))


def decode_state(version: int, blocks: bytes) -> SlotState:
    """The state that was encoded. Raises StateError for another version."""
    if version != VERSION:
        raise StateError(
            f"the checkpoint's state has version {version}, this headgate reads version {VERSION}: start with a new "
            "--checkpoint and --output, or go back to the headgate that wrote it"
        )
    changes, brokers = decode_all(blocks)
    return SlotState(
        [Change(row["at_us"], json.loads(row["values"])) for row in changes.to_pylist()],
        {row.pop("broker"): StoredBroker(**row) for row in brokers.to_pylist()},
    )
