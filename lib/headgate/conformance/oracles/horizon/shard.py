"""One shard of a broker's entry cache: it shares nothing with the others while a round goes on (entry-cache 14)."""

from collections.abc import Mapping
from zlib import crc32

from headgate.conformance.oracles.horizon.keyed_queue import Horizon
from headgate.conformance.oracles.horizon.sharded_policy import Report, ShardedPip430
from headgate.core.cache.broker import Cache
from headgate.core.cache.rows import NOTHING, Row, RowOutcome
from headgate.core.cache.settings import CacheSettings, Mode
from headgate.core.cache.store import EntryStore
from headgate.core.cache.topics.topic import Topic
from headgate.errors import InvalidArgument


class Shard(Cache):
    """Rows, ticks and the pass by age are those of a cache; for size it waits for the horizon of all shards.

    Raises InvalidArgument for settings that are not of mode horizon. Source: entry-cache 14
    """

    def __init__(self, settings: CacheSettings) -> None:
        if settings.mode is not Mode.HORIZON:
            raise InvalidArgument(f"mode: got {settings.mode}, a shard needs horizon")
        super().__init__(settings, self._make_policy)

    def _make_policy(self, settings: CacheSettings, store: EntryStore, topics: Mapping[str, Topic]) -> ShardedPip430:
        self._sharded = ShardedPip430(settings, store, topics)
        return self._sharded

    def feed(self, row: Row) -> RowOutcome:
        """Take one row of the shard's topics, or a conf row, which all shards take."""
        self._sharded.queue.begin_row(row.seq)
        return super().feed(row)

    def report(self) -> Report:
        """What the shard says at the end of a round, after an `advance` to the time of the round's last row."""
        return self._sharded.report()

    def apply(self, horizon: Horizon, now_us: int) -> RowOutcome:
        """Free what lies before the horizon; `now_us`, the time of the round's last row."""
        self._sharded.apply(horizon, now_us)
        return NOTHING._replace(removed=self.store.take_removed())


def shard_of(topic: str, shards: int) -> int:
    """The number of the shard that has a topic, from 0."""
    return crc32(topic.encode()) % shards
