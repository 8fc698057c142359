"""A cache as columns and back, sizes out of text, and the version of the state."""

import gc
from itertools import islice

import pyarrow as pa
import pytest

from headgate.cache.parsed import lists_of, sizes_of
from headgate.cache.state import VERSION, SlotState, decode_state, encode_state
from headgate.cache.stored import cache_of, tables_of
from headgate.core.cache.broker import Cache
from headgate.core.cache.settings import CacheSettings, PolicyName
from headgate.core.cache.state import dump
from headgate.core.cache.workload import generate
from headgate.errors import StateError
from headgate.throttle.blocks import decode_all, encode_all


@pytest.mark.parametrize("policy", [policy for policy in PolicyName if policy is not PolicyName.BELADY])
def test_a_cache_comes_back_as_it_was(policy: str) -> None:
    values = {"headgate.cache.maxBytes": 50_000, "headgate.cache.policy": policy, "headgate.cache.release": "explicit"}
    cache = Cache(CacheSettings.of(values))
    for place, row in enumerate(islice(generate("replay", 3, "skewed"), 600)):
        cache.feed(row)
        if place % 200 == 0:
            back = cache_of(decode_all(encode_all(tables_of(cache))))
            assert dump(cache) == dump(back)
            cache = back
    assert cache.totals()["hits"] > 0


def test_pythons_collector_is_as_it_was_before() -> None:
    cache = Cache(CacheSettings.of({}))
    assert gc.isenabled()
    tables = tables_of(cache)
    assert gc.isenabled()
    gc.disable()
    try:
        cache_of(iter(tables))
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_state_of_another_version_is_refused() -> None:
    blocks = encode_state(SlotState())
    assert SlotState() == decode_state(VERSION, blocks)
    with pytest.raises(StateError, match="has version 9, this headgate reads version 2: start with a new"):
        decode_state(9, blocks)


def test_sizes_are_lists_of_whole_numbers_or_none_at_all() -> None:
    texts = ["[1]", " [ 1 , 2 ]", None, "1", "[1.0]", '["1"]', "[true]", "[1", f"[{2**63}]", "[]", "[0]", "[1]"]
    texts.append("[" * 100_000)
    expected = [[1], [1, 2], None, [], [], [], [], [], [], [], [0], [1], []]
    assert expected == sizes_of(pa.chunked_array([texts])).to_pylist()


def test_lists_of_sizes_are_taken_as_they_are_but_for_those_with_a_null() -> None:
    lists = pa.chunked_array([[[1, 2], None, []], [[3, None], [4]]], pa.list_(pa.int64()))
    assert [[1, 2], None, [], [], [4]] == lists_of(lists).to_pylist()
    assert lists_of(lists.slice(0, 3)).to_pylist() == lists.slice(0, 3).to_pylist()
