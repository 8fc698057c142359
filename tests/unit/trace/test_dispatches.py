"""Dispatches in a trace: their share, their columns, and nothing else about the rows."""

import csv
import json
from dataclasses import replace

import pyarrow as pa
import pytest

from headgate.trace import SCHEMA, TraceSpec, generate_files, write_trace

SPEC = TraceSpec(events=8_000, files=3, dispatch_share=0.4, subscriptions_per_topic=3)
OF_KIND = ("kind", "producer", "connection", "subscription")


def rows_of(spec):
    return pa.concat_tables(generate_files(spec)).to_pylist()


def test_without_a_share_there_is_no_column_of_subscriptions():
    assert {SCHEMA} == {table.schema for table in generate_files(replace(SPEC, dispatch_share=0.0))}


def test_dispatches_have_their_share_and_all_subscriptions():
    rows = [row for row in rows_of(SPEC) if row["kind"] == "dispatch"]

    assert SPEC.events * 0.4 == pytest.approx(len(rows), rel=0.05)
    assert {"sub-1", "sub-2", "sub-3"} == {row["subscription"] for row in rows}
    assert {(None, None)} == {(row["producer"], row["connection"]) for row in rows}


def test_all_else_is_as_in_the_trace_without_dispatches():
    for row, publish in zip(rows_of(SPEC), rows_of(replace(SPEC, dispatch_share=0.0)), strict=True):
        assert {**publish, **{name: row[name] for name in OF_KIND}} == row
        if row["kind"] == "publish":
            assert {**publish, "subscription": None} == row


def test_a_share_of_1_leaves_no_publishes():
    assert {"dispatch"} == {row["kind"] for row in rows_of(replace(SPEC, dispatch_share=1.0))}


@pytest.mark.parametrize("file_format", ["json", "csv"])
def test_lines_hold_the_rows_of_the_tables(tmp_path, file_format):
    write_trace(SPEC, tmp_path, file_format)
    texts = [path.read_text().splitlines() for path in sorted(tmp_path.iterdir())]
    if file_format == "json":
        found = [json.loads(line) for lines in texts for line in lines]
    else:
        found = [row for lines in texts for row in csv.DictReader(lines)]
    expected = [(row["kind"], row["producer"] or None, row["subscription"] or None) for row in rows_of(SPEC)]

    assert expected == [(row["kind"], row["producer"] or None, row["subscription"] or None) for row in found]


def test_a_spoiled_dispatch_lacks_its_subscription_where_a_publish_lacks_a_name():
    spoiled, good = rows_of(replace(SPEC, bad_share=0.3)), rows_of(SPEC)
    lacking = [
        {name for name in row if row[name] is None and good_row[name] is not None}
        for row, good_row in zip(spoiled, good, strict=True)
        if good_row["kind"] == "dispatch"
    ]

    assert {"subscription", "topic", "kind"} <= set().union(*lacking)
    assert {0, 1} == {len(names) for names in lacking}
