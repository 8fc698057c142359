"""What the traffic looks like, checked against the parameters that it was made from."""

import re

import numpy as np
import pyarrow as pa
import pytest

from headgate.trace import TraceSpec, generate_files
from headgate.trace.draws import batch_table, size_table
from headgate.trace.layout import Layout
from headgate.trace.load import build_load

NOISY = "persistent://hooli/ads/clicks"


def frame(**fields):
    return pa.concat_tables(generate_files(TraceSpec(**fields))).to_pandas()


@pytest.fixture(scope="module")
def default():
    return frame()


def seconds(rows, spec):
    return (rows["event_time"].astype("int64") - spec.start_us) / 1e6


def share_inside(rows, spec, windows_us):
    time_us = (seconds(rows, spec) * 1e6).to_numpy()
    return np.logical_or.reduce([(begin <= time_us) & (time_us < end) for begin, end in windows_us]).mean()


@pytest.mark.parametrize("zipf", [0.0, 0.8, 1.5])
def test_topics_are_as_popular_as_zipf_says(zipf):
    rows = frame(topics=200, zipf=zipf, noisy_share=0.0, burst_share=0.0)
    weights = np.arange(1, 201, dtype=float) ** -zipf
    names = Layout(TraceSpec(topics=200, zipf=zipf)).topic_names(np.arange(200)).to_pylist()
    shares = rows["topic"].value_counts(normalize=True).reindex(names, fill_value=0.0).to_numpy()
    expected = weights / weights.sum()
    tolerance = 5 * np.sqrt(expected * (1 - expected) / len(rows))
    assert (np.abs(shares - expected) < tolerance).all()


def test_the_noisy_neighbour_sends_its_share_and_only_while_it_floods(default):
    spec = TraceSpec()
    noisy = default[default["topic"] == NOISY]
    own = 15**-spec.zipf / (np.arange(1, 61, dtype=float) ** -spec.zipf).sum()
    expected = spec.noisy_share + (1 - spec.noisy_share - spec.burst_share) * own
    assert expected == pytest.approx(len(noisy) / len(default), abs=0.01)
    floods_us = [(21e6, 39e6), (81e6, 99e6)]
    assert share_inside(noisy, spec, floods_us) > 0.95
    assert share_inside(default[default["topic"] != NOISY], spec, floods_us) < 0.4


def test_without_a_noisy_share_nobody_floods():
    rows = frame(noisy_share=0.0, zipf=0.0, burst_share=0.0)
    assert rows["topic"].value_counts(normalize=True).max() < 0.02


def test_a_burst_lifts_one_other_topic_far_above_its_mean():
    spec = TraceSpec(burst_share=0.3, noisy_share=0.0, bursts=4, swing=0.0)
    rows = frame(burst_share=0.3, noisy_share=0.0, bursts=4, swing=0.0)
    load = build_load(spec, Layout(spec).noisy_topic)
    windows = [(load.edges_us[at], load.edges_us[at + 1]) for at in np.flatnonzero(load.bursting > 0)]
    in_bursts = share_inside(rows, spec, windows)
    expected = 0.3 + 0.7 * 4 * 0.5 / 120
    assert expected == pytest.approx(in_bursts, abs=0.01)


@pytest.mark.parametrize(("topics", "expected"), [(1, {0}), (2, {0}), (4, {0, 1, 2}), (16, set(range(16)) - {14})])
def test_any_topic_but_the_noisy_one_can_burst(topics, expected):
    spec = TraceSpec(topics=topics, bursts=200)
    load = build_load(spec, Layout(spec).noisy_topic)
    assert expected == set(load.burst_topic[load.bursting > 0])


