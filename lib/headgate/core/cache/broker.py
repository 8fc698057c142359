"""The entry cache of one broker: a row in, what it did out (entry-cache 4)."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from headgate.core.cache.checks import refusal
from headgate.core.cache.limit import ByteLimit
from headgate.core.cache.policies.belady import Belady
from headgate.core.cache.policies.policy import Policy
from headgate.core.cache.policies.registry import policy_of
from headgate.core.cache.reasons import Cause, DeadReason
from headgate.core.cache.rows import NOTHING, EventKind, Row, RowOutcome
from headgate.core.cache.settings import CacheSettings
from headgate.core.cache.steps import Steps
from headgate.core.cache.store import EntryStore
from headgate.core.cache.topics.topic import Counts, Topic
from headgate.core.numbers import MIN
from headgate.errors import InvalidArgument

MakePolicy = Callable[[CacheSettings, EntryStore, Mapping[str, Topic]], Policy]


class Cache:
    """Results follow from the rows and their order alone: not from a clock, nor from where batches end.

    Rows come in the order of (t, seq). A row that is refused is told, and the next one is taken.

    Arguments: `settings`, of which rows of kind conf change the dynamic ones; `make_policy`, by default that of the
    settings.
    Attributes: `now_us`, the highest time of a row or an advance; `topics` in order of first appearance; `forgotten`,
    the counts of those that were forgotten; `store`, what is cached; `policy`; `dead_letters` by reason; `peak_bytes`
    and `overshoot_bytes`, the most that was cached after a row and by how much that was over the limit.
    Source: entry-cache 3, 4
    """

    def __init__(self, settings: CacheSettings, make_policy: MakePolicy = policy_of) -> None:
        self.settings = settings
        self.topics: dict[str, Topic] = {}
        self.forgotten = Counts()
        self.store = EntryStore(
            ByteLimit(settings.max_bytes, settings.watermark),
            copies_all=settings.copy_entries,
            copies_reads=settings.batch_read_copies,
        )
        self.policy = make_policy(settings, self.store, self.topics)
        self.steps = Steps(settings, self.policy)
        self.now_us = MIN
        self.seq = -1
        self.dead_letters: dict[DeadReason, int] = {}
        self.peak_bytes = 0
        self.overshoot_bytes = 0

    @property
    def current_bytes(self) -> int:
        """What is cached now."""
        return self.store.limit.current_bytes

    def foresee(self, rows: Iterable[Row]) -> None:
        """Tell the policy `belady` all rows before the first one is fed.

        Raises InvalidArgument for another policy, which knows no future.
        """
        if not isinstance(self.policy, Belady):
            raise InvalidArgument(f"foresee: got the policy {self.settings.policy}, allowed is belady")
        self.policy.foresee(rows)

    def feed(self, row: Row) -> RowOutcome:
        """Take one row: the ticks before it, what it says, the size pass after it (section 4)."""
        refused = refusal(row, self.now_us, self.seq, self.settings)
        if refused is not None:
            return self._dead(refused)
        t_us, policy, store = row.t_us, self.policy, self.store
        if policy.due_us <= t_us:
            self._tick(t_us)
        self.now_us = t_us
        self.seq = row.seq
        told = self._apply(row)
        if told.dead is not None:
            return self._dead(told.dead)
        if policy.is_over:
            self._end_row(t_us)
        elif store.limit.current_bytes > self.peak_bytes:
            self._note_peak()
        return told._replace(removed=store.take_removed()) if store.removed else told

    def advance(self, t_us: int) -> RowOutcome:
        """Run the ticks up to `t_us`; rows before it are late from now on. A time that has passed does nothing."""
        if t_us > self.now_us:
            self._tick(t_us)
            self.now_us = t_us
            self.seq = -1
        return NOTHING._replace(removed=self.store.take_removed())

    def change(self, values: Mapping[str, Any], t_us: int) -> RowOutcome:
        """Change dynamic keys before every row of the instant `t_us`, or at once where that has passed.

        What a conf file says is no row of the broker: no row becomes late by it that is not before `t_us`.
        Raises CacheSettingsError for what a row of kind conf may not say, and changes nothing then.
        """
        self.settings.changed(values)
        removed = self.advance(t_us).removed
        self._change(Row(self.now_us, 0, EventKind.CONF, conf=values))
        if self.policy.is_over:
            self._end_row(self.now_us)
        return NOTHING._replace(removed=(*removed, *self.store.take_removed()))

    def forget(self, before_us: int) -> None:
        """Forget the topics that hold nothing and had no row from `before_us` on; no total changes.

        The next row of one makes a new topic.
        """
        gone = [topic for topic in self.topics.values() if topic.last_row_us < before_us and topic.holds_nothing()]
        for topic in gone:
            self.forgotten = self.forgotten.plus(topic.counts)
            self.policy.topic_forgotten(topic)
            del self.topics[topic.name]

    def _tick(self, t_us: int) -> None:
        """Run every tick up to `t_us` that can change anything."""
        policy = self.policy
        while policy.due_us <= t_us:
            policy.tick(policy.due_us)

    def _apply(self, row: Row) -> RowOutcome:
        step = self.steps.by_kind.get(row.kind)
        if step is None:
            return self._change(row)
        topic = self.topics.get(row.topic)
        if topic is None:
            topic = self.topics[row.topic] = Topic(row.topic, self._next_place(), row.t_us, self.settings)
        told = step(topic, row)
        if told.dead is None:
            topic.last_row_us = row.t_us
        if self.policy.watches_topics:
            self.policy.topic_changed(topic, row.t_us)
        return told

    def _next_place(self) -> int:
        return self.topics[next(reversed(self.topics))].place + 1 if self.topics else 0

    def _change(self, row: Row) -> RowOutcome:
        """A limit holds at once, other keys from the next pass on."""
        self.settings = self.settings.changed(row.conf)
        self.store.limit.set(self.settings.max_bytes, self.settings.watermark)
        self.policy.settings_changed(self.settings, row.t_us)
        return NOTHING

    def _end_row(self, now_us: int) -> None:
        """The size pass of a row, and the peak: before it, or after it under a hard cap."""
        if not self.policy.peaks_after_pass:
            self._note_peak()
        self.policy.is_over = False
        self.policy.size_pass(now_us)
        self._note_peak()

    def _note_peak(self) -> None:
        current_bytes = self.store.limit.current_bytes
        if current_bytes > self.peak_bytes:
            self.peak_bytes = current_bytes
            self.overshoot_bytes = max(0, current_bytes - self.store.limit.max_bytes)

    def _dead(self, reason: DeadReason) -> RowOutcome:
        self.dead_letters[reason] = self.dead_letters.get(reason, 0) + 1
        return RowOutcome(removed=self.store.take_removed(), dead=reason)

    def totals(self) -> dict[str, int]:
        """What happened since the beginning, and what is cached now, by the keys of section 13."""
        counts = [self.forgotten, *(topic.counts for topic in self.topics.values())]
        work, removed = self.policy.work, self.store.removed_by
        return {
            "hits": sum(count.hits for count in counts),
            "hit_bytes": sum(count.hit_bytes for count in counts),
            "misses": sum(count.misses for count in counts),
            "storage_bytes": sum(count.storage_bytes for count in counts),
            "storage_ops": sum(count.storage_ops for count in counts),
            "inserted": self.store.inserted,
            **{cause.value: removed[cause] for cause in Cause},
            "size_passes": work.size_passes,
            "requeues": work.requeues,
            "visits": work.visits,
            "max_pass_visits": work.max_pass_visits,
            "peak_bytes": self.peak_bytes,
            "overshoot_bytes": self.overshoot_bytes,
            "dead": sum(self.dead_letters.values()),
            "bytes": self.store.limit.current_bytes,
            "entries": self.store.entry_count,
        }

    def misses_by_reason(self) -> dict[str, int]:
        """Entries that were missed, by reason; reasons without one are left out."""
        return dict(self.steps.misses_by_reason)

    def finished_bytes(self) -> int:
        """Bytes of cached entries that nobody will read."""
        return sum(topic.finished_bytes() for topic in self.topics.values())

    def pinned_bytes(self) -> int:
        """Estimated memory that the cached entries keep."""
        return sum(topic.pinned_bytes() for topic in self.topics.values())
