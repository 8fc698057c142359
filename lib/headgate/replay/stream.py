"""Rows through a replay as streams of Arrow batches, in and out: what runs on Spark's workers. No engine."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from headgate.replay.plan import Keys, Plan
from headgate.replay.run import KeyRun, Trace
from headgate.throttle.blocks import decode, encode
from headgate.throttle.columns import encoded
from headgate.throttle.faults import Fault
from headgate.throttle.routing import Routing, pack
from headgate.throttle.schemas import EVENTS, TRAFFIC
from headgate.throttle.step import Engine

ROUTED = pa.schema([*EVENTS, ("keys", pa.list_(pa.string())), ("letter", pa.string())])
"""A row of traffic with its key under each plan, none for a dispatch; or a dead letter as JSON, and nothing else."""
KEYED = pa.schema([("conf", pa.int32()), ("key", pa.string()), *EVENTS])
"""A row of traffic on its way to one plan, by its number."""
REPLAYED = pa.schema([("conf", pa.int32()), ("kind", pa.string()), ("block", pa.binary())])
"""Rows of a kind that came out of one plan (run.Emit), as a block."""
LEFT_OUT = tuple(kind for kind in TRAFFIC if kind != "events")
"""Kinds of blocks that are replayed under no plan."""
_WHOLE = Routing(slots=1)


def route(
    plans: Sequence[Plan], faults: Sequence[Fault], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Parsed rows (spark.parse) to ROUTED. What is wrong with a row, and where it stood, is said as in a live job."""
    keys = [Keys(plan) for plan in plans]
    for packed in pack(_WHOLE, faults, iter(batches)):
        for kind, block in zip(packed["kind"].to_pylist(), packed["block"].to_pylist(), strict=True):
            if kind == "events":
                yield from _routed(keys, decode(block)).to_batches()
            elif kind in LEFT_OUT:
                yield from _left_out(decode(block)).to_batches()
            elif kind == "dead_letters":
                letters = [{"letter": json.dumps(letter)} for letter in decode(block).to_pylist()]
                yield from pa.Table.from_pylist(letters, ROUTED).to_batches()


def _routed(keys: Sequence[Keys], events: pa.Table) -> pa.Table:
    of_plans = [one.of(events) for one in keys]
    names = pa.concat_arrays([one.dictionary for one in of_plans])
    firsts = np.cumsum([0, *(len(one.dictionary) for one in of_plans)])
    codes = np.stack([one.indices.to_numpy() + first for one, first in zip(of_plans, firsts, strict=False)], axis=1)
    offsets = np.arange(0, codes.size + 1, len(keys), dtype=np.int32)
    lists = pa.ListArray.from_arrays(pa.array(offsets), names.take(pa.array(codes.ravel())))
    return pa.table([*events.columns, lists, pa.nulls(len(events), pa.string())], schema=ROUTED)


def _left_out(dispatches: pa.Table) -> pa.Table:
    """Rows that are counted and replayed under no plan."""
    count = len(dispatches)
    columns = {
        "broker": dispatches["broker"],
        "event_time_us": dispatches["event_time_us"],
        "keys": pa.array([[]] * count, ROUTED.field("keys").type),
    }
    return pa.table([columns.get(one.name, pa.nulls(count, one.type)) for one in ROUTED], schema=ROUTED)


def replay(
    plans: Sequence[Plan], trace: Trace, engine_of: Callable[[str], Engine], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Rows of KEYED, those of a plan and key one behind the other by event_time_us, to REPLAYED.

    engine_of: the engine of a name.
    """
    out: list[tuple[int, str, bytes]] = []
    run: KeyRun | None = None
    now: tuple[int, str] | None = None
    for place, events in _runs(batches):
        if run is None or place != now:
            if run is not None:
                run.end()
            plan = plans[place[0]]
            run, now = KeyRun(place[1], plan, trace, engine_of(plan.kernel), _emit_to(out, place[0])), place
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
