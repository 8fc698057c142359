"""The two forms of a cache's rules, of which results are the same: readable, and arrays (core.kernels.cache).

The array form is loaded where it is asked for: with it comes the compiler.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from headgate.core.cache.broker import Cache
from headgate.core.cache.settings import CacheSettings

if TYPE_CHECKING:
    from headgate.core.kernels.cache.broker import ArrayCache

AnyCache: TypeAlias = "Cache | ArrayCache"


def new_cache(values: Mapping[str, Any], kernel: str) -> AnyCache:
    """An empty cache with the settings of these keys, in array form where it is asked for and there is one."""
    return in_form(Cache(CacheSettings.of(values)), kernel)


def in_form(cache: AnyCache, kernel: str) -> AnyCache:
    """A cache that goes on as this one would, in the form that is asked for; in readable form where there is no other.

    Takes time linear in what is cached if the form is another one.
    """
    if kernel == "python":
        return readable(cache)
    if not isinstance(cache, Cache):
        return cache
    from headgate.core.kernels.cache.limits import refusal_of  # noqa: PLC0415  numpy

    if refusal_of(cache.settings) is not None:
        return cache
    from headgate.core.kernels.cache.convert.from_readable import array_cache_of  # noqa: PLC0415  loads the compiler

    return array_cache_of(cache, is_logged=True) or cache


def readable(cache: AnyCache) -> Cache:
    """The cache in readable form."""
    return cache if isinstance(cache, Cache) else cache.cache()


def kernel_for(values: Mapping[str, Any], kernel: str) -> str:
    """The form in which caches with the settings of these keys can run; no other one is worth being compiled."""
    from headgate.core.kernels.cache.limits import refusal_of  # noqa: PLC0415  numpy

    return kernel if refusal_of(CacheSettings.of(values)) is None else "python"


def uses_by_topic(cache: AnyCache, names: Iterable[str]) -> Iterator[tuple[str, dict[str, int]]]:
    """What each of the topics had of the cache, those that no row was applied to left out."""
    if isinstance(cache, Cache):
        for name in names:
            if topic := cache.topics.get(name):
                counts, entries = topic.counts, topic.entries
                yield (
                    name,
                    {
                        "hits": counts.hits,
                        "hit_bytes": counts.hit_bytes,
                        "misses": counts.misses,
                        "storage_bytes": counts.storage_bytes,
                        "bytes": entries.size_bytes,
                        "entries": entries.entry_count,
                    },
                )
    else:
        yield from cache.counts_of(names).items()


def topics_and_cursors(cache: AnyCache) -> tuple[int, int]:
    """How many topics had a row, and how many cursors are open."""
    if isinstance(cache, Cache):
        return len(cache.topics), sum(len(topic.cursors.by_name) for topic in cache.topics.values())
    return cache.topic_count, cache.cursor_count


def load_rules(kernel: str) -> None:
    """Compile or load the form of that name, once in a process."""
    if kernel != "python":
        warm_up()


@cache
def warm_up() -> None:
    """Compile the array form (40 s, once in an installation), or load it, before the first run needs it."""
    from headgate.core.cache.rows import EventKind, Row  # noqa: PLC0415
    from headgate.core.kernels.cache.broker import ArrayCache  # noqa: PLC0415  loads the compiler

    empty = ArrayCache(CacheSettings.of({}))
    empty.feed(Row(0, 0, EventKind.ADD, "t", None, 0, 0, 1, (1,)))
    empty.change({"headgate.cache.maxBytes": 1}, 1)
    empty.finished_bytes()
    empty.forget(0)
