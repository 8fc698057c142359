"""Marks that a limiter releases at once: each is a row of its table, whatever takes them."""

import pytest

from headgate.arrow import runs
from headgate.engines.batches import BatchWriter, rows_by_kind
from headgate.engines.tables import BufferedTables, SummedTables
from headgate.tables.delta import Tables
from headgate.tables.sums import Sums
from headgate.throttle.array_form import run_arrays
from headgate.throttle.form import Rules
from headgate.throttle.key_operator import step_key
from headgate.throttle.kinds import OUTPUT_BLOCKS
from headgate.throttle.state import KeyState
from headgate.throttle.tables import SCHEMAS
from unit.throttle.domains import changes_block, events_block, limit, tick_block
from unit.throttle.rows import SECOND_US, event

RELEASES = Sums("marks", ("producer", "tenant"), where=(("action", ("unmark",)),))
TABLES = {
    "as they come": lambda folder: Tables(folder, SCHEMAS),
    "kept for a while": lambda folder: BufferedTables(folder, SCHEMAS),
    "sums alone": lambda _: SummedTables([RELEASES]),
}


@pytest.mark.parametrize("tables_in", TABLES.values(), ids=TABLES)
def test_each_mark_that_is_released_is_a_row(tables_in, tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "AT_ONCE", 3)
    tables, told, state = tables_in(tmp_path), [], KeyState()
    writer = BatchWriter(tables, told.append)
    topic = "persistent://acme/ns/t"
    events = [event(n, seq=n, messages=9, producer=f"p{n % 2}", topic=topic) for n in range(8)]
    changes = [limit("default", messages=1), limit("default", at_us=20 * SECOND_US, seq=1)]
    elsewhere = event(9, seq=9, messages=9, producer="q", topic=topic, broker="b2")
    first_publish = event(21 * SECOND_US, seq=10, producer="new", topic=topic)
    batches = [
        [changes_block(changes), events_block([*events[:5], elsewhere])],
        [events_block(events[5:])],
        [events_block([first_publish]), tick_block(22 * SECOND_US), tick_block(22 * SECOND_US, broker="b2")],
    ]
    for number, blocks in enumerate(batches):
        out = step_key("key", state, blocks, Rules(connection_topics=True), run_arrays)
        writer.write(rows_by_kind(((block.kind, block.block) for block in out), OUTPUT_BLOCKS), "job", number)
    if isinstance(tables, BufferedTables):
        tables.flush()
    assert [9, 3, 10] == [result.marks for result in told]
    totals = {(row["producer"], row["tenant"]): row["rows"] for row in tables.totals(RELEASES).to_pylist()}
    assert {("p0", "acme"): 4, ("p1", "acme"): 4, ("q", "acme"): 1} == totals
