"""Kind cache_trace: rows of a broker as arrays, what each did, and what is cached in between (entry-cache 18)."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Protocol, runtime_checkable

from headgate.conformance.equality import json_equal
from headgate.conformance.oracles.horizon.horizon_cache import HorizonCache
from headgate.conformance.report import Mismatch
from headgate.conformance.timed import UnsupportedVectorError
from headgate.conformance.vector_file import Vector, field_of
from headgate.conformance.wanted import MISMATCHES_PER_VECTOR, Seen, crashed, observed
from headgate.core.cache.broker import Cache
from headgate.core.cache.policies.pip430 import Pip430
from headgate.core.cache.rows import EventKind, Row, RowOutcome
from headgate.core.cache.settings import CacheSettings, Mode, PolicyName
from headgate.core.cache.topics.topic import Topic
from headgate.errors import ConformanceError

CHECK, ADVANCE = "check", "advance"
ROW_LENGTH = 9


@runtime_checkable
class InAnotherForm(Protocol):
    """A cache that tells its state by one in readable form."""

    settings: CacheSettings

    def feed(self, row: Row) -> RowOutcome:
        """Take one row."""

    def advance(self, t_us: int) -> RowOutcome:
        """Run the ticks."""

    def totals(self) -> dict[str, int]:
        """The keys of section 13."""

    def cache(self) -> Cache:
        """The same in readable form."""


AnyCache = Cache | HorizonCache


def cache_of(config: Mapping[str, Any]) -> AnyCache:
    """A fresh cache of the mode that the config names."""
    settings = CacheSettings.of(config)
    return HorizonCache(settings) if settings.mode is Mode.HORIZON else Cache(settings)


def replay_trace(factory: Any, vector: Vector) -> list[Mismatch]:
    """Feed the rows in order and return the first mismatches. Raises ConformanceError for a malformed vector."""
    return list(islice(_mismatches(factory, vector), MISMATCHES_PER_VECTOR))


def _mismatches(factory: Any, vector: Vector) -> Iterator[Mismatch]:
    ops = field_of(vector, "ops", list)
    try:
        cache = factory(field_of(vector, "config", dict))
        if cache.settings.policy is PolicyName.BELADY:
            cache.foresee([_row(place, op) for place, op in enumerate(ops) if _is_row(op)])
    except (ConformanceError, UnsupportedVectorError):
        raise
    except Exception as crash:  # noqa: BLE001  one broken object must not hide the other vectors
        yield Mismatch("config", "construct", {}, crashed(crash))
        return
    for place, op in enumerate(ops):
        want = _want(op)
        try:
            got: Any = observed(want, _performed(cache, place, op))
        except ConformanceError:
            raise
        except Exception as crash:  # noqa: BLE001  as above
            got = crashed(crash)
        if not json_equal(want, got):
            yield Mismatch(f"ops[{place}]", _name(op), want, got)


def _name(op: list[Any]) -> str:
    return str(op[0] if op[0] == CHECK else op[1])


def _is_row(op: list[Any]) -> bool:
    return _name(op) not in {CHECK, ADVANCE}


def _want(op: list[Any]) -> dict[str, Any]:
    """What the op wants; a row that says nothing of `dead` has to be accepted."""
    want: dict[str, Any] = op[-1]
    return {"dead": None, **want} if _is_row(op) else want


def _row(place: int, op: list[Any]) -> Row:
    if op[1] == EventKind.CONF:
        return Row(op[0], place, EventKind.CONF, conf=op[2])
    if len(op) != ROW_LENGTH:
        raise ConformanceError(f"malformed vector: ops[{place}] has {len(op)} fields, a row has {ROW_LENGTH}")
    t_us, kind, topic, cursor, ledger, entry, count, sizes, _ = op
    return Row(t_us, place, kind, topic, cursor, ledger, entry, count, sizes)


def _performed(cache: AnyCache | InAnotherForm, place: int, op: list[Any]) -> Seen:
    if op[0] == CHECK:
        return _state(cache.cache() if isinstance(cache, InAnotherForm) else cache)
    return _done(cache, cache.feed(_row(place, op)) if _is_row(op) else cache.advance(op[0]))


def _done(cache: AnyCache | InAnotherForm, outcome: RowOutcome) -> Seen:
    return {
        "hits": lambda: outcome.hits,
        "misses": lambda: outcome.misses,
        "gone": lambda: len(outcome.removed),
        "out": lambda: sorted(outcome.removed),
        "dead": lambda: outcome.dead,
        "bytes": lambda: cache.totals()["bytes"],
        "entries": lambda: cache.totals()["entries"],
    }


def _state(cache: AnyCache) -> Seen:
    topics = cache.topics
    return {
        "cached": lambda: {name: runs for name, topic in topics.items() if (runs := topic.entries.runs())},
        "expected": lambda: {name: counts for name, topic in topics.items() if (counts := _expected(topic))},
        "queue": lambda: _queue(cache),
        "totals": cache.totals,
        "miss_reasons": cache.misses_by_reason,
        "dead_letters": lambda: cache.dead_letters,
        "finished_bytes": cache.finished_bytes,
        "pinned_bytes": cache.pinned_bytes,
    }


def _expected(topic: Topic) -> list[list[int]]:
    return [[entry.ledger, entry.number, entry.handler.count] for entry in topic.entries if entry.handler is not None]


def _queue(cache: AnyCache) -> list[list[Any]]:
    policy = getattr(cache, "policy", None)
    if not isinstance(policy, Pip430):
        settings = cache.settings
        raise ConformanceError(f"malformed vector: there is no one queue with {settings.policy}, mode {settings.mode}")
    return [[entry.topic.name, entry.ledger, entry.number, entry.ts_us, entry.requeues] for entry in policy.queue]
