"""What the state of a slot says of its caches, and how it is printed."""

import pytest

from headgate.cache.step import CacheRules
from headgate.cache.stored.state import VERSION, encode_state
from headgate.cache.stored.state_report import are_of_caches, cache_report
from headgate.report.state_screen import json_lines, state_lines
from headgate.throttle.state import KeyState
from headgate.throttle.state import encode_state as encode_throttle_state
from unit.cache.runs import MAX_BYTES, begun, event

OPEN = event("open", 10, 0, cursor="c", entry=0)
ADD = event("add", 20, 1, entry=0, count=1, sizes=[100])


@pytest.mark.parametrize("kernel", ["numba", "python"])
def test_a_row_a_cache_in_the_order_of_brokers(kernel: str) -> None:
    values = {MAX_BYTES: 1000, "headgate.cache.policy": "lru"}
    slot = begun(values, CacheRules(kernel=kernel)).rows(OPEN, ADD, OPEN | {"broker": "a"})
    states = [(VERSION, encode_state(begun({}).state)), (VERSION, encode_state(slot.state))]
    names = ("broker", "policy", "limit_bytes", "used_bytes", "entries", "topics", "cursors", "waiting")
    report = cache_report(states)
    assert [("a", "lru", 1000, 0, 0, 1, 1, 0), ("broker-1", "lru", 1000, 100, 1, 1, 1, 0)] == [
        tuple(row[name] for name in names) for row in report.to_pylist()
    ]
    head, first, _, last = state_lines(report)
    assert head.split("  ")[0] == "broker"
    assert first.startswith("a         lru     1,000")
    assert first.endswith("1970-01-01 00:00:00.000010Z")
    assert "2 caches" == last
    assert 2 == len(list(json_lines(report)))


def test_states_of_other_jobs_are_told_apart() -> None:
    assert not are_of_caches([(6, encode_throttle_state(KeyState()))])
    assert are_of_caches([(9, encode_state(begun({}).state))])
    assert not are_of_caches([])
