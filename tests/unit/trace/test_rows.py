"""The rows of a trace: reproducible, in order, and the same wherever the files are cut."""

from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from headgate.trace import SCHEMA, TraceGenerator, TraceSpec, generate_file, generate_files

SPEC = TraceSpec(events=40_000)  # three blocks


def whole(spec):
    return pa.concat_tables(generate_files(spec)).combine_chunks()


def times_us(table):
    return table["event_time"].cast(pa.int64()).to_numpy()


def test_equal_specs_give_equal_tables():
    assert whole(SPEC).equals(whole(replace(SPEC)))


def test_another_seed_gives_other_rows():
    assert not whole(SPEC).equals(whole(replace(SPEC, seed=8)))


def test_the_largest_seed_is_a_seed_of_its_own():
    small = TraceSpec(events=1_000, seed=2**63 - 1)
    assert not whole(small).equals(whole(replace(small, seed=2**63 - 2)))


def test_the_trace_is_this_one_in_every_release():
    """A golden row: a change here breaks everybody's recorded results and belongs in the changelog."""
    expected = {
        "event_time": datetime(2026, 1, 5, 9, 0, 0, 8_444, tzinfo=UTC),
        "seq": 0,
        "broker": "broker-1",
        "topic": "persistent://acme/shop/orders",
        "kind": "publish",
        "producer": "acme-shop-orders-p1",
        "connection": "acme-broker-1-c1",
        "messages": 5,
        "bytes": 6455,
    }
    assert [expected] == generate_file(TraceSpec(), 0).slice(0, 1).to_pylist()


def test_every_file_has_the_schema_and_publish_rows_only():
    tables = list(generate_files(SPEC))
    assert [SCHEMA] * SPEC.files == [table.schema for table in tables]
    assert {"publish"} == {kind for table in tables for kind in table["kind"].unique().to_pylist()}


def test_event_time_and_seq_rise_together_within_the_duration():
    table = whole(SPEC)
    times = times_us(table)
    assert np.arange(SPEC.events).tolist() == table["seq"].to_pylist()
    assert (np.diff(times) >= 0).all()
    assert SPEC.start_us <= times[0] <= times[-1] < SPEC.start_us + SPEC.duration_us


def test_a_file_alone_equals_the_file_in_its_sequence():
    for spec in (SPEC, replace(SPEC, disorder_ms=5_000, bad_share=0.1)):
        tables = list(generate_files(spec))
        assert all(generate_file(spec, index).equals(tables[index]) for index in (7, 0, 11))


@settings(max_examples=examples(25))
@given(
    events=st.integers(1, 40_000),
    files=st.integers(1, 40),
    disorder_ms=st.sampled_from([0, 1, 700, 30_000, 600_000]),
    bad_share=st.sampled_from([0.0, 0.2]),
)
def test_the_number_of_files_decides_nothing_but_the_cuts(events, files, disorder_ms, bad_share):
    one = TraceSpec(events=events, files=1, disorder_ms=disorder_ms, bad_share=bad_share)
    many = replace(one, files=min(files, events))
    tables = list(generate_files(many))
    assert whole(one).equals(pa.concat_tables(tables).combine_chunks())
    assert max(table.num_rows for table in tables) - min(table.num_rows for table in tables) <= 1


@pytest.mark.parametrize("disorder_ms", [1, 250, 20_000, 200_000])
def test_a_row_arrives_at_most_the_disorder_behind_later_ones(disorder_ms):
    times = times_us(whole(replace(SPEC, disorder_ms=disorder_ms)))
    behind_us = np.maximum.accumulate(times) - times
    assert 0 < behind_us.max() <= disorder_ms * 1_000


def test_disorder_crosses_files_and_seq_still_says_the_true_order():
    tables = list(generate_files(replace(SPEC, disorder_ms=2_000)))
    assert all(times_us(earlier).max() > times_us(later).min() for earlier, later in pairwise(tables))
    assert pa.concat_tables(tables).combine_chunks().sort_by("seq").equals(whole(SPEC))


def test_disorder_longer_than_many_blocks_is_cut_invariant_too(monkeypatch):
    monkeypatch.setattr("headgate.trace.events.BLOCK_EVENTS", 64)
    spec = TraceSpec(events=5_000, files=1, disorder_ms=10_000)
    assert whole(spec).equals(whole(replace(spec, files=50)))


def test_a_generator_keeps_only_the_blocks_of_one_file():
    spec = TraceSpec(events=400_000, files=25)
    generator = TraceGenerator(spec)
    kept = [len(generator._blocks) for index in range(spec.files) if generator.rows(index)]
    assert max(kept) <= 2
