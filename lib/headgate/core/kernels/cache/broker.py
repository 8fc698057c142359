"""The entry cache of one broker on arrays: names become numbers here, the rest is the kernels' (entry-cache 4)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from headgate.core.cache.broker import Cache
from headgate.core.cache.checks import refusal
from headgate.core.cache.reasons import Cause, DeadReason, MissReason
from headgate.core.cache.rows import (
    WITH_RANGE,
    WITH_SIZES,
    WITHOUT_CURSOR,
    WITHOUT_LEDGER,
    EventKind,
    Removed,
    Row,
    RowOutcome,
)
from headgate.core.cache.settings import CacheSettings
from headgate.core.cache.state import load
from headgate.core.cache.topics.topic import COUNTS
from headgate.core.kernels.cache.arrays import enough_for, new_arrays, put_back, rows_of, taken_down, with_room
from headgate.core.kernels.cache.convert.to_readable import plain_of
from headgate.core.kernels.cache.cursors import link_space
from headgate.core.kernels.cache.forgetting import forget_topics, without_unused
from headgate.core.kernels.cache.gauges import finished_bytes
from headgate.core.kernels.cache.limits import fits, limits_of, refusal_of
from headgate.core.kernels.cache.policies.future import Hearing, future_of, link
from headgate.core.kernels.cache.run import advance, run, settle_limits
from headgate.core.kernels.cache.types import (
    AT_CONF,
    BELADY,
    BOUNDS,
    LETTERS,
    MISSES,
    NEEDS_ROOM,
    NONE,
    REMOVALS,
    CacheArrays,
    Ints,
    Records,
)
from headgate.core.kernels.compiled import kernel
from headgate.core.numbers import MIN
from headgate.errors import InvalidArgument

_KINDS = {str(kind): number for number, kind in enumerate(EventKind)}
_REASONS = (*Cause, MissReason.COLD, MissReason.PARTIAL, MissReason.NOT_ADMITTED, MissReason.REFUSED)
_CAUSES, _DEAD = tuple(Cause), tuple(DeadReason)


class PackedRows(NamedTuple):
    """Rows as records, of which the last fields say what each did once they were fed; the sizes of their entries, and
    the changes of settings by the places of rows of kind conf.
    """

    rows: Records
    sizes: Ints
    changes: Mapping[int, Mapping[str, object]]


class ArrayCache:
    """Does with rows what `Cache` does: tests hold the two equal, after every row.

    Arguments: `settings`, which `refusal_of` says None of; `is_logged`, whether removals are told entry by entry.
    Attributes: `settings`; `topic_names`, in the order in which they were met, which is that of their numbers.
    Raises InvalidArgument for settings that it does not take. Source: entry-cache 3, 4
    """

    def __init__(self, settings: CacheSettings, *, is_logged: bool = False) -> None:
        refused = refusal_of(settings)
        if refused is not None:
            raise InvalidArgument(f"array form of the cache: got {refused}, which it does not have; use Cache")
        self.settings = settings
        self.topic_names: list[str] = []
        self._topics: dict[str, int] = {}
        self._cursors: dict[tuple[int, str], int] = {}
        self._spaces: dict[tuple[int, int], int] = {}
        self._is_logged = is_logged
        self.hearing = Hearing()
        self.arrays: CacheArrays
        self._set(new_arrays(settings))

    # Names.

    def topic_number(self, name: str) -> int:
        """The number of a topic, which is new where the name is."""
        number = self._topics.setdefault(name, len(self._topics))
        if number == len(self.topic_names):
            self.topic_names.append(name)
            self._make_room({"topics": number + 1})
            _begin_topic(self.arrays, number)
        return number

    def cursor_number(self, topic: int, name: str) -> int:
        """The number of a cursor, or of a reader that is not registered."""
        known = len(self._cursors)
        number = self._cursors.setdefault((topic, name), known)
        if number == known:
            self._make_room({"cursors": number + 1})
            self.arrays.cursors[number]["topic"] = topic
        return number

    def space_number(self, topic: int, ledger: int) -> int:
        """The number of a ledger of a topic."""
        known = len(self._spaces)
        number = self._spaces.setdefault((topic, ledger), known)
        if number == known:
            self._make_room({"spaces": number + 1})
            space = self.arrays.spaces[number]
            space["topic"], space["ledger"], space["highest"], space["is_deleted"] = topic, ledger, NONE, 0
            _begin_space(self.arrays, number)
        return number

    def pack(self, rows: Sequence[Row]) -> "PackedRows":
        """Rows as columns, checked for their form, and the changes of settings by their places.

        Raises InvalidArgument for numbers that the array form cannot calculate with: let `cache()` go on.
        """
        columns: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
        sizes: list[int] = []
        changes: dict[int, Mapping[str, object]] = {}
        for place, row in enumerate(rows):
            refused = refusal(row, MIN, -1, self.settings)
            if refused is None and not fits(row):
                raise InvalidArgument(f"array form of the cache: got numbers in row {place} that do not fit: {row}")
            if refused is None and row.kind == EventKind.CONF:
                changes[place] = row.conf
            values = self._packed(row, len(sizes)) if refused is None else _refused(_DEAD.index(refused))
            for name, value in zip(_COLUMNS, values, strict=True):
                columns[name].append(value)
            if refused is None and row.sizes and row.kind in WITH_SIZES:
                sizes += row.sizes
        return PackedRows(rows_of(columns), np.array(sizes, np.int64), changes)

    def _packed(self, row: Row, first_size: int) -> tuple[Any, ...]:
        kind = _KINDS[row.kind]
        if row.kind == EventKind.CONF:
            return (row.t_us, row.seq, kind, 0, 0, NONE, 0, 0, 0, 0)
        topic = self.topic_number(row.topic)
        cursor = self.cursor_number(topic, row.cursor) if row.kind not in WITHOUT_CURSOR else 0
        has_position = row.ledger is not None and row.kind not in WITHOUT_LEDGER
        space = self.space_number(topic, row.ledger) if has_position else NONE
        count = row.count or 1 if row.kind in WITH_RANGE else 1
        entry = row.entry if has_position and row.kind != EventKind.LEDGER_DELETE else 0
        has_sizes = row.kind in WITH_SIZES and len(row.sizes) == count
        return (row.t_us, row.seq, kind, topic, cursor, space, entry, count, first_size, has_sizes)

    # Rows.

    def foresee(self, rows: Sequence[Row]) -> None:
        """Tell the policy `belady` all rows before the first one is fed, as `Cache.foresee` does."""
        self.foresee_rows([self.pack(rows)])

    def foresee_rows(self, parts: Iterable[PackedRows]) -> None:
        """As `foresee`. The rows that are fed have to be these, in this order; where they are cut is no matter.

        Raises InvalidArgument for another policy, and for more entries than it can number: use Cache.
        """
        if self.arrays.state["policy"][0] != BELADY:
            raise InvalidArgument(f"foresee: got the policy {self.settings.policy}, allowed is belady")
        state = self.arrays.state[0]
        for part in parts:
            ledgers = self.arrays.spaces["ledger"][part.rows["space"]]
            future = future_of(part.rows, self.hearing.reads_of(part.rows, ledgers), int(state["told"]))
            begin, end = int(state["told_end"]), int(state["told_end"]) + len(future)
            if end > MOST_TOLD:
                raise InvalidArgument(f"array form of the cache: got {end} entries to come, allowed: up to {MOST_TOLD}")
            self._make_room({"future": end})
            self.arrays.future[begin:end] = future
            state["told_end"], state["told"] = end, state["told"] + np.count_nonzero(future["read"])
        link(self.arrays.future[state["told_at"] : state["told_end"]])

    def feed(self, row: Row) -> RowOutcome:
        """Take one row, as `Cache.feed` does."""
        packed = self.pack([row])
        self.feed_rows(packed)
        told = packed.rows[0]
        dead = None if told["dead"] == NONE else _DEAD[told["dead"]]
        return RowOutcome(int(told["hits"]), int(told["misses"]), self.take_removed(), dead)

    def feed_rows(self, packed: PackedRows) -> None:
        """Take rows; what each did is in its fields afterwards.

        Raises InvalidArgument where an instant of cursor_distance does not fit a number.
        """
        rows = packed.rows
        self.arrays = self.arrays._replace(rows=rows, sizes=packed.sizes)
        place = 0
        while place < rows.size:
            place = int(run(self.arrays, place))
            status = self.arrays.state["status"][0]
            if status == AT_CONF:
                self._change(packed.changes[place], int(rows["t_us"][place]))
                rows["removed"][place] = self.arrays.state["logged"][0]
                place += 1
            elif status == NEEDS_ROOM:
                self._make_room(enough_for(self.arrays, int(rows["count"][place])))
        if self.arrays.state["is_beyond"][0]:
            raise InvalidArgument("array form of the cache: the time until a read does not fit 61 bits; use Cache")

    def advance(self, t_us: int) -> RowOutcome:
        """Run the ticks up to `t_us`, as `Cache.advance` does."""
        self._make_room(enough_for(self.arrays, 0))
        advance(self.arrays, t_us)
        return RowOutcome(removed=self.take_removed())

    def change(self, values: Mapping[str, object], t_us: int) -> RowOutcome:
        """Change dynamic keys before every row of the instant `t_us`, as `Cache.change` does.

        Raises CacheSettingsError for what a row of kind conf may not say, and changes nothing then; InvalidArgument
        for settings without an array form.
        """
        self.settings.changed(values)
        removed = self.advance(t_us).removed
        self._make_room(enough_for(self.arrays, 0))
        self._change(values, self.now_us)
        return RowOutcome(removed=(*removed, *self.take_removed()))

    def forget(self, before_us: int) -> None:
        """Forget the topics that hold nothing and had no row from `before_us` on, as `Cache.forget` does."""
        forget_topics(self.arrays, before_us)

    def take_removed(self) -> tuple[Removed, ...]:
        """What left the cache since this was last asked, where that is told."""
        return tuple(self._removed(*row) for row in self.take_log().tolist())

    def take_log(self) -> Records:
        """As `take_removed`, in records of REMOVED."""
        logged = self.arrays.state["logged"]
        left = self.arrays.removed[: logged[0]].copy()
        logged[0] = 0
        return left

    def _removed(self, number: int, space: int, cause: int) -> Removed:
        of = self.arrays.spaces[space]
        return Removed(self.topic_names[of["topic"]], int(of["ledger"]), number, _CAUSES[cause])

    def _change(self, conf: Mapping[str, object], t_us: int) -> None:
        settings = self.settings.changed(conf)
        refused = refusal_of(settings)
        if refused is not None:
            raise InvalidArgument(f"array form of the cache: got {refused} in a row, which it does not have")
        self.settings = settings
        self._set(self.arrays)
        settle_limits(self.arrays, t_us)

    def _set(self, arrays: CacheArrays) -> None:
        for name, value in limits_of(self.settings).items():
            arrays.state[name] = value
        arrays.state["is_logged"] = self._is_logged
        self.arrays = arrays

    def _make_room(self, sizes: Mapping[str, int]) -> None:
        self.arrays = with_room(self.arrays, sizes)

    # What is told, and state.

    @property
    def now_us(self) -> int:
        """The highest time of a row or an advance."""
        return int(self.arrays.state["now_us"][0])

    @property
    def seq(self) -> int:
        """The place of the last row at that time, -1 after an advance."""
        return int(self.arrays.state["seq"][0])

    def totals(self) -> dict[str, int]:
        """What happened since the beginning, and what is cached now, by the keys of section 13."""
        state, topics = self.arrays.state[0], self.arrays.topics[: len(self.topic_names)]
        sums = {name: int(topics[name].sum() + state[f"forgotten_{name}"]) for name in COUNTS}
        causes = {
            str(cause): int(count) for cause, count in zip(_CAUSES, self.arrays.counts[REMOVALS].tolist(), strict=False)
        }
        told = {name: int(state[name]) for name in _STATE}
        rest = {
            "dead": int(self.arrays.counts[LETTERS].sum()),
            "bytes": int(state["current_bytes"]),
            "entries": int(state["entries"]),
        }
        return {**sums, **told, **{str(cause): count for cause, count in causes.items()}, **rest}

    def misses_by_reason(self) -> dict[str, int]:
        """Entries that were missed, by reason; reasons without one are left out."""
        return {
            str(reason): int(n) for reason, n in zip(_REASONS, self.arrays.counts[MISSES].tolist(), strict=True) if n
        }

    @property
    def dead_letters(self) -> dict[DeadReason, int]:
        """Refused rows by reason; reasons without one are left out."""
        return {reason: count for reason, count in self._counted(LETTERS, _DEAD).items() if count}

    def _counted(self, row: int, names: Sequence[Any]) -> dict[Any, int]:
        return dict(zip(names, self.arrays.counts[row].tolist(), strict=False))

    def topic_counts(self) -> dict[str, dict[str, int]]:
        """Of each topic that had a row: hits, hit bytes, misses, storage bytes and reads, bytes, entries."""
        numbers = self.arrays.topics["placed"][: self.arrays.state["places"][0]].tolist()
        return self.counts_of(self.topic_names[number] for number in numbers)

    def counts_of(self, names: Iterable[str]) -> dict[str, dict[str, int]]:
        """As `topic_counts`, of those of the names that had a row."""
        known = {name: self.arrays.topics[self._topics[name]] for name in names if name in self._topics}
        return {
            name: {count: int(row[count]) for count in _COUNTS} for name, row in known.items() if row["place"] != NONE
        }

    @property
    def topic_count(self) -> int:
        """How many topics had a row."""
        return int(self.arrays.state["places"][0])

    @property
    def cursor_count(self) -> int:
        """How many cursors are registered."""
        return int(self.arrays.topics["registered"].sum())

    @property
    def current_bytes(self) -> int:
        """What is cached now."""
        return int(self.arrays.state["current_bytes"][0])

    def finished_bytes(self) -> int:
        """Bytes of cached entries that nobody will read."""
        return int(finished_bytes(self.arrays))

    def pinned_bytes(self) -> int:
        """Estimated memory that the cached entries keep."""
        topics = len(self.topic_names)
        own = self.arrays.topics["own_bytes"][:topics].sum()
        return int(own + self.arrays.buffers["pinned_bytes"][: 2 * topics].sum())

    def cache(self) -> Cache:
        """A cache in readable form that goes on as this one would. Takes time linear in what is cached."""
        return load(plain_of(self))

    def dump(self) -> dict[str, Any]:
        """The state between two rows: settings, names, and arrays, which later rows do not change."""
        return {
            "settings": self.settings.values(),
            "topics": list(self.topic_names),
            "cursors": [list(key) for key in self._cursors],
            "arrays": taken_down(self.arrays, len(self._topics), len(self._cursors), len(self._spaces)),
        }

    @classmethod
    def load(cls, stored: Mapping[str, Any], *, is_logged: bool = False) -> "ArrayCache":
        """The cache that was stored; it behaves as that would. Names that nothing is known of are left out."""
        stored = without_unused(stored)
        cache = cls(CacheSettings.of(stored["settings"]), is_logged=is_logged)
        cache.topic_names = list(stored["topics"])
        cache._topics = {name: number for number, name in enumerate(stored["topics"])}
        cache._cursors = {(topic, name): number for number, (topic, name) in enumerate(stored["cursors"])}
        spaces = stored["arrays"]["spaces"]
        keys = zip(spaces["topic"].tolist(), spaces["ledger"].tolist(), strict=True)
        cache._spaces = {key: number for number, key in enumerate(keys)}
        cache._set(put_back(cache.settings, stored["arrays"]))
        return cache

    def cursor_names(self) -> list[tuple[int, str]]:
        """The topic and the name of each cursor, by number."""
        return list(self._cursors)


MOST_TOLD = (1 << 31) - 1
"""Entries of rows to come, which are counted in 31 bits."""
_COLUMNS = ("t_us", "seq", "kind", "topic", "cursor", "space", "entry", "count", "first_size", "has_sizes")
_COUNTS = (*COUNTS, "bytes", "entries")
_STATE = ("inserted", "size_passes", "requeues", "visits", "max_pass_visits", "peak_bytes", "overshoot_bytes")


def _refused(reason: int) -> tuple[Any, ...]:
    return (0, 0, NONE - reason, 0, 0, NONE, 0, 0, 0, 0)


def _begin_topic(arrays: CacheArrays, number: int) -> None:
    """A topic that no row was applied to yet."""
    topic = arrays.topics[number]
    for name in _TOPIC_LINKS:
        topic[name] = NONE
    topic["replay_delay_us"] = arrays.state["replay_init_us"][0]
    topic["waits_us"] = np.iinfo(np.int64).max
    for source in range(2):
        buffer = arrays.buffers[2 * number + source]
        buffer["index"], buffer["chunk"] = arrays.buffer_sizes[BOUNDS + 3 * source + 1], NONE


_TOPIC_LINKS = (
    *("place", "added_ledger", "added_entry", "first_cursor", "last_cursor", "first_page", "last_page"),
    *("first_space", "last_space", "first_note", "last_note"),
)


@kernel
def _begin_space(c: CacheArrays, space: int) -> None:
    link_space(c, space)
