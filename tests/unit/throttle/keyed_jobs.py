"""Keys of a job under some routing, stepped by hand, batch by batch: rows, control rows and ticks in, tables out."""

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from itertools import chain, pairwise
from typing import NamedTuple

import pyarrow as pa
from hypothesis import strategies as st

from headgate.arrow.schemas import DEAD_LETTERS
from headgate.keyed.operator import Block
from headgate.throttle.array_form import run_arrays
from headgate.throttle.key_operator import step_key
from headgate.throttle.limits.control import CONF, changes_in, pack_control, tick_row
from headgate.throttle.routing import pack
from headgate.throttle.schemas import CONTROL, MARKS, PROGRESS, TOPIC_USAGE, UNLOAD_OUTCOMES
from headgate.throttle.state import VERSION, KeyState, decode_state, encode_state
from unit.throttle.domains import end_us, rows_in
from unit.throttle.rows import START_US, parsed

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
WRITTEN = {"marks": MARKS, "topic_usage": TOPIC_USAGE, "dead_letters": DEAD_LETTERS, "unloads": UNLOAD_OUTCOMES}


def control_table(changes, source=CONF):
    """The control table with a row for each of `changes`."""
    columns = ("seq", "broker", "kind", "scope", "name", "messages_per_s", "bytes_per_s", "group_name")
    columns += ("starts_per_s", "timeout_ms")
    rows = [
        {column: getattr(change, column, None) for column in columns}
        | {"effective_time": EPOCH + timedelta(microseconds=change.effective_us), "source": source}
        for change in changes
    ]
    return pa.Table.from_pylist(rows, CONTROL)


class Tick(NamedTuple):
    at_us: int
    broker: str | None = None
    finish: bool = False


class Batch(NamedTuple):
    """What one batch brings: rows of traffic, limit changes that somebody appended, ticks."""

    rows: list
    changes: list = ()
    ticks: list = ()


class Job:
    """Keys under a routing, stepped batch by batch with their state stored in between."""

    def __init__(self, routing, rules, changes=()):
        control = control_table(changes)
        self.routing, self.rules = routing, rules
        self.given = tuple(changes_in(control)) if routing.by_topic else ()
        self.stored = {}
        self.out = []
        self.step(pack_control(routing, control.to_batches()))

    def batch(self, batch):
        control = [control_table(batch.changes, source="admin"), self._ticks(batch.ticks)]
        packed = [pack_control(self.routing, table.to_batches()) for table in control]
        self.step(chain(pack(self.routing, [parsed(batch.rows)]), *packed))

    def finish(self, at_us):
        self.batch(Batch([], ticks=[Tick(at_us, finish=True)]))

    def _ticks(self, ticks):
        keys = list(self.stored) if self.routing.by_topic else [None]
        rows = [
            tick_row(EPOCH + timedelta(microseconds=START_US + at_us), finish=finish, broker=broker, key=key)
            for at_us, broker, finish in ticks
            for key in keys
        ]
        return pa.Table.from_pylist(rows, CONTROL)

    def step(self, packed):
        blocks = defaultdict(list)
        for batch in packed:
            for row in batch.to_pylist():
                blocks[row["key"]].append(Block(row["kind"], 0, row["block"]))
        for key, of_key in blocks.items():
            state = decode_state(VERSION, self.stored[key]) if key in self.stored else KeyState()
            self.out += step_key(key, state, of_key, self.rules, run_arrays, self.given)
            self.stored[key] = encode_state(state)

    @property
    def written(self):
        return [sorted(rows_in(self.out, kind, schema), key=str) for kind, schema in WRITTEN.items()]

    @property
    def late(self):
        return sum(row["late"] for row in rows_in(self.out, "progress", PROGRESS))


def written_by(routing, rows, changes, rules, places, later=()):
    """What a job writes for `rows` in batches that end at `places`, and a finish.

    changes: of the conf files. later: changes that come with the batches, each in one of those in which it is not late.
    """
    job = Job(routing, rules, changes)
    batches = [Batch(rows[start:end], []) for start, end in pairwise([0, *places, len(rows)])]
    reached_us = [-1, *(rows[place - 1]["event_time_us"] for place in places)]
    for change in later:
        in_time = [batch for batch, at_us in zip(batches, reached_us, strict=True) if at_us < change.effective_us]
        in_time[change.seq % len(in_time)].changes.append(change)
    for batch in batches:
        job.batch(batch)
    job.finish(end_us(rows))
    return job.written


batch_ends = st.lists(st.integers(1, 20), max_size=3).map(sorted)
