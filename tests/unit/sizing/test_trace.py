"""Events of a sweep as files: what is read of rows, what a sample keeps of them, what dead letters tell."""

from itertools import islice

import pyarrow as pa

from headgate.arrow.schemas import DEAD_LETTERS
from headgate.cache.schemas import ROWS
from headgate.core.cache.reasons import DeadReason
from headgate.core.cache.rows import Row
from headgate.core.cache.settings import CacheSettings
from headgate.core.cache.traces.sampling import SampledRows, sampled
from headgate.core.cache.traces.workload import generate
from headgate.rows.traffic import Parsed
from headgate.sizing.trace import EVENTS, READ, batches_of, cut, event_at, letter_of_event, read, rows_in


def parsed(*letters: dict, **columns: list) -> Parsed:
    """Rows as the parser of cache events gives them, and dead letters."""
    length = len(next(iter(columns.values()))) if columns else 0
    rows = pa.Table.from_pydict({name: [None] * length for name in ROWS.names} | columns, ROWS)
    return Parsed(rows, pa.Table.from_pylist(list(letters), DEAD_LETTERS))


def test_rows_come_with_their_places_and_dead_letters_with_nothing_else() -> None:
    letter = {"reason": "bad_row: seq", "raw": "{", "source": "f", "offset": 4}
    rows = {"event_time_us": [1, 2], "kind": ["topic_clear"] * 2, "topic": ["t"] * 2, "offset": [1, 3]}
    table = pa.Table.from_batches(list(read([parsed(letter, seq=[1, 2], sizes=[[5], None], **rows)])))
    assert table.schema == READ
    assert table.select(["seq", "offset", "sizes", "defect"]).to_pylist() == [
        {"seq": 1, "offset": 1, "sizes": [5], "defect": None},
        {"seq": 2, "offset": 3, "sizes": None, "defect": None},
        {"seq": None, "offset": 4, "sizes": None, "defect": "bad_row: seq"},
    ]
    assert table["broker"][2].as_py() is None


def test_a_sample_of_batches_is_that_of_rows_each_with_its_place() -> None:
    rows = list(islice(generate("mixed", 1), 20_000))
    sample, lines, found = SampledRows(10), iter(range(len(rows))), []
    for batch in batches_of(rows):
        offsets = pa.array([next(lines) for _ in range(len(batch))], pa.int64())
        kept = cut(sample, batch.set_column(EVENTS.names.index("offset"), "offset", offsets))
        found += zip(rows_in(kept), kept["offset"].to_pylist(), strict=True)
    assert [row for row, _ in found] == list(sampled(rows, 10))
    assert all((row.t_us, row.seq) == (rows[line].t_us, rows[line].seq) for row, line in found)


def test_a_batch_of_which_a_sample_keeps_nothing_is_empty() -> None:
    (batch,) = batches_of([Row(5, 0, "read", "t", "c", 0, 0, 1, [1])])
    assert sum(len(cut(SampledRows(1000), batch)) for _ in range(1)) == 0


def one_row(kind: str, ledger: int, **columns: list) -> pa.RecordBatch:
    at = {"event_time_us": [7], "ledger": [ledger], "entry": [0], "source": ["f"], "offset": [1], "sizes": [[5]]}
    (rows,) = read([parsed(seq=[3], kind=[kind], topic=["t"], **at, **columns)])
    return rows


def test_a_dead_letter_tells_what_the_job_tells_of_the_row() -> None:
    letter = letter_of_event("b", event_at(one_row("add", 0, raw=["text"]), 0), DeadReason.LATE, CacheSettings())
    assert letter["reason"].startswith("late: (event_time, seq) is not above")
    assert (letter["raw"], letter["source"], letter["offset"]) == ("text", "f", 1)


def test_what_can_change_nothing_has_no_part_in_the_trace() -> None:
    """Nor moves its end: a row may be dated a year ahead. Rows of kind conf are left out anyhow."""
    (row,) = one_row("add", -1, raw=["text"]).to_pylist()
    assert row["defect"].endswith("; at fault: ledger")
    assert (row["raw"], row["source"], row["offset"]) == ("text", "f", 1)
    (row,) = one_row("add", -1, broker=["b"]).to_pylist()
    assert '"broker": "b"' in row["raw"]
    assert [None, None] == [one_row(kind, 0).to_pylist()[0]["defect"] for kind in ("add", "conf")]
