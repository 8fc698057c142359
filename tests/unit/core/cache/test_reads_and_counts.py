"""What adds, reads, copies and marks do to entries and their expected reads, policy pip430 (section 5)."""

import pytest

from headgate.core.cache.settings import RangeHits
from unit.core.cache.traces import STRATEGY, TTL, Rows, cache_of, cached, counts

MEBIBYTE = 1 << 20


def fed(rows, **keys):
    cache, row = cache_of(**{"maxBytes": MEBIBYTE, **keys}), Rows()
    outcomes = [cache.feed(row(*args, **fields)) for args, fields in rows]
    assert [] == [outcome.dead for outcome in outcomes if outcome.dead is not None]
    return cache, outcomes


def at(*args, **fields):
    return args, fields


OPEN_TWO = [at(0, "open", cursor="c", at=(1, 0)), at(0, "open", cursor="d", at=(1, 0))]


def test_an_added_entry_is_expected_by_every_registered_cursor_wherever_it_stands():
    cache, _ = fed([*OPEN_TWO, at(0, "open", cursor="u"), at(1, "add", at=(1, 5), count=2)])

    assert {5: 3, 6: 3} == counts(cache)


def test_the_first_insert_wins_and_adopts_the_count_of_an_add():
    rows = [*OPEN_TWO, at(1, "read", cursor="c", at=(1, 0)), at(2, "add", at=(1, 0), sizes=[7])]

    adopted, _ = fed(rows)
    kept, _ = fed(rows, adoptHandler=False)

    assert [[1, 0, 0]] == cached(adopted)
    assert adopted.totals()["bytes"] == 100
    assert ({0: 2}, {0: 1}) == (counts(adopted), counts(kept))


def test_a_missed_entry_is_expected_by_those_at_the_reader_or_behind_it():
    rows = [
        *OPEN_TWO,
        at(0, "open", cursor="ahead", at=(1, 9)),
        at(1, "read", cursor="c", at=(1, 2)),
        at(2, "read", cursor="ahead", at=(1, 9)),
        at(3, "read", cursor="stranger", at=(1, 20)),
    ]
    cache, _ = fed(rows)

    assert {2: 1, 9: 2} == counts(cache)
    assert [[1, 2, 2], [1, 9, 9]] == cached(cache)


RANGES = [
    # reads 0..3 of which 1 and 2 are cached: hits, misses, storage reads and bytes, expected afterwards
    (RangeHits.WHOLE, 0, 4, 1, 10, {0: 1, 1: 1, 2: 1, 3: 1}),
    (RangeHits.ENTRY, 2, 2, 2, 5, {0: 1, 1: 1, 2: 1, 3: 1}),
]


@pytest.mark.parametrize(("range_hits", "hits", "misses", "storage_ops", "storage_bytes", "expected"), RANGES)
def test_a_range_is_hit_as_a_whole_or_entry_by_entry(range_hits, hits, misses, storage_ops, storage_bytes, expected):
    rows = [
        *OPEN_TWO,
        at(1, "add", at=(1, 1), count=2),
        at(2, "read", cursor="c", at=(1, 0), count=4, sizes=[1, 2, 3, 4]),
    ]
    cache, outcomes = fed(rows, rangeHits=range_hits.value)
    totals = cache.totals()

    assert (hits, misses) == outcomes[-1][:2]
    assert (storage_ops, storage_bytes) == (totals["storage_ops"], totals["storage_bytes"])
    assert expected == counts(cache)
    assert totals["hit_bytes"] == 100 * hits
    assert misses == sum(cache.misses_by_reason().values())
    assert cache.misses_by_reason().get("partial", 0) == (2 if range_hits is RangeHits.WHOLE else 0)


def test_without_the_strategy_reads_are_cached_where_the_settings_say_so():
    rows = [*OPEN_TWO, at(1, "add", at=(1, 0)), at(1, "read", cursor="c", at=(1, 5))]

    plain, _ = fed(rows, pulsar={STRATEGY: False})
    reads, _ = fed(rows, pulsar={STRATEGY: False}, cacheReads=True, release="explicit")

    assert ({}, [[1, 0, 0]]) == (counts(plain), cached(plain))
    assert ({5: 1}, [[1, 0, 0], [1, 5, 5]]) == (counts(reads), cached(reads))


def test_a_copy_keeps_its_count_when_its_entry_is_gone():
    rows = [
        *OPEN_TWO,
        at(1, "add", at=(1, 0)),
        at(2, "read", cursor="c", at=(1, 0)),
        at(3, "topic_clear"),
        at(4, "read", cursor="d", at=(1, 0)),
        at(5, "release", cursor="c", at=(1, 0)),
    ]
    cache, _ = fed(rows, release="explicit")

    assert {0: 1} == counts(cache)


def test_the_oldest_copy_is_freed_first_and_the_newest_is_expected_again():
    rows = [
        *OPEN_TWO,
        at(1, "add", at=(1, 0)),
        at(2, "read", cursor="c", at=(1, 0)),
        at(3, "topic_clear"),
        at(4, "read", cursor="d", at=(1, 0)),
        at(4, "read", cursor="c", at=(1, 0)),
        at(5, "replay_add", cursor="c", at=(1, 0)),
        at(6, "release", cursor="c", at=(1, 0)),
    ]
    cache, _ = fed(rows, release="explicit")

    assert {0: 2} == counts(cache)


def test_a_replay_is_expected_once_by_each_cursor_that_marked_it():
    mark = [at(2, "replay_add", cursor="c", at=(1, 0), count=2)]
    added = [*OPEN_TWO, at(1, "add", at=(1, 0))]

    assert {0: 3} == counts(fed([*added, *mark])[0])
    assert {0: 3} == counts(fed([*added, *mark, *mark])[0])
    assert {0: 4} == counts(fed([*added, *mark, at(3, "replay_add", cursor="d", at=(1, 0))])[0])