def test_steady_traffic_swings_around_its_mean_with_the_period():
    spec = TraceSpec(swing=0.5, swing_period_s=60.0, noisy_share=0.0, burst_share=0.0)
    rows = frame(swing=0.5, swing_period_s=60.0, noisy_share=0.0, burst_share=0.0)
    per_phase = np.bincount((seconds(rows, spec) % 60 // 15).astype(int)) / len(rows)
    # The integral of 1 - cos(2 pi t) / 2 over each quarter of a day.
    expected = 0.25 + np.array([-1, 1, 1, -1]) * 0.5 / (2 * np.pi)
    assert expected == pytest.approx(per_phase, abs=0.01)


def test_a_flat_load_spreads_events_evenly():
    spec = TraceSpec(swing=0.0, noisy_share=0.0, burst_share=0.0)
    rows = frame(swing=0.0, noisy_share=0.0, burst_share=0.0)
    per_tenth = np.bincount((seconds(rows, spec) // 12).astype(int)) / len(rows)
    expected = np.full(10, 0.1)
    assert expected == pytest.approx(per_tenth, abs=0.005)


def test_a_topic_lives_on_one_broker_and_its_tenant_on_all(default):
    assert {1} == set(default.groupby("topic")["broker"].nunique())
    assert {3} == set(default.groupby(default["topic"].str.split("/").str[2])["broker"].nunique())


def test_a_producer_publishes_to_one_topic_over_one_connection(default):
    assert {(1, 1)} == set(
        default.groupby("producer")[["topic", "connection"]].nunique().itertuples(index=False, name=None)
    )
    assert {1, 2} == set(default.groupby("topic")["producer"].nunique())


def test_a_connection_carries_several_topics_of_one_tenant_on_one_broker(default):
    tenant = default["topic"].str.split("/").str[2].rename("tenant")
    shared = default.assign(tenant=tenant).groupby("connection")[["tenant", "broker", "topic"]].nunique()
    assert {(1, 1)} == set(shared[["tenant", "broker"]].itertuples(index=False, name=None))
    assert shared["topic"].min() >= 2


def test_the_noisy_topic_shares_its_connections_with_innocent_victims(default):
    connections = default.loc[default["topic"] == NOISY, "connection"].unique()
    victims = set(default.loc[default["connection"].isin(connections), "topic"]) - {NOISY}
    assert len(connections) == 2
    assert {"persistent://hooli/shop/carts"} < victims


def test_names_are_those_of_a_business_in_a_small_trace(default):
    tenants = {"acme", "globex", "initech", "umbrella", "hooli"}
    assert tenants == set(default["topic"].str.split("/").str[2])
    assert {"shop", "devices", "ads"} == set(default["topic"].str.split("/").str[3])
    expected = {"persistent://acme/shop/orders", "persistent://globex/devices/telemetry", NOISY}
    assert expected < set(default["topic"])


def test_names_are_numbered_in_a_large_trace():
    rows = frame(events=5_000, topics=1_000_000, tenants=100, namespaces_per_tenant=20, zipf=0.0)
    pattern = re.compile(r"persistent://tenant-\d{3}/ns-\d{2}/topic-\d{7}")
    assert not [topic for topic in rows["topic"] if not pattern.fullmatch(topic)]


@pytest.mark.parametrize("topics", [1, 2, 14, 15, 16, 120, 121])
def test_topics_have_distinct_names_and_every_count_works(topics):
    spec = TraceSpec(topics=topics, events=200)
    layout = Layout(spec)
    assert topics == len(layout.topic_names(np.arange(topics)).unique())
    assert spec.events == sum(table.num_rows for table in generate_files(spec))


def test_a_trace_can_have_one_of_everything():
    one = dict.fromkeys(("events", "brokers", "tenants", "namespaces_per_tenant", "topics", "producers_per_topic"), 1)
    rows = frame(**one, files=1, duration_s=10.0)
    expected = [("broker-1", NOISY)]
    assert expected == list(rows[["broker", "topic"]].itertuples(index=False, name=None))


@pytest.mark.parametrize("mean", [1.0, 1.5, 4.0, 50.0])
def test_messages_per_publish_have_the_mean_asked_for(mean):
    table = batch_table(mean)
    assert mean == pytest.approx(table.mean(), rel=0.02)
    assert table.min() == 1


@pytest.mark.parametrize("median", [1, 600, 100_000])
def test_message_sizes_have_the_median_asked_for(median):
    table = size_table(median)
    assert median == pytest.approx(np.median(table), rel=0.01)
    assert table.min() >= 1


def test_amounts_stay_within_what_a_broker_takes():
    rows = frame(events=5_000, batch_mean=1_000.0, message_bytes=5_242_880)
    assert rows["messages"].between(1, 1_000).all()
    assert rows["bytes"].between(1, 5_242_880).all()


@pytest.mark.parametrize(("moves", "brokers"), [(0, [1]), (1, [1, 2]), (3, [1, 2, 0, 1])])
def test_the_moving_topic_goes_to_the_next_broker_in_equal_times_and_its_clients_follow(moves, brokers):
    spec = TraceSpec(events=4_000, moves=moves)
    rows, still = frame(events=4_000, moves=moves), frame(events=4_000)
    moving = rows["topic"] == "persistent://globex/shop/orders"
    part = (seconds(rows, spec) * (moves + 1) // spec.duration_s).astype(int)
    expected = "broker-" + part.map(lambda part: f"{brokers[part] + 1}")

    assert (rows["broker"] == expected)[moving].all()
    assert (rows["connection"].str.rpartition("-")[0] == "globex-" + rows["broker"])[moving].all()
    assert rows[~moving].equals(still[~moving])


def test_where_one_tenant_or_one_broker_is_all_there_is_moves_do_no_harm():
    assert {"broker-1"} == set(frame(events=100, brokers=1, moves=5)["broker"])
    assert {"broker-1", "broker-2", "broker-3"} == set(frame(events=500, tenants=1, topics=1, moves=2)["broker"])
