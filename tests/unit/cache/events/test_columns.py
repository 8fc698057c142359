"""Columns of events as rows of the array form: what the rules make of rows one by one."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from headgate.cache.events.columns import packed
from headgate.core.cache.rows import EventKind, Row
from headgate.core.cache.settings import CacheSettings
from headgate.core.kernels.cache.broker import ArrayCache
from headgate.core.kernels.cache.types import NONE
from headgate.sizing.trace import batches_of

NAMES = st.sampled_from(["t", "u", "v", ""])
MAYBE = st.one_of(st.none(), st.integers(-1, 3))
SIZES = st.one_of(st.none(), st.lists(st.integers(0, 3), max_size=3))
KINDS = [kind for kind in EventKind if kind is not EventKind.CONF]
GOOD = [
    Row(1, 0, "open", "t", "c", 0, 0),
    Row(1, 1, "open", "u", "c", None, None),
    Row(2, 2, "add", "t", None, 0, 0, 3, [5, 6, 7]),
    Row(2, 3, "read", "t", "c", 0, 0, 2, [5]),
    Row(2, 4, "replay_add", "t", "c", 0, 1, None),
    Row(3, 5, "replay_read", "t", "c", 0, 1, 1, [6]),
    Row(3, 6, "mark", "t", "c", 0, 2),
    Row(3, 7, "move", "u", "c", 4, 0),
    Row(4, 8, "read", "u", "d", 4, 9, 1, [8]),
    Row(4, 9, "ledger_delete", "t", None, 0),
    Row(5, 10, "topic_clear", "u"),
    Row(5, 11, "close", "t", "c"),
]


@st.composite
def rows(draw: Any) -> Row:
    kind = draw(st.sampled_from([*KINDS, "nonsense", None]))
    cursor = draw(st.one_of(st.none(), NAMES))
    numbers = (draw(MAYBE), draw(MAYBE), draw(st.one_of(st.none(), st.integers(-1, 3))))
    return Row(draw(MAYBE), draw(MAYBE), kind, draw(st.one_of(st.none(), NAMES)), cursor, *numbers, draw(SIZES))


def cache() -> ArrayCache:
    return ArrayCache(CacheSettings.of({"headgate.cache.policy": "lru", "headgate.cache.maxBytes": 20}))


def told(by: ArrayCache, fed: Any) -> Any:
    """What every row did, and the cache after it."""
    by.feed_rows(fed)
    outcomes = [fed.rows[name].tolist() for name in ("hits", "misses", "dead")]
    return outcomes, by.totals(), by.topic_counts(), by.topic_names


def batch(some: list[Row]) -> Any:
    return next(iter(batches_of(some)))


@settings(max_examples=examples(300))
@given(st.lists(rows(), min_size=1, max_size=6), st.booleans())
def test_rows_in_columns_do_what_they_do_one_by_one_or_are_left_to_that(some: list[Row], among_good: bool) -> None:
    some = [*GOOD, *some] if among_good else some
    by_columns, by_rows = cache(), cache()
    fed, expected = packed(by_columns, batch(some)), by_rows.pack(some)
    assert (fed is not None) == bool((expected.rows["kind"] > NONE).all())
    if fed is not None:
        assert told(by_columns, fed) == told(by_rows, expected)


def test_a_part_of_a_batch_has_its_own_sizes() -> None:
    by_columns, by_rows = cache(), cache()
    fed = packed(by_columns, batch(GOOD).slice(2, 6))
    assert fed is not None
    assert told(by_columns, fed) == told(by_rows, by_rows.pack(GOOD[2:8]))


def test_sizes_of_rows_that_need_none_are_ignored() -> None:
    some = [Row(0, 0, "open", "t", "c", sizes=[0, -1, None]), Row(0, 1, "add", "t", None, 0, 0, 1, [2])]
    by_columns, by_rows = cache(), cache()
    assert told(by_columns, packed(by_columns, batch(some))) == told(by_rows, by_rows.pack(some))


@pytest.mark.parametrize(
    "row",
    [
        Row(1 << 55, 0, "close", "t", "c"),
        Row(1, 0, "mark", "t", "c", 1 << 60, 0),
        Row(1, 0, "mark", "t", "c", 0, 1 << 60),
        Row(1, 0, "mark", "t", "c", 0, (1 << 63) - 1),
        Row(-(1 << 63), 0, "close", "t", "c"),
        Row(1, 0, "add", "t", None, 0, 0, 1, [1 << 31]),
        Row(1, 0, "add", "t", None, 0, 0, 10_001, [1]),
    ],
)
def test_numbers_that_do_not_fit_are_left_to_rows(row: Row) -> None:
    assert packed(cache(), batch([row])) is None