def test_a_replay_without_a_count_expects_nothing():
    cache, _ = fed([at(0, "add", at=(1, 0)), *OPEN_TWO, at(1, "replay_add", cursor="c", at=(1, 0))])

    assert ({}, [[1, 0, 0]]) == (counts(cache), cached(cache))


def test_a_replay_read_unmarks_its_position_and_is_never_cached():
    rows = [
        *OPEN_TWO,
        at(1, "replay_add", cursor="c", at=(1, 0)),
        at(201, "replay_read", cursor="c", at=(1, 0)),
        at(202, "replay_read", cursor="c", at=(1, 0)),
    ]
    cache, outcomes = fed(rows)

    assert [(0, 1), (0, 1)] == [outcome[:2] for outcome in outcomes[-2:]]
    assert {"cold": 1, "not_admitted": 1} == cache.misses_by_reason()
    assert cache.topics["a"].replay_delay_us == (4 * 250_000 + 200_000) // 5
    assert cache.topics["a"].marks.counts == {}


def test_closing_corrects_no_count_and_forgets_marks_and_copies():
    rows = [
        *OPEN_TWO,
        at(1, "add", at=(1, 0)),
        at(2, "read", cursor="c", at=(1, 0)),
        at(3, "replay_add", cursor="c", at=(1, 0)),
        at(4, "close", cursor="c"),
        at(5, "close", cursor="d"),
    ]
    cache, _ = fed(rows, release="explicit")
    topic = cache.topics["a"]

    assert {0: 3} == counts(cache)
    assert (topic.marks.counts, topic.copies.by_cursor, topic.last_removal_us) == ({}, {}, 5000)


WAKES = [
    # time in ms, interval afterwards in us, as of 50 ms
    (0, 50_000),
    (10, 42_000),
    (10, 42_000),
    (60, 43_600),
    (960, 43_600),  # 900 ms are silence: more than 50 ms and 20 intervals
    (970, 36_880),
]


def test_a_cursor_wakes_up_as_often_as_it_reads():
    cache, row = cache_of(), Rows()
    cache.feed(row(0, "open", cursor="c", at=(1, 0)))
    for at_ms, interval_us in WAKES:
        cache.feed(row(at_ms, "read", cursor="c", at=(1, 0)))

        assert interval_us == cache.topics["a"].cursors.by_name["c"].interval_us


LIFE_MS = [
    # what happens at 1000 ms, when it expires: section 9
    ("nothing", {}, [], 2010),
    ("read, and access extends", {"profile": "4.2"}, [at(1000, "read", cursor="x", at=(1, 0))], 3020),
    ("read, and access does not extend", {}, [at(1000, "read", cursor="x", at=(1, 0))], 2010),
]


@pytest.mark.parametrize(("case", "keys", "rows", "expires_ms"), LIFE_MS, ids=[case[0] for case in LIFE_MS])
def test_an_entry_that_nobody_expects_lives_for_its_threshold(case, keys, rows, expires_ms):
    cache, _ = fed([at(1000, "add", at=(1, 0)), *rows], **keys)

    assert cache.advance(expires_ms * 1000 - 1).removed == ()
    assert [("a", 1, 0, "expired")] == list(cache.advance(expires_ms * 1000).removed)


def test_an_expected_entry_lives_six_times_as_long():
    cache, _ = fed([at(1000, "open", cursor="c", at=(1, 0)), at(1000, "add", at=(1, 0))])

    assert cache.advance(7_059_999).removed == ()
    assert len(cache.advance(7_060_000).removed) == 1


def test_a_tick_at_the_time_of_a_row_comes_before_it():
    cache, _ = fed([at(10, "add", at=(1, 0)), at(40, "read", cursor="x", at=(1, 0))], pulsar={TTL: 20})

    assert cache.totals()["misses"] == 1
    assert {"expired": 1} == cache.misses_by_reason()


def test_a_cache_of_size_0_refuses_everything():
    for policy in (
        "pip430",
        "lru",
        "fifo",
        "sieve",
        "s3fifo",
        "by_mark_delete",
        "size_proportional",
        "cursor_distance",
    ):
        rows = [*OPEN_TWO, at(1, "add", at=(1, 0)), at(2, "read", cursor="c", at=(1, 0))]
        cache, _ = fed(rows, maxBytes=0, policy=policy, cacheReads=True)

        assert cached(cache) == [], policy
        assert {"refused": 1} == cache.misses_by_reason(), policy
        assert cache.totals()["inserted"] == 0, policy


def test_reasons_are_remembered_for_the_newest_positions():
    cache, row = cache_of(maxBytes=MEBIBYTE, reasonMemory=2), Rows()
    cache.feed(row(0, "open", cursor="c", at=(1, 0)))
    cache.feed(row(0, "add", at=(1, 0), count=3))
    cache.feed(row(1, "topic_clear"))
    cache.feed(row(2, "read", cursor="x", at=(1, 0), count=3))

    assert {"cold": 1, "invalidated": 2} == cache.misses_by_reason()


def test_a_cursor_without_a_position_that_hits_has_its_mark_where_the_read_began():
    rows = [
        at(0, "open", cursor="c", at=(1, 0)),
        at(0, "open", cursor="u"),
        at(1, "add", at=(1, 0), count=5),
        at(2, "read", cursor="u", at=(1, 1), count=2),
    ]
    cache, _ = fed(rows)

    assert (1, 1) == cache.topics["a"].cursors.by_name["u"].mark
