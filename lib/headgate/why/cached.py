"""Why entries of a topic left the entry cache, and which topics took the room."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from headgate.core.cache.reasons import Cause
from headgate.core.numbers import SECOND_NS
from headgate.core.reasons import HeldReason
from headgate.core.topic_names import topic_of
from headgate.errors import NotFoundError, TableError
from headgate.tables.query import increases, newest, text
from headgate.why.answer import Window
from headgate.why.known import window_in
from headgate.why.tables import OutputTables, end_ns, first_ns, in_window, instant_sql, nearest

SHOWN_TOPICS = 20
ORDER = "second, until, batch_id"
"""Of the rows of a broker or topic in `cache_metrics`."""
COUNTERS = ("hits", "misses", "hit_bytes", "storage_bytes")
"""Of both. They begin anew together."""


@dataclass(frozen=True)
class Room:
    """A topic in the same caches: its bytes at the end of the window, and how many more than at its start."""

    topic: str
    used_bytes: int
    grown_bytes: int


@dataclass(frozen=True)
class CacheWhy:
    """hits, misses: entries of the topic in the window. left: entries that left the cache, by cause; None where
    `jobs/entry_cache.py` did not write evictions. room: the topics that grew most.
    """

    topic: str
    window: Window
    reason: HeldReason
    hits: int
    misses: int
    left: tuple[tuple[str, int], ...] | None
    room: tuple[Room, ...]
    notes: tuple[str, ...] = ()


def why_cached(
    tables: OutputTables,
    name: str,
    *,
    at_s: int | None = None,
    first_s: int | None = None,
    last_s: int | None = None,
) -> CacheWhy:
    """Times and errors as those of `topics.why`, of the tables of `jobs/entry_cache.py`."""
    times, topic = _times(tables), _known(tables, name)
    window, notes = window_in(times, f"{tables.output}/cache_metrics", at_s, first_s, last_s)
    since_ns = first_ns(window)
    before, after = (_used_bytes(tables, at_ns) for at_ns in (since_ns, end_ns(window)))
    brokers = {broker for of, broker in after if of == topic}
    is_whole = _is_whole(tables)
    if not is_whole and any((topic, broker) not in before for broker in brokers):
        notes.append("counted from the topic's first row in this time on: older rows are gone by retention")
    if not is_whole and not before:  # the end of the first second is the oldest that is known
        before = _used_bytes(tables, since_ns + SECOND_NS)
    hits, misses = _counts(tables, topic, since_ns, end_ns(window), from_zero=is_whole)
    left = _left(tables, topic, window)
    if left is None:
        notes.append("why entries left is not known: jobs/entry_cache.py writes it with --evictions")
    room = sorted(_room(before, after, brokers), key=lambda one: (-one.grown_bytes, -one.used_bytes, one.topic))
    return CacheWhy(topic, window, _reason(left), hits, misses, left, tuple(room[:SHOWN_TOPICS]), tuple(notes))


def _times(tables: OutputTables) -> tuple[int, int]:
    """The first and the last second. Raises TableError without rows."""
    if not tables.has("cache_metrics"):
        raise TableError(
            f"{tables.output} has no table cache_metrics; give the --output of jobs/entry_cache.py, or no --cache"
        )
    found = tables.times_in("cache_metrics", "second")
    if found is None:
        raise TableError(
            f"the table {tables.output}/cache_metrics has no rows: give the --output of jobs/entry_cache.py, or wait "
            "until there are events"
        )
    return found


def _known(tables: OutputTables, name: str) -> str:
    parsed = topic_of(name)
    names = {name} if parsed is None else {name, parsed.name}
    rows = tables.dicts("cache_metrics", "SELECT DISTINCT topic FROM cache_metrics WHERE topic IS NOT NULL")
    known = sorted({row["topic"] for row in rows})
    found = sorted(names & set(known))
    if not found:
        raise NotFoundError(
            f"{tables.output} has no cache events of {name}, in {len(known):,} topics{nearest(name, known)}; correct "
            "the name"
        )
    return found[0]


def _is_whole(tables: OutputTables) -> bool:
    """Whether no row with hits or misses is gone: those by the first row of a broker then came in its second."""
    columns = "hits > hits_rate OR misses > misses_rate AS is_later"
    sql = newest(columns, ("broker",), ORDER, "topic IS NULL", "cache_metrics")
    return not any(row["is_later"] for row in tables.dicts("cache_metrics", sql))


def _counts(tables: OutputTables, topic: str, since_ns: int, until_ns: int, *, from_zero: bool) -> tuple[int, int]:
    """Hits and misses of a topic between these times. from_zero: those by its first row came in that row's second."""
    where = f"topic = {text(topic)} AND second < {instant_sql(until_ns)}"
    rows = increases(COUNTERS, ("topic", "broker"), ORDER, where, "cache_metrics", from_zero=from_zero)
    sql = f"SELECT sum(hits) AS hits, sum(misses) AS misses FROM ({rows}) WHERE second >= {instant_sql(since_ns)}"  # noqa: S608  names of our own
    (row,) = tables.dicts("cache_metrics", sql)
    return row["hits"] or 0, row["misses"] or 0


def _used_bytes(tables: OutputTables, at_ns: int) -> Mapping[tuple[str, str], int]:
    """By topic and broker, of the newest row of a second before that time."""
    where = f"topic IS NOT NULL AND second < {instant_sql(at_ns)}"
    sql = newest("topic, broker, used_bytes", ("topic", "broker"), "until DESC, batch_id DESC", where, "cache_metrics")
    return {(row["topic"], row["broker"]): row["used_bytes"] or 0 for row in tables.dicts("cache_metrics", sql)}


def _room(
    before: Mapping[tuple[str, str], int], after: Mapping[tuple[str, str], int], brokers: set[str]
) -> Iterator[Room]:
    for topic in sorted({of for of, broker in after if broker in brokers}):
        places = [(topic, broker) for broker in brokers if (topic, broker) in after]
        used = sum(after[place] for place in places)
        yield Room(topic, used, used - sum(before.get(place, 0) for place in places))


def _left(tables: OutputTables, topic: str, window: Window) -> tuple[tuple[str, int], ...] | None:
    if not tables.dicts("cache_evictions", "SELECT cause FROM cache_evictions LIMIT 1"):
        return None  # written with --evictions alone
    where = f"topic = {text(topic)} AND {in_window(window)}"
    sql = f"SELECT cause, count(*) AS entries FROM cache_evictions WHERE {where} GROUP BY cause"  # noqa: S608  quoted text
    found = [(row["cause"], row["entries"]) for row in tables.dicts("cache_evictions", sql)]
    return tuple(sorted(found, key=lambda one: (-one[1], one[0])))


def _reason(left: tuple[tuple[str, int], ...] | None) -> HeldReason:
    counts = dict(left or ())
    by_size, by_age = counts.get(Cause.EVICTED, 0), counts.get(Cause.EXPIRED, 0)
    if not by_size and not by_age:
        return HeldReason.NOT_HELD
    return HeldReason.CACHE_SIZE if by_size >= by_age else HeldReason.CACHE_AGE
