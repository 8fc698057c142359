"""Rows as streams of Arrow batches: each to its key under every plan, keys one after the other."""

import json

import pyarrow as pa
import pytest

from headgate.conf import InputSettings
from headgate.replay.stream import KEYED, replay, route
from headgate.throttle.array_engine import run_arrays
from headgate.throttle.blocks import decode
from headgate.throttle.faults import faults_of
from headgate.throttle.schemas import EVENTS, TRAFFIC
from unit.replay.scenes import events, moving, plan_in, publish, replayed, steady, trace_of

PARSED = pa.unify_schemas([*TRAFFIC.values(), pa.schema([(name, pa.string()) for name in ("kind", "bad", "file")])])


def parsed(rows, bad=None):
    """As spark.parse gives them: `bad` for a bad row, which has no columns."""
    dressed = [{"kind": "publish"} | row | {"bad": bad, "file": "f"} for row in rows]
    return pa.RecordBatch.from_pylist(dressed, PARSED)


def test_every_row_has_its_key_under_each_plan(tmp_path):
    plans = [plan_in(tmp_path / "a"), plan_in(tmp_path / "b", groups={})]
    rows = [publish(0, "a"), publish(1, "b", tenant="other")]
    routed = pa.Table.from_batches(route(plans, faults_of(InputSettings()), [parsed(rows)]))
    assert [["group gold", "broker a"], ["broker b", "broker b"]] == routed["keys"].to_pylist()
    assert rows == routed.select(EVENTS.names).to_pylist()


def test_a_dispatch_has_no_key(tmp_path):
    rows = [publish(0), publish(1, "b") | {"kind": "dispatch", "subscription": "s"}]
    routed = pa.Table.from_batches(route([plan_in(tmp_path)], faults_of(InputSettings()), [parsed(rows)])).to_pylist()
    assert {("a", 1, None), ("b", 0, None)} == {(row["broker"], len(row["keys"]), row["letter"]) for row in routed}


def test_a_bad_row_becomes_a_letter_with_its_line(tmp_path):
    bad = json.dumps({"faults": 1, "got": {"event_time": "never"}, "raw": "{}", "source": "f"})
    batches = [parsed([publish(0)]), parsed([dict.fromkeys(EVENTS.names)], bad)]
    routed = pa.Table.from_batches(route([plan_in(tmp_path)], faults_of(InputSettings()), batches)).to_pylist()
    letter = json.loads(routed[1]["letter"])
    assert ("f", 2) == (letter["source"], letter["offset"])
    assert letter["reason"].startswith("event_time: got never")


@pytest.mark.parametrize("batch", [7, 1_000])
def test_keys_stand_one_behind_the_other_and_share_nothing(tmp_path, batch):
    plans = [plan_in(tmp_path / "a"), plan_in(tmp_path / "b", groups={})]
    table = pa.concat_tables([moving(), events(steady("a", 3, 0, 4, tenant="other"))]).sort_by("event_time_us")
    keyed = []
    for number, plan in enumerate(plans):
        routed = pa.Table.from_batches(route([plan], (), [parsed(table.to_pylist())]))
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
