"""Rows through a replay as streams of Arrow batches, in and out: what runs on Spark's workers. No engine."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.blocks import encode
from headgate.arrow.columns import encoded
from headgate.conf import InputSettings
from headgate.replay.plan import Keys, Plan
from headgate.replay.run import KeyRun, Trace
from headgate.rows.batches import parsed
from headgate.rows.kinds import INPUT, PUBLISH
from headgate.rows.traffic import Parsed, parse_traffic
from headgate.throttle.form import Form
from headgate.throttle.schemas import EVENTS

ROUTED = pa.schema([*EVENTS, ("keys", pa.list_(pa.string())), ("letter", pa.string())])
"""A row of traffic with its key under each plan, none for what is no publish; or a dead letter as JSON alone."""
KEYED = pa.schema([("conf", pa.int32()), ("key", pa.string()), *EVENTS])
"""A row of traffic on its way to one plan, by its number."""
REPLAYED = pa.schema([("conf", pa.int32()), ("kind", pa.string()), ("block", pa.binary())])
"""Rows of a kind that came out of one plan (run.Emit), as a block."""


def route_input(
    format_: str, settings: InputSettings, plans: Sequence[Plan], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Rows of an input (rows.batches.parsed) to ROUTED. Dead letters are those of a live job."""
    return route(plans, parsed(partial(parse_traffic, settings=settings), format_, INPUT, batches))


def route(plans: Sequence[Plan], parts: Iterable[Parsed]) -> Iterator[pa.RecordBatch]:
    """What became of raw rows to ROUTED; rows of other kinds than publishes have no key."""
    keys = [Keys(plan) for plan in plans]
    for rows, dead_letters in parts:
        is_publish = pc.equal(rows["kind"], PUBLISH.name)
        publishes, others = rows.filter(is_publish), rows.filter(pc.invert(is_publish))
        if len(publishes):
            yield from _routed(keys, publishes.select(EVENTS.names).cast(EVENTS)).to_batches()
        if len(others):
            yield from _left_out(others).to_batches()
        if len(dead_letters):
            letters = [{"letter": json.dumps(letter)} for letter in dead_letters.to_pylist()]
            yield from pa.Table.from_pylist(letters, ROUTED).to_batches()


def _routed(keys: Sequence[Keys], events: pa.Table) -> pa.Table:
    of_plans = [one.of(events) for one in keys]
    names = pa.concat_arrays([one.dictionary for one in of_plans])
    firsts = np.cumsum([0, *(len(one.dictionary) for one in of_plans)])
    codes = np.stack([one.indices.to_numpy() + first for one, first in zip(of_plans, firsts, strict=False)], axis=1)
    offsets = np.arange(0, codes.size + 1, len(keys), dtype=np.int32)
    lists = pa.ListArray.from_arrays(pa.array(offsets), names.take(pa.array(codes.ravel())))
    return pa.table([*events.columns, lists, pa.nulls(len(events), pa.string())], schema=ROUTED)


def _left_out(others: pa.Table) -> pa.Table:
    """Rows that are counted and replayed under no plan."""
    count = len(others)
    columns = {
        "broker": others["broker"],
        "event_time_us": others["event_time_us"],
        "keys": pa.array([[]] * count, ROUTED.field("keys").type),
    }
    return pa.table([columns.get(one.name, pa.nulls(count, one.type)) for one in ROUTED], schema=ROUTED)


def replay(
    plans: Sequence[Plan], trace: Trace, form_of: Callable[[str], Form], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Rows of KEYED, those of a plan and key one behind the other by event_time_us, to REPLAYED.

    form_of: the form of a name.
    """
    out: list[tuple[int, str, bytes]] = []
    run: KeyRun | None = None
    now: tuple[int, str] | None = None
    for place, events in _runs(batches):
        if run is None or place != now:
            if run is not None:
                run.end()
            plan = plans[place[0]]
            run, now = KeyRun(place[1], plan, trace, form_of(plan.kernel), _emit_to(out, place[0])), place
        run.take(events)
        yield from _drained(out)
    if run is not None:
        run.end()
    yield from _drained(out)


def _runs(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[tuple[int, str], pa.Table]]:
    """The rows of each plan and key that stand together."""
    for batch in batches:
        if not batch.num_rows:
            continue
        rows = pa.Table.from_batches([batch])
        confs = rows["conf"].to_numpy()
        names, codes = encoded(rows["key"])
        ends = np.flatnonzero((np.diff(confs) != 0) | (np.diff(codes) != 0)) + 1
        events = rows.select(EVENTS.names).cast(EVENTS)
        for start, end in pairwise([0, *ends.tolist(), len(rows)]):
            yield (int(confs[start]), names[int(codes[start])].as_py()), events.slice(start, end - start)


def _emit_to(out: list[tuple[int, str, bytes]], conf: int) -> Callable[[str, pa.Table], None]:
    def emit(kind: str, rows: pa.Table) -> None:
        if len(rows):
            out.append((conf, kind, encode(rows)))

    return emit


def _drained(out: list[tuple[int, str, bytes]]) -> Iterator[pa.RecordBatch]:
    if out:
        columns: list[Any] = list(zip(*out, strict=True))
        arrays = [pa.array(column, field.type) for column, field in zip(columns, REPLAYED, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=REPLAYED)
        out.clear()
