"""The generic policies against libCacheSim's own, over the same file."""

from collections import Counter

import pytest

from headgate.cache_trace import convert
from unit.cache_trace import requests
from unit.cache_trace.requests import ORACLE_GENERAL

libcachesim = pytest.importorskip(
    "libcachesim", reason="libCacheSim's policies are compared where it is installed: pip install 'headgate[compare]'"
)

TRACE = requests.popular(20_000, 2_000, sizes=(1, 4096))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The trace, and its events."""
    folder = tmp_path_factory.mktemp("requests")
    trace = folder / "trace.oracleGeneral.bin"
    trace.write_bytes(requests.oracle_general(TRACE))
    convert(trace, ORACLE_GENERAL, folder / "events", broker="b", topic="t", all_of_one_byte=False)
    return trace, list(requests.rows(folder / "events"))


def their_hits(trace, policy, max_bytes):
    reader = libcachesim.TraceReader(str(trace), libcachesim.TraceType.ORACLE_GENERAL_TRACE)
    miss_ratio, _ = policy(max_bytes).process_trace(reader)
    return len(TRACE) - round(miss_ratio * len(TRACE))


@pytest.mark.parametrize("max_bytes", [20_000, 300_000])
@pytest.mark.parametrize(("ours", "theirs"), [("lru", "LRU"), ("fifo", "FIFO"), ("sieve", "Sieve")])
def test_hits_are_those_of_libcachesim(files, ours, theirs, max_bytes):
    trace, events = files
    assert their_hits(trace, getattr(libcachesim, theirs), max_bytes) == requests.hits(events, ours, max_bytes)


def test_the_bound_is_theirs_but_for_what_is_not_worth_caching(files):
    """Ours admits nothing that is needed later than all that is cached, theirs all; both know the future."""
    trace, events = files
    ours, theirs = requests.hits(events, "belady", 300_000), their_hits(trace, libcachesim.Belady, 300_000)
    again = sum(count - 1 for count in Counter(id_ for _, id_, _ in TRACE).values())
    assert theirs * 0.99 <= ours <= again
