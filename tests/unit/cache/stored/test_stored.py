"""A cache as columns and back, and the version of the state."""

import gc
from itertools import islice

import pytest

from headgate.arrow.blocks import decode_all, encode_all
from headgate.cache.stored.state import VERSION, SlotState, decode_state, encode_state
from headgate.cache.stored.stored import cache_of, tables_of
from headgate.core.cache.broker import Cache
from headgate.core.cache.settings import CacheSettings, PolicyName
from headgate.core.cache.state import dump
from headgate.core.cache.traces.workload import generate
from headgate.errors import StateError


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
    with pytest.raises(StateError, match="has version 9, this headgate reads version 3: start with a new"):
        decode_state(9, blocks)
