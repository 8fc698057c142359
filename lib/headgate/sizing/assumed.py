"""Publishes alone as cache events: who reads them, and when, is assumed.

Each publish is an entry of its topic. For each lag the topic has a cursor, there from the topic's first publish on. It
reads every entry so long after it was published, one at a time, and acknowledges it at once.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headgate.core.cache.rows import EventKind
from headgate.rows.kinds import PUBLISH
from headgate.rows.traffic import Parsed
from headgate.sizing.lags import Lag
from headgate.sizing.trace import READ, of_letters

_STAGES = (EventKind.OPEN, EventKind.ADD, EventKind.READ, EventKind.MARK)
"""What comes first at one instant."""
_LARGEST = 2**31 - 1

Integers = npt.NDArray[np.int64]


def events_of(parts: Iterable[Parsed], lags: Sequence[Lag]) -> Iterator[pa.RecordBatch]:
    """What became of rows of traffic as READ, by broker. Rows of other kinds than publishes are left out."""
    publishes: list[pa.Table] = []
    for rows, dead_letters in parts:
        of_kind = rows.filter(pc.equal(rows["kind"], PUBLISH.name))
        if len(of_kind):
            publishes.append(of_kind.select(["event_time_us", "seq", "broker", "topic", "bytes"]))
        if len(dead_letters):
            yield from of_letters(dead_letters).to_batches()
    if publishes:
        whole = pa.concat_tables(publishes).sort_by([(name, "ascending") for name in ("event_time_us", "seq")])
        for broker in whole["broker"].unique().to_pylist():
            yield from _of_broker(broker, whole.filter(pc.equal(whole["broker"], broker)), lags).to_batches()


def _of_broker(broker: str, publishes: pa.Table, lags: Sequence[Lag]) -> pa.Table:
    """publishes: in the order of time."""
    topics = publishes["topic"].combine_chunks().dictionary_encode()
    topic: Integers = topics.indices.to_numpy().astype(np.int64)
    t_us: Integers = publishes["event_time_us"].to_numpy()
    sizes = np.clip(publishes["bytes"].to_numpy(), 1, _LARGEST)
    entry = _place_in_topic(topic)
    first = np.flatnonzero(entry == 0)
    every = np.arange(len(topic))
    parts = [_Part(EventKind.ADD, None, every, t_us)]
    for lag in lags:
        parts.append(_Part(EventKind.OPEN, lag.cursor, first, t_us[first]))
        parts += [_Part(kind, lag.cursor, every, t_us + lag.us) for kind in (EventKind.READ, EventKind.MARK)]
    at = np.concatenate([part.t_us for part in parts])
    stage = np.concatenate([np.full(len(part.rows), _STAGES.index(part.kind)) for part in parts])
    order = np.lexsort((stage, at))
    rows = np.concatenate([part.rows for part in parts])[order]
    number = np.repeat(np.arange(len(parts)), [len(part.rows) for part in parts])[order]
    kinds, cursors = (
        pa.array([part.kind.value for part in parts]),
        pa.array([part.cursor for part in parts], pa.string()),
    )
    columns = {
        "broker": pa.repeat(broker, len(rows)),
        "t_us": at[order],
        "seq": np.arange(len(rows)),
        "kind": kinds.take(pa.array(number)),
        "topic": topics.dictionary.take(pa.array(topic[rows])),
        "cursor": cursors.take(pa.array(number)),
        "ledger": np.zeros(len(rows), np.int64),
        "entry": entry[rows],
        "count": np.ones(len(rows), np.int64),
        "sizes": pa.ListArray.from_arrays(np.arange(len(rows) + 1, dtype=np.int32), sizes[rows]),
    }
    nowhere = {one.name: pa.nulls(len(rows), one.type) for one in READ}
    return pa.table(nowhere | {name: pa.array(column) for name, column in columns.items()}).cast(READ)


class _Part(NamedTuple):
    """Events of one kind and cursor. rows: the publish that each is of; t_us: when it happens."""

    kind: EventKind
    cursor: str | None
    rows: Integers
    t_us: Integers


def _place_in_topic(topic: Integers) -> Integers:
    """How many rows of the same topic stand before each."""
    order = np.argsort(topic, kind="stable")
    in_order = topic[order]
    starts = np.flatnonzero(np.diff(in_order, prepend=-1))
    lengths = np.diff(np.append(starts, len(topic)))
    places = np.empty(len(topic), np.int64)
    places[order] = np.arange(len(topic)) - np.repeat(starts, lengths)
    return places
