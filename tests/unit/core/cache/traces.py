"""Rows for tests of the cache: numbered as they are made, times in milliseconds after the beginning."""

from itertools import count

from headgate.core.cache.broker import Cache
from headgate.core.cache.rows import Row
from headgate.core.cache.settings import CacheSettings

PREFIX = "headgate.cache."
TTL = "managedLedgerCacheEvictionTimeThresholdMillis"
WATERMARK = "managedLedgerCacheEvictionWatermark"
STRATEGY = "cacheEvictionByExpectedReadCount"


def ms(number):
    return round(number * 1000)


def settings_of(**keys):
    """Settings from keys of headgate.cache; others as a mapping `pulsar`."""
    pulsar = keys.pop("pulsar", {})
    return CacheSettings.of({**{f"{PREFIX}{name.replace('_', '.')}": value for name, value in keys.items()}, **pulsar})


def cache_of(**keys):
    return Cache(settings_of(**keys))


class Rows:
    """Makes rows of one topic after the other, in order."""

    def __init__(self):
        self._numbers = count()

    def __call__(self, at_ms, kind, topic="a", cursor=None, at=(None, None), count=1, sizes=None, conf=None):
        needs_sizes = kind in {"add", "read", "replay_read"} and sizes is None
        sizes = [100] if needs_sizes else sizes
        return Row(ms(at_ms), next(self._numbers), kind, topic, cursor, *at, count, sizes, conf)


def cached(cache, topic="a"):
    """Entry numbers of what is cached of a topic, as [ledger, first, last]."""
    return cache.topics[topic].entries.runs() if topic in cache.topics else []


def counts(cache, topic="a"):
    """Expected reads by entry number, of the entries with a handler."""
    return {entry.number: entry.handler.count for entry in cache.topics[topic].entries if entry.handler is not None}
