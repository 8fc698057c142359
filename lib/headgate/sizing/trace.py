"""Cache events as files that every run of a sweep reads for itself: one broker a folder, rows in order."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from headgate.cache import schemas
from headgate.cache.events.dead_letters import letter_of
from headgate.cache.events.parse import parse_cache_events
from headgate.cache.events.validation import letters_by_place
from headgate.conf import InputSettings
from headgate.core.cache.reasons import DeadReason
from headgate.core.cache.rows import EventKind, Row
from headgate.core.cache.settings import CacheSettings
from headgate.core.cache.traces.sampling import SampledRows
from headgate.core.cache.traces.workload import generate
from headgate.rows.batches import parsed
from headgate.rows.traffic import Parsed

COLUMNS = tuple(name for name in Row._fields if name != "conf")
"""Of a row: all but conf, which a sweep sets itself."""
PLACE = ("raw", "source", "offset")
"""What dead letters tell of a row beside it."""
EVENTS = pa.schema([("t_us", pa.int64()), *(schemas.ROWS.field(name) for name in (*COLUMNS[1:], *PLACE))])
READ = pa.schema([("broker", pa.string()), *EVENTS, ("defect", pa.string())])
"""Events of all brokers as they were read. defect: why a row has no part in the order of its broker's rows."""
ROWS_AT_ONCE = 16_384


def read_input(format_: str, settings: InputSettings, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of an input (rows.batches.parsed) as READ."""
    return read(parsed(partial(parse_cache_events, settings=settings), format_, schemas.INPUT, batches))


def read(parts: Iterable[Parsed]) -> Iterator[pa.RecordBatch]:
    """What became of raw rows as READ. What can change nothing has a defect, but for rows of kind conf."""
    for rows, dead_letters in parts:
        whole = _with_defects(rows.append_column("defect", pa.nulls(len(rows), pa.string())))
        named = whole.rename_columns({"event_time_us": "t_us"})
        yield from named.select(READ.names).cast(READ).to_batches()
        if len(dead_letters):
            yield from of_letters(dead_letters).to_batches()


def of_letters(letters: pa.Table) -> pa.Table:
    """Dead letters as rows without a place."""
    said = {"defect": letters["reason"]} | {name: letters[name] for name in PLACE}
    return pa.table([said.get(one.name, pa.nulls(len(letters), one.type)) for one in READ], schema=READ)


def _with_defects(rows: pa.Table) -> pa.Table:
    letters = letters_by_place(rows.select(schemas.ROWS.names))
    kinds, defects, raws = (rows[name].to_pylist() if letters else [] for name in ("kind", "defect", "raw"))
    for place, letter in letters.items():
        if defects[place] is None and kinds[place] != EventKind.CONF:
            defects[place], raws[place] = letter["reason"], letter["raw"]
    for name, values in (("defect", defects), ("raw", raws)) if letters else ():
        rows = rows.set_column(rows.column_names.index(name), name, pa.array(values, pa.string()))
    return rows


def batches_in(folder: str) -> Iterator[pa.RecordBatch]:
    """The rows of one broker, in the order in which they were written; read a part at a time."""
    part = ds.dataset(folder, schema=EVENTS, format="parquet")
    yield from part.to_batches(batch_size=ROWS_AT_ONCE, batch_readahead=1, fragment_readahead=1, use_threads=False)


def rows_in(batch: pa.RecordBatch) -> Iterator[Row]:
    """The rows of a batch with at least the columns of COLUMNS."""
    return map(Row._make, zip(*(batch[name].to_pylist() for name in COLUMNS), _nothing(batch), strict=True))


def _nothing(batch: pa.RecordBatch) -> Iterable[None]:
    """No conf."""
    return [None] * len(batch)


def event_at(batch: pa.RecordBatch, place: int) -> dict[str, Any]:
    """One row by its columns, for who wants to tell of it."""
    (event,) = batch.slice(place, 1).to_pylist()
    return event  # type: ignore[no-any-return]


def letter_of_event(
    broker: str, event: Mapping[str, Any], reason: DeadReason, settings: CacheSettings
) -> dict[str, Any]:
    """A row of `dead_letters`, as the entry cache's job writes it. event: as `event_at` has it."""
    row = Row(**{name: event[name] for name in COLUMNS})
    return letter_of(row, {**event, "broker": broker}, reason, settings)


def batches_of(rows: Iterable[Row]) -> Iterator[pa.RecordBatch]:
    """Rows as batches of EVENTS; they came from nowhere."""
    waiting = iter(rows)
    while some := list(islice(waiting, ROWS_AT_ONCE)):
        yield _batch(some, {})


def cut(sample: SampledRows, batch: pa.RecordBatch) -> pa.RecordBatch:
    """What the sample has of one broker's EVENTS, which come in their order."""
    rows = [sample.of(row) for row in rows_in(batch)]
    kept = pa.array([place for place, row in enumerate(rows) if row is not None], pa.int64())
    return _batch([row for row in rows if row is not None], {name: batch[name].take(kept) for name in PLACE})


def _batch(rows: Sequence[Row], places: Mapping[str, pa.Array]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True) if rows else ((),) * len(Row._fields)
    arrays = {name: pa.array(values, EVENTS.field(name).type) for name, values in zip(COLUMNS, columns, strict=False)}
    nowhere = {name: pa.nulls(len(rows), EVENTS.field(name).type) for name in PLACE}
    return pa.RecordBatch.from_pydict({**nowhere, **places, **arrays}, EVENTS)


def generated(family: str, seed: int, sizes: str, scale: int) -> Iterator[pa.RecordBatch]:
    """The made-up traffic of one broker as READ; the broker is called after the seed (entry-cache 15)."""
    for batch in batches_of(generate(family, seed, sizes, scale)):
        whole = batch.add_column(0, "broker", pa.repeat(f"{family}-{seed}", len(batch)))
        yield whole.append_column("defect", pa.nulls(len(batch), pa.string()))
