"""One run of a sweep: what it counts is what the cache says, looking at it changes nothing, a sample is scaled."""

from itertools import islice

import pytest

from headgate.core.cache.broker import Cache
from headgate.core.cache.reasons import DeadReason
from headgate.core.cache.rows import Row
from headgate.core.cache.sampling import sampled
from headgate.core.cache.settings import CacheSettings, PolicyName
from headgate.core.cache.workload import generate
from headgate.sizing.measure import OF_ALL_ROWS, REASONS, SCALED, WORK, Span, measure, summed

ROWS = list(islice(generate("mixed", 1), 6000))
SPAN = Span(ROWS[0].t_us, ROWS[-1].t_us)


def settings(policy: PolicyName, max_bytes: int = 100_000) -> CacheSettings:
    return CacheSettings.of({"headgate.cache.policy": policy, "headgate.cache.maxBytes": max_bytes})


@pytest.mark.parametrize("policy", PolicyName)
def test_looking_into_a_cache_changes_nothing(policy: PolicyName) -> None:
    cache = Cache(settings(policy))
    if policy is PolicyName.BELADY:
        cache.foresee(ROWS)
    for row in ROWS:
        cache.feed(row)
    totals = cache.totals()
    found = measure(settings(policy), lambda: ROWS, SPAN)
    told = {name: value for name, value in totals.items() if name in found}
    assert {name: found[name] for name in told} == told
    assert found["storage_reads"] == totals["storage_ops"]


def test_every_miss_has_a_reason() -> None:
    found = measure(settings(PolicyName.PIP430), lambda: ROWS, SPAN)
    assert sum(found[f"missed_{reason}"] for reason in REASONS) == found["misses"]


def test_means_are_over_event_time() -> None:
    """300 bytes for three quarters of the time, nothing before."""
    rows = [
        Row(0, 0, "open", "t", "c", 0, 0),
        Row(1_000_000, 1, "add", "t", None, 0, 0, 3, [100]),
        Row(4_000_000, 2, "mark", "t", "c", 0, 0),
    ]
    found = measure(settings(PolicyName.LRU), lambda: rows, Span(0, 4_000_000))
    assert found["mean_bytes"] == pytest.approx(225, abs=1)
    assert found["peak_bytes"] == 300


def test_rows_that_are_refused_are_told_and_counted() -> None:
    told = []
    rows = [Row(5, 0, "nonsense", "t"), Row(6, 1, "close", "t", "c"), Row(None, 2, "close", "t", "c")]
    found = measure(settings(PolicyName.LRU), lambda: rows, Span(5, 6), letter=lambda why, row: told.append((why, row)))
    assert found["dead"] == 3
    assert told == list(
        zip([DeadReason.UNKNOWN_KIND, DeadReason.UNKNOWN_CURSOR, DeadReason.BAD_ROW], rows, strict=True)
    )


def test_a_sample_stands_for_as_many_entries() -> None:
    """Counts are of the whole; what a sample cannot tell is not told."""
    cut = list(sampled(ROWS, 10))
    found = measure(settings(PolicyName.LRU), lambda: cut, SPAN, every=10)
    whole = measure(settings(PolicyName.LRU), lambda: ROWS, SPAN)
    asked, asked_of_all = (one["hits"] + one["misses"] for one in (found, whole))
    assert asked == pytest.approx(asked_of_all, rel=0.05)
    assert [found[name] for name in OF_ALL_ROWS] == [None, None, None]


def test_a_trace_of_one_instant_has_a_mean() -> None:
    rows = [Row(7, 0, "open", "t", "c", 0, 0), Row(7, 1, "add", "t", None, 0, 0, 1, [100])]
    assert measure(settings(PolicyName.LRU), lambda: rows, Span(7, 7))["mean_bytes"] == 100


def test_brokers_are_summed_and_what_one_does_not_tell_is_not_told() -> None:
    assert summed([{"hits": 1, "storage_reads": None}, {"hits": 2, "storage_reads": 4}]) == {
        "hits": 3,
        "storage_reads": None,
    }


def test_a_run_tells_every_column() -> None:
    assert measure(settings(PolicyName.LRU), lambda: ROWS[:10], SPAN).keys() == {*SCALED, *OF_ALL_ROWS, *WORK}
