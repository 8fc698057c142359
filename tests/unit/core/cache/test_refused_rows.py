"""Rows that are refused: the reason, the order of the checks, and what stays as it was (section 2)."""

import pytest

from headgate.core.cache.rows import Row
from headgate.core.cache.state import dump
from headgate.core.numbers import MAX
from unit.core.cache.traces import TTL, WATERMARK, Rows, cache_of

GOOD = {
    "add": Row(5, 9, "add", "a", None, 1, 0, 2, [10]),
    "open": Row(5, 9, "open", "a", "c", 1, 0),
    "move": Row(5, 9, "move", "a", "c", None, None),
    "mark": Row(5, 9, "mark", "a", "c", 1, 0),
    "close": Row(5, 9, "close", "a", "c"),
    "read": Row(5, 9, "read", "a", "c", 1, 0, 3, [1, 2, 3]),
    "replay_add": Row(5, 9, "replay_add", "a", "c", 1, 0, 2),
    "replay_read": Row(5, 9, "replay_read", "a", "c", 1, 0, 1, [10]),
    "release": Row(5, 9, "release", "a", "c", 1, 0, None),
    "ledger_delete": Row(5, 9, "ledger_delete", "a", None, 1),
    "topic_clear": Row(5, 9, "topic_clear", "a"),
    "conf": Row(5, 9, "conf", conf={TTL: 5}),
}
SHAPELESS = {"bad_row", "unknown_kind", "late"}

BAD = [
    ("add", {"t_us": 5.0}),
    ("add", {"t_us": None}),
    ("add", {"t_us": 1 << 63}),
    ("add", {"seq": -1}),
    ("add", {"seq": True}),
    ("add", {"topic": ""}),
    ("add", {"topic": None}),
    ("add", {"ledger": -1}),
    ("add", {"entry": None}),
    ("add", {"entry": MAX}),
    ("add", {"count": 0}),
    ("add", {"count": 10_001}),
    ("add", {"count": True}),
    ("add", {"sizes": None}),
    ("add", {"sizes": []}),
    ("add", {"sizes": [1, 2, 3]}),
    ("add", {"sizes": [1, 0]}),
    ("add", {"sizes": [1 << 31]}),
    ("add", {"sizes": [1, 1 << 31]}),
    ("add", {"sizes": [1, 2.0]}),
    ("add", {"sizes": "12"}),
    ("open", {"cursor": ""}),
    ("open", {"cursor": 7}),
    ("open", {"ledger": None}),
    ("open", {"count": 2}),
    ("move", {"entry": 3}),
    ("mark", {"ledger": None, "entry": None}),
    ("read", {"cursor": None}),
    ("read", {"sizes": [1, 2]}),
    ("replay_read", {"count": 2}),
    ("replay_read", {"sizes": [1, 2]}),
    ("replay_read", {"sizes": [1 << 31]}),
    ("release", {"count": 0}),
    ("ledger_delete", {"ledger": None}),
    ("topic_clear", {"topic": 3}),
    ("conf", {"conf": None}),
    ("conf", {"conf": {}}),
    ("conf", {"conf": {"nope": 1}}),
    ("conf", {"conf": {TTL: 0}}),
    ("conf", {"conf": {WATERMARK: 10**400}}),
    ("conf", {"conf": {WATERMARK: float("nan")}}),
    ("conf", {"conf": {"cacheEvictionByExpectedReadCount": True}}),
]


@pytest.mark.parametrize("kind", GOOD)
def test_a_good_row_of_each_kind_passes_the_checks_of_its_shape(kind):
    assert cache_of().feed(GOOD[kind]).dead not in SHAPELESS


@pytest.mark.parametrize(("kind", "wrong"), BAD, ids=str)
def test_a_row_that_lacks_something_changes_nothing(kind, wrong):
    cache = cache_of()
    before = dump(cache)

    assert cache.feed(GOOD[kind]._replace(**wrong)).dead == "bad_row"
    assert {**before, "dead_letters": {"bad_row": 1}} == dump(cache)


@pytest.mark.parametrize("kind", ["boom", "", None, 3, ["add"], "ADD"])
def test_an_unknown_kind_is_told_before_anything_else(kind):
    assert cache_of().feed(Row(None, None, kind)).dead == "unknown_kind"


def test_a_good_row_is_late_if_one_with_its_time_and_number_passed():
    cache = cache_of()
    steps = [
        (10, 5, None),
        (10, 5, "late"),
        (10, 4, "late"),
        (9, 6, "late"),
        (10, 6, None),
    ]
    for entry, (at_us, seq, dead) in enumerate(steps):
        assert dead == cache.feed(Row(at_us, seq, "add", "a", None, 1, entry, 1, [10])).dead


def test_rows_before_an_advance_are_late_and_those_at_its_time_are_not():
    cache = cache_of()
    cache.advance(50)

    assert cache.feed(Row(49, 0, "topic_clear", "a")).dead == "late"
    assert cache.feed(Row(50, 0, "topic_clear", "a")).dead is None


REFUSED_BY_STATE = [
    ("move", {"cursor": "x", "at": (1, 0)}, "unknown_cursor"),
    ("mark", {"cursor": "x", "at": (1, 0)}, "unknown_cursor"),
    ("close", {"cursor": "x"}, "unknown_cursor"),
    ("replay_add", {"cursor": "x", "at": (0, 0)}, "unknown_cursor"),
    ("open", {"cursor": "c", "at": (1, 0)}, "cursor_exists"),
    ("add", {"at": (0, 9)}, "ledger_deleted"),
    ("read", {"cursor": "x", "at": (0, 0)}, "ledger_deleted"),
    ("replay_add", {"cursor": "c", "at": (0, 0)}, "ledger_deleted"),
    ("replay_read", {"cursor": "c", "at": (0, 0)}, "ledger_deleted"),
    ("ledger_delete", {"at": (0, None)}, "ledger_deleted"),
    ("add", {"at": (1, 2)}, "add_not_increasing"),
    ("release", {"cursor": "c", "at": (1, 0)}, "unknown_copy"),
]


@pytest.mark.parametrize(("kind", "fields", "reason"), REFUSED_BY_STATE, ids=str)
def test_a_row_that_the_state_refuses_moves_the_clock_alone(kind, fields, reason):
    cache, row = cache_of(), Rows()
    cache.feed(row(0, "open", cursor="c", at=(1, 0)))
    cache.feed(row(1, "add", at=(1, 0), count=3))
    cache.feed(row(2, "ledger_delete", at=(0, None)))
    before = dump(cache)

    refused = row(3, kind, **fields)
    assert reason == cache.feed(refused).dead
    after = {**before, "now_us": refused.t_us, "seq": refused.seq, "dead_letters": {reason: 1}}
    assert after == dump(cache)


def test_the_highest_1024_deleted_ledgers_are_remembered():
    cache, row = cache_of(), Rows()
    for ledger in range(1030):
        cache.feed(row(0, "ledger_delete", at=(ledger, None)))

    assert cache.feed(row(1, "read", cursor="c", at=(5, 0))).dead is None
    assert cache.feed(row(1, "read", cursor="c", at=(6, 0))).dead == "ledger_deleted"
