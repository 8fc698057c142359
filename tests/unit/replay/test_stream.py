"""Rows as streams of Arrow batches: each to its key under every plan, keys one after the other."""

import json

import pyarrow as pa
import pytest

from headgate.arrow.blocks import decode
from headgate.arrow.schemas import DEAD_LETTERS
from headgate.replay.stream import KEYED, replay, route
from headgate.rows.traffic import Parsed
from headgate.throttle.array_form import run_arrays
from headgate.throttle.schemas import EVENTS, TRAFFIC
from unit.replay.scenes import events, moving, plan_in, publish, replayed, steady, trace_of


def parsed(rows, letters=()):
    """Publishes, unless a row says something else, as the parser gives them; and dead letters."""
    columns = pa.unify_schemas([*TRAFFIC.values(), pa.schema([("kind", pa.string())])])
    table = pa.Table.from_pylist([{"kind": "publish"} | row for row in rows], columns)
    return Parsed(table, pa.Table.from_pylist(list(letters), DEAD_LETTERS))


def test_every_row_has_its_key_under_each_plan(tmp_path):
    plans = [plan_in(tmp_path / "a"), plan_in(tmp_path / "b", groups={})]
    rows = [publish(0, "a"), publish(1, "b", tenant="other")]
    routed = pa.Table.from_batches(route(plans, [parsed(rows)]))
    assert [["group gold", "broker a"], ["broker b", "broker b"]] == routed["keys"].to_pylist()
    assert rows == routed.select(EVENTS.names).to_pylist()


def test_a_dispatch_has_no_key(tmp_path):
    rows = [publish(0), publish(1, "b") | {"kind": "dispatch", "subscription": "s"}]
    routed = pa.Table.from_batches(route([plan_in(tmp_path)], [parsed(rows)])).to_pylist()
    assert {("a", 1, None), ("b", 0, None)} == {(row["broker"], len(row["keys"]), row["letter"]) for row in routed}


def test_a_dead_letter_has_nothing_else(tmp_path):
    letter = {"reason": "event_time: got never", "raw": "{}", "source": "f", "offset": 2}
    routed = pa.Table.from_batches(route([plan_in(tmp_path)], [parsed([publish(0)], [letter])])).to_pylist()
    assert letter == json.loads(routed[1].pop("letter"))
    assert [None] * len(routed[1]) == list(routed[1].values())


@pytest.mark.parametrize("batch", [7, 1_000])
def test_keys_stand_one_behind_the_other_and_share_nothing(tmp_path, batch):
    plans = [plan_in(tmp_path / "a"), plan_in(tmp_path / "b", groups={})]
    table = pa.concat_tables([moving(), events(steady("a", 3, 0, 4, tenant="other"))]).sort_by("event_time_us")
    keyed = []
    for number, plan in enumerate(plans):
        routed = pa.Table.from_batches(route([plan], [parsed(table.to_pylist())]))
        keys = [key for (key,) in routed["keys"].to_pylist()]
        rows = [row | {"conf": number, "key": key} for row, key in zip(table.to_pylist(), keys, strict=True)]
        keyed += sorted(rows, key=lambda row: (row["key"], row["event_time_us"]))
    batches = pa.Table.from_pylist(keyed, KEYED).to_batches(max_chunksize=batch)
    found = [{}, {}]
    for out in replay(plans, trace_of(table), lambda _kernel: run_arrays, batches):
        for row in out.to_pylist():
            found[row["conf"]].setdefault(row["kind"], []).extend(decode(row["block"]).to_pylist())
    for number, plan in enumerate(plans):
        expected = {kind: rows for kind, rows in replayed(plan, table).items() if rows}
        assert expected == {kind: sorted(rows, key=repr) for kind, rows in found[number].items()}
