"""Events of a trace, made in blocks of fixed size, so that a file needs only the blocks that it overlaps."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headgate.trace import draws
from headgate.trace.defects import TYPED_DEFECTS, chosen_defects, spoil_table
from headgate.trace.draws import Floats, Longs
from headgate.trace.kinds import with_kinds
from headgate.trace.layout import Layout
from headgate.trace.load import STEADY, build_load
from headgate.trace.spec import TraceSpec

BLOCK_EVENTS = 16_384
EVENT_STREAM = 0
DRAWS_PER_EVENT = 8
MOST_PUBLISH_BYTES = 5_242_880  # maxMessageSize of Pulsar's brokers

SCHEMA = pa.schema(
    [
        ("event_time", pa.timestamp("us", "UTC")),
        ("seq", pa.int64()),
        ("broker", pa.string()),
        ("topic", pa.string()),
        ("kind", pa.string()),
        ("producer", pa.string()),
        ("connection", pa.string()),
        ("messages", pa.int64()),
        ("bytes", pa.int64()),
    ]
)


@dataclass(frozen=True)
class Rows:
    """Rows before any of them is spoiled. `spoil` is a uniform of each row: it is bad where that is below bad_share."""

    table: pa.Table
    spoil: Floats


@dataclass(frozen=True)
class _Block:
    table: pa.Table
    spoil: Floats
    time_us: Longs
    arrival_us: Longs


class TraceGenerator:
    """The files of one spec, in any order. A file's rows follow from (spec, index) alone.

    Memory: the blocks of one file and, with disorder, those within disorder_ms on both sides; 16 bytes a topic.
    """

    def __init__(self, spec: TraceSpec) -> None:
        self.spec = spec
        self._layout = Layout(spec)
        self._load = build_load(spec, self._layout.noisy_topic)
        self._popularity = draws.zipf_cumulative(spec.topics, spec.zipf)
        self._batches = draws.batch_table(spec.batch_mean)
        self._sizes = draws.size_table(spec.message_bytes)
        self._blocks: dict[int, _Block] = {}

    def rows(self, index: int) -> Rows:
        """File `index`, 0 to files - 1, in the order in which its rows arrive."""
        low, high = self._position(index), self._position(index + 1)
        first, last = low // BLOCK_EVENTS, (high - 1) // BLOCK_EVENTS
        if self.spec.disorder_ms == 0:
            blocks = self._keep(first, last)
            begin = low - first * BLOCK_EVENTS
            table = pa.concat_tables([block.table for block in blocks]).slice(begin, high - low)
            return Rows(table, np.concatenate([block.spoil for block in blocks])[begin : begin + high - low])
        return self._arrived(low, high, *self._blocks_in_reach(first, last))

    def table(self, index: int) -> pa.Table:
        """File `index` with its typed bad rows, as parquet and Delta hold it."""
        rows = self.rows(index)
        return spoil_table(rows.table, chosen_defects(rows.spoil, self.spec.bad_share, TYPED_DEFECTS))

    def _position(self, index: int) -> int:
        return index * self.spec.events // self.spec.files

    def _arrived(self, low: int, high: int, first: int, last: int) -> Rows:
        """Positions low to high of the order of arrival.

        A row arrives 0 to disorder_ms after its event time, so the row at a position has an event time of at most
        disorder_ms before that of the same position in true order, and arrives at most disorder_ms after it. All rows
        before block `first` arrive earlier than position `low` and all after block `last` later than `high - 1`.
        """
        blocks = self._keep(first, last)
        begin = low - first * BLOCK_EVENTS
        arrival = np.concatenate([block.arrival_us for block in blocks])
        order = np.argsort(arrival, kind="stable")[begin : begin + high - low]
        table = pa.concat_tables([block.table for block in blocks]).take(pa.array(order))
        return Rows(table, np.concatenate([block.spoil for block in blocks])[order])

    def _blocks_in_reach(self, first: int, last: int) -> tuple[int, int]:
        """The range of blocks, widened by at least disorder_ms of event time on both sides."""
        reach_us = self.spec.disorder_ms * 1_000
        begin_us = int(self._block(first).time_us[0]) - reach_us
        end_us = int(self._block(last).time_us[-1]) + reach_us
        while first > 0 and self._block(first).time_us[0] >= begin_us:
            first -= 1
        while (last + 1) * BLOCK_EVENTS < self.spec.events and self._block(last).time_us[-1] <= end_us:
            last += 1
        return first, last

    def _keep(self, first: int, last: int) -> list[_Block]:
        """Blocks first to last; all others are forgotten."""
        self._blocks = {number: self._block(number) for number in range(first, last + 1)}
        return list(self._blocks.values())

    def _block(self, number: int) -> _Block:
        if number not in self._blocks:
            self._blocks[number] = self._draw_block(number)
        return self._blocks[number]

    def _draw_block(self, number: int) -> _Block:
        spec, layout = self.spec, self._layout
        low = number * BLOCK_EVENTS
        count = min(BLOCK_EVENTS, spec.events - low)
        when, component, which, who, batch, size, delay, spoil = draws.uniforms(
            spec.seed, EVENT_STREAM, number, DRAWS_PER_EVENT, count
        )
        segment, time_us = self._load.locate((low + np.sort(when) * count) / spec.events)
        topic = self._topics(segment, component, which)
        stage = layout.stage(topic, time_us)
        producer = (who * layout.producers(topic)).astype(np.int64)
        messages = draws.pick(batch, self._batches)
        columns = [
            pa.array(spec.start_us + time_us).cast(SCHEMA.field("event_time").type),
            pa.array(np.arange(low, low + count)),
            layout.broker_names(topic, stage),
            layout.topic_names(topic),
            pa.repeat(pa.scalar("publish"), count),
            layout.producer_names(topic, producer),
            layout.connection_names(topic, producer, stage),
            pa.array(messages),
            pa.array(np.minimum(messages * draws.pick(size, self._sizes), MOST_PUBLISH_BYTES)),
        ]
        arrival_us = time_us + (delay * (spec.disorder_ms * 1_000 + 1)).astype(np.int64)
        table = with_kinds(pa.Table.from_arrays(columns, schema=SCHEMA), spec, number)
        return _Block(table, spoil, time_us, arrival_us)

    def _topics(self, segment: Longs, component: Floats, which: Floats) -> Longs:
        """The flood's topic, the burst's, or one drawn by popularity."""
        steady = np.searchsorted(self._popularity, which, side="right")
        noisy, bursting = self._load.noisy[segment], self._load.bursting[segment]
        burst_topic = self._load.burst_topic[segment]
        in_burst = (component < noisy + bursting) & (burst_topic != STEADY)
        return np.where(component < noisy, self._layout.noisy_topic, np.where(in_burst, burst_topic, steady))


def generate_file(spec: TraceSpec, index: int) -> pa.Table:
    """One file of the trace, 0 to spec.files - 1, equal to the index-th of `generate_files(spec)`."""
    return TraceGenerator(spec).table(index)


def generate_files(spec: TraceSpec) -> Iterator[pa.Table]:
    """The trace as one table a file, in order. Columns and types are SCHEMA's; bad rows are typed ones.

    With rows of other kinds there are their columns before `messages`, too (kinds.COLUMNS).
    """
    generator = TraceGenerator(spec)
    return (generator.table(index) for index in range(spec.files))
