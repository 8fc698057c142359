"""Dispatches, subscribes and unloads in a trace: their shares, their columns, and nothing else about the rows."""

import csv
import json
import zlib
from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pytest

from headgate.trace import SCHEMA, TraceSpec, generate_files, write_trace
from headgate.trace.kinds import DURATIONS_MS

SPEC = TraceSpec(events=4_000, files=3, dispatch_share=0.4, subscriptions_per_topic=3)
CONSUMER = ("client", "consumer", "consumer_id")
UNLOADING = ("bundle", "duration_ms")
NOT_OF_SUBSCRIBES = ("producer", "connection", "subscription", "messages", "bytes")
OF_KIND = ("kind", "producer", "connection", "subscription")


def rows_of(spec):
    return pa.concat_tables(generate_files(spec)).to_pylist()


def test_without_a_share_there_is_no_column_of_a_kind():
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


ALL_KINDS = replace(SPEC, subscribe_share=0.2, consumers_per_topic=2)
UNLOADS = replace(SPEC, unload_share=0.2)


@pytest.mark.parametrize("file_format", ["json", "csv"])
@pytest.mark.parametrize("spec", [SPEC, ALL_KINDS, UNLOADS], ids=["dispatches", "subscribes", "unloads"])
def test_lines_hold_the_rows_of_the_tables(tmp_path, spec, file_format):
    """A null is null in JSON, also in a column of numbers, and empty in CSV."""
    write_trace(spec, tmp_path, file_format)
    texts = [path.read_text().splitlines() for path in sorted(tmp_path.iterdir())]
    if file_format == "json":
        found = [json.loads(line) for lines in texts for line in lines]
    else:
        found = [row for lines in texts for row in csv.DictReader(lines)]

    assert list(map(in_words, rows_of(spec))) == list(map(in_words, found))


def in_words(row):
    """The row without its time, numbers as text."""
    return {name: None if value in {None, ""} else str(value) for name, value in row.items() if name != "event_time"}


def test_subscribes_have_their_share_beside_dispatches_and_consumers_of_their_own():
    rows = rows_of(ALL_KINDS)
    kinds = Counter(row["kind"] for row in rows)
    subscribes = [row for row in rows if row["kind"] == "subscribe"]

    assert [row for row in rows_of(SPEC) if row["kind"] == "dispatch"] == [
        {name: row[name] for name in row if name not in CONSUMER} for row in rows if row["kind"] == "dispatch"
    ]
    assert SPEC.events * 0.2 == pytest.approx(kinds["subscribe"], rel=0.05)
    assert {("host-1", "consumer-1", 1), ("host-2", "consumer-2", 2)} == {
        tuple(row[name] for name in CONSUMER) for row in subscribes
    }
    assert {(None,) * 5} == {tuple(row[name] for name in NOT_OF_SUBSCRIBES) for row in subscribes}
    assert {(None,) * 3} == {tuple(row[name] for name in CONSUMER) for row in rows if row["kind"] != "subscribe"}


def test_a_spoiled_subscribe_has_its_defect_in_a_column_of_its_own():
    spoiled, good = rows_of(replace(ALL_KINDS, bad_share=0.3)), rows_of(ALL_KINDS)
    pairs = [(one, other) for one, other in zip(spoiled, good, strict=True) if other["kind"] == "subscribe"]
    changed = [{name for name in other if one[name] != other[name]} for one, other in pairs]

    assert {"client", "consumer", "consumer_id", "topic", "kind", "event_time"} <= set().union(*changed)
    assert {0, 1} == {len(names) for names in changed}
    assert not set().union(*changed) & set(NOT_OF_SUBSCRIBES)


def unloads_in(rows):
    return [row for row in rows if row["kind"] == "unload"]


def test_unloads_have_their_share_beside_dispatches_and_bundles_and_durations_alone():
    rows = rows_of(UNLOADS)
    unloads = unloads_in(rows)

    assert rows_of(SPEC) == [
        {name: row[name] for name in row if name not in UNLOADING} if row["kind"] != "unload" else publish
        for row, publish in zip(rows, rows_of(SPEC), strict=True)
    ]
    assert SPEC.events * 0.2 == pytest.approx(len(unloads), rel=0.05)
    assert {(None,) * 6} == {tuple(row[name] for name in ("topic", *NOT_OF_SUBSCRIBES)) for row in unloads}
    assert {(None,) * 2} == {tuple(row[name] for name in UNLOADING) for row in rows if row["kind"] != "unload"}
    assert set(DURATIONS_MS) == {row["duration_ms"] for row in unloads}


