"""What a cache tells of itself: names of Pulsar for what Pulsar counts, by cause and reason (section 13)."""

from headgate.core.cache.horizon.horizon_cache import HorizonCache
from headgate.core.cache.metrics import TopicUse, by_topic, rates, samples
from unit.core.cache.traces import Rows, cache_of, settings_of


def played(cache):
    row = Rows()
    for one in (
        row(0, "open", cursor="c", at=(1, 0)),
        row(0, "add", at=(1, 0), count=3),
        row(1, "read", cursor="c", at=(1, 0), count=2),
        row(2, "read", cursor="c", at=(1, 9), sizes=[70]),
        row(3, "close", cursor="x"),
        row(4, "topic_clear", topic="b"),
    ):
        cache.feed(one)
    return cache


def told(cache):
    return {(sample.name, *(value for _, value in sample.labels)): sample.value for sample in samples(cache)}


def test_series_have_the_names_of_pulsar_where_there_are_such():
    values = told(played(cache_of(maxBytes=1 << 20)))

    assert values["pulsar_ml_cache_used_size",] == 370
    assert values["pulsar_ml_cache_entries",] == 4
    assert values["pulsar_ml_cache_inserted_entries_total",] == 4
    assert values["pulsar_ml_cache_evictions",] == 0
    assert values["headgate_cache_finished_bytes",] == 370
    assert values["headgate_cache_storage_bytes_total",] == 70


def test_evicted_entries_are_those_of_both_passes():
    cache = played(cache_of(maxBytes=1 << 20))
    cache.advance(10_000_000)
    values = told(cache)

    assert 4 == values["pulsar_ml_cache_evicted_entries_total",] == values["headgate_cache_removed_total", "expired"]
    assert values["headgate_cache_removed_total", "evicted"] == 0


def test_misses_and_dead_letters_are_told_by_reason():
    values = told(played(cache_of(maxBytes=1 << 20)))

    assert values["headgate_cache_misses_by_reason_total", "cold"] == 1
    assert values["headgate_cache_dead_letters_total", "unknown_cursor"] == 1


def test_horizon_mode_tells_of_its_rounds():
    cache = played(HorizonCache(settings_of(mode="horizon", maxBytes=1000, horizon_roundRows=2)))
    values = told(cache)

    assert values["headgate_cache_horizon_rounds_total",] == 3
    assert values["headgate_cache_horizon_busy_rounds_total",] == 1
    assert values["headgate_cache_horizon_inflow_share",] == 0
    assert ("headgate_cache_horizon_rounds_total",) not in told(played(cache_of()))


def test_rates_are_per_second_of_event_time():
    before, after = (
        {"hits": 1, "hit_bytes": 10, "misses": 0, "storage_bytes": 0},
        dict.fromkeys(("hits", "hit_bytes", "misses", "storage_bytes"), 20),
    )

    assert [38, 20, 40, 40] == [sample.value for sample in rates(before, after, 500_000)]
    assert [] == list(rates(before, after, 0))


def test_each_topic_is_told_with_what_it_had_and_has():
    assert {"a": TopicUse(2, 200, 1, 70, 370, 4), "b": TopicUse(0, 0, 0, 0, 0, 0)} == by_topic(
        played(cache_of(maxBytes=1 << 20)).topics
    )
