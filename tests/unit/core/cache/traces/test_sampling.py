"""A sample of a trace: which entries it keeps, what its rows say of them, that its misses are those of the whole."""

from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.core.cache.broker import Cache
from headgate.core.cache.rows import Row
from headgate.core.cache.settings import CacheSettings
from headgate.core.cache.traces.sampling import Sample, sampled
from headgate.core.cache.traces.workload import generate
from headgate.errors import InvalidArgument
from headgate.sizing.combinations import for_sample

MIB_BYTES = 1 << 20
LEDGERS = st.integers(0, 2**63 - 1)


def first_kept(every: int, topic: str = "t") -> int:
    """The one entry that is kept of the first stretch."""
    return next(entry for entry in range(every) if Sample(every).keeps(topic, 0, entry))


@given(st.integers(1, 50), st.text(min_size=1, max_size=5), LEDGERS, st.integers(0, 2**62))
def test_one_entry_is_kept_of_each_stretch(every: int, topic: str, ledger: int, stretch: int) -> None:
    sample = Sample(every)
    assert sum(sample.keeps(topic, ledger, stretch * every + place) for place in range(every)) == 1


@given(st.integers(1, 20), st.integers(0, 400))
def test_entries_that_are_kept_are_numbered_without_gaps(every: int, entry: int) -> None:
    sample = Sample(every)
    assert sample.below("t", 7, entry) == sum(sample.keeps("t", 7, before) for before in range(entry))


def test_a_sample_of_all_is_the_trace() -> None:
    rows = list(islice(generate("mixed", 1), 500))
    assert list(sampled(rows, 1)) == rows


def test_a_sample_of_nothing_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="every: got 0"):
        Sample(0)


def test_rows_are_cut_to_the_entries_that_are_kept() -> None:
    every = 10
    kept = first_kept(every)
    rows = [
        Row(0, 0, "open", "t", "c", 0, 0),
        Row(1, 1, "add", "t", None, 0, 0, 10, [*range(100, 110)]),
        Row(2, 2, "add", "t", None, 0, 10, 10, [7]),
        Row(3, 3, "read", "t", "c", 0, 0, 20, [5]),
        Row(4, 4, "mark", "t", "c", 0, 19),
        Row(5, 5, "replay_add", "t", "c", 0, kept, 1),
        Row(6, 6, "replay_read", "t", "c", 0, kept, 1, [5]),
    ]
    assert list(sampled(rows, every)) == [
        rows[0],
        Row(1, 1, "add", "t", None, 0, 0, 1, [100 + kept]),
        Row(2, 2, "add", "t", None, 0, 1, 1, [7]),
        Row(3, 3, "read", "t", "c", 0, 0, 2, [5]),
        Row(4, 4, "mark", "t", "c", 0, 1),
        Row(5, 5, "replay_add", "t", "c", 0, 0, 1),
        Row(6, 6, "replay_read", "t", "c", 0, 0, 1, [5]),
    ]


def test_rows_about_other_entries_are_left_out() -> None:
    every = 10
    other = (first_kept(every) + 1) % every
    begun = Row(0, 0, "open", "t", "c", 0, other)
    rows = [
        Row(1, 1, "add", "t", None, 0, other, 1, [7]),
        Row(2, 2, "read", "t", "c", 0, other, 1, [7]),
        Row(3, 3, "replay_add", "t", "c", 0, other, 1),
    ]
    assert list(sampled([begun, *rows], every))[1:] == []


def test_a_read_from_elsewhere_moves_its_cursor_though_none_of_its_entries_is_kept() -> None:
    every = 10
    other = (first_kept(every) + 1) % every
    below = Sample(every).below("t", 0, 50 + other)
    rows = [Row(0, 0, "open", "t", "c", 0, 0), Row(1, 1, "read", "t", "c", 0, 50 + other, 1, [7])]
    there = [row for row in sampled(rows, every) if row.kind != "open"]
    assert [(row.kind, row.entry) for row in there] in ([("move", below)], [("read", below)])


def test_a_row_that_is_no_row_stays_for_the_cache_to_refuse() -> None:
    bad = [Row(0, 0, "read", "t", "c", 0, "x", 1, [7]), Row(0, 1, "nonsense", "t"), Row(0, 2, None)]
    assert list(sampled(bad, 10)) == bad


def test_the_rows_of_a_sample_are_accepted() -> None:
    cache = Cache(CacheSettings.of({"headgate.cache.maxBytes": MIB_BYTES}))
    for row in sampled(islice(generate("mixed", 3), 30_000), 10):
        cache.feed(row)
    assert cache.dead_letters == {}


LONG = pytest.mark.long


@pytest.mark.parametrize(
    ("policy", "mib", "most"),
    [
        ("cursor_distance", 8, 8000),
        *(pytest.param(*more, None, marks=LONG) for more in (("cursor_distance", 8), ("pip430", 4), ("belady", 2))),
    ],
)
def test_a_tenth_of_the_entries_gives_the_miss_ratio_within_a_point(policy: str, mib: int, most: int | None) -> None:
    """Over the family with the longest reads; all families and policies: tests/benchmarks/cache_sampling.py."""
    conf = {"headgate.cache.policy": policy, "headgate.cache.rangeHits": "entry", "headgate.cache.reasonMemory": 0}
    settings = CacheSettings.of({**conf, "headgate.cache.maxBytes": mib * MIB_BYTES})
    rows = list(islice(generate("catchup", 1), most))
    found = [miss_percent(for_sample(settings, every), list(sampled(rows, every))) for every in (1, 10)]
    assert found[1] == pytest.approx(found[0], abs=1)


def miss_percent(settings: CacheSettings, rows: list[Row]) -> float:
    cache = Cache(settings)
    if settings.policy == "belady":
        cache.foresee(rows)
    for row in rows:
        cache.feed(row)
    totals = cache.totals()
    return 100 * totals["misses"] / (totals["hits"] + totals["misses"])