def test_the_bundle_of_an_unload_is_the_range_of_its_namespace_that_its_topics_hash_is_in():
    rows, publishes = rows_of(UNLOADS), rows_of(replace(UNLOADS, unload_share=0.0))
    ranges = set()
    for row, publish in zip(rows, publishes, strict=True):
        if row["kind"] == "unload":
            tenant, namespace, span = row["bundle"].split("/")
            low, high = (int(end, 16) for end in span.split("_"))
            assert publish["topic"].startswith(f"persistent://{tenant}/{namespace}/")
            assert low <= zlib.crc32(publish["topic"].encode()) <= high
            ranges.add((low, high))

    assert 4 == len(ranges)


def test_a_spoiled_unload_has_its_defect_in_a_column_of_its_own():
    spoiled, good = rows_of(replace(UNLOADS, bad_share=0.3)), rows_of(UNLOADS)
    pairs = [(one, other) for one, other in zip(spoiled, good, strict=True) if other["kind"] == "unload"]
    changed = [{name for name in other if one[name] != other[name]} for one, other in pairs]

    assert {"bundle", "duration_ms", "kind", "event_time", "broker"} == set().union(*changed)
    assert {0, 1} == {len(names) for names in changed}


def test_a_spoiled_dispatch_lacks_its_subscription_where_a_publish_lacks_a_name():
    spoiled, good = rows_of(replace(SPEC, bad_share=0.3)), rows_of(SPEC)
    lacking = [
        {name for name in row if row[name] is None and good_row[name] is not None}
        for row, good_row in zip(spoiled, good, strict=True)
        if good_row["kind"] == "dispatch"
    ]

    assert {"subscription", "topic", "kind"} <= set().union(*lacking)
    assert {0, 1} == {len(names) for names in lacking}


CONNECTIONS = replace(SPEC, connection_share=0.3)
OF_CONNECTION = ("action", "command", "io_thread")


def test_connections_have_their_share_and_do_what_they_do_in_pairs():
    """Two rows of a block, one behind the other among those of connections; the last of an odd number is a command."""
    rows = [row for row in rows_of(CONNECTIONS) if row["kind"] == "connection"]

    assert SPEC.events * 0.3 == pytest.approx(len(rows), rel=0.05)
    pairs = list(zip(rows[::2], rows[1::2], strict=False))
    whose = ("broker", "connection", "io_thread", "bytes", "command", "topic", "producer", "messages")
    for one, other in pairs:
        assert [one[name] for name in whose] == [other[name] for name in whose]
        assert (one["topic"], one["producer"], one["messages"]) == (None, None, None)
        is_request = one["action"] == "start"
        assert (is_request, is_request) == (one["bytes"] is not None, one["io_thread"] is not None)
        assert ("SEND" if one["action"] == "command" else None) == one["command"]
    assert {("start", "finish"), ("unwritable", "writable"), ("command", "command")} == {
        (one["action"], other["action"]) for one, other in pairs
    }
    assert len(rows) % 2 == 0 or rows[-1]["action"] == "command"


def test_a_connection_has_one_io_thread():
    threads = {(row["connection"], row["io_thread"]) for row in rows_of(CONNECTIONS) if row["action"] == "start"}

    assert len({connection for connection, _ in threads}) == len(threads)
    assert len({thread for _, thread in threads}) > 1


def test_all_else_is_as_in_the_trace_without_connections():
    for row, other in zip(rows_of(CONNECTIONS), rows_of(SPEC), strict=True):
        if row["kind"] != "connection":
            assert other | dict.fromkeys(OF_CONNECTION) == row


def test_a_spoiled_connection_has_its_defect_in_a_column_that_all_of_them_have():
    spoiled, good = rows_of(replace(CONNECTIONS, bad_share=0.3)), rows_of(CONNECTIONS)
    pairs = [(one, other) for one, other in zip(spoiled, good, strict=True) if other["kind"] == "connection"]
    changed = [{name for name in other if one[name] != other[name]} for one, other in pairs]

    assert {"event_time", "broker", "kind", "connection", "action"} == set().union(*changed)
    assert {0, 1} == {len(names) for names in changed}


def test_lines_hold_rows_of_every_kind(tmp_path):
    spec = replace(ALL_KINDS, connection_share=0.2)
    write_trace(spec, tmp_path, "json")
    lines = [line for path in sorted(tmp_path.iterdir()) for line in path.read_text().splitlines()]
    names = ("kind", "connection", "consumer_id", "messages", "bytes", *OF_CONNECTION)

    assert [[row[name] for name in names] for row in rows_of(spec)] == [
        [json.loads(line)[name] for name in names] for line in lines
    ]
