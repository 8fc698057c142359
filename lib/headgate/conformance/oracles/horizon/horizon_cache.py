"""The entry cache of one broker spread over shards that meet at the end of each round (entry-cache 14)."""

from collections import Counter
from collections.abc import Iterable

from headgate.conformance.oracles.horizon.rounds import BUSY_SHARE, Round, goal_bytes, horizon_of
from headgate.conformance.oracles.horizon.shard import Shard, shard_of
from headgate.core.cache.checks import refusal
from headgate.core.cache.reasons import DeadReason
from headgate.core.cache.rows import EventKind, Removed, Row, RowOutcome
from headgate.core.cache.settings import CacheSettings
from headgate.core.cache.topics.topic import Topic


class HorizonCache:
    """With lines of one entry the result does not depend on the number of shards, with rounds of one row it is exact.

    Arguments: `settings`, of mode horizon.
    Attributes: `shards`, each with the topics that `shard_of` gives it; `round`, the one that goes on; `rounds` that
    ended, `busy_rounds` of them that inserted more than a fifth of the limit; `inflow_share` and `size_error` of the
    last one, as shares of the limit; `peak_bytes` and `overshoot_bytes`, the most that was cached at the end of one.
    Source: entry-cache 14
    """

    def __init__(self, settings: CacheSettings) -> None:
        self.settings = settings
        self.shards = [Shard(settings) for _ in range(settings.shards)]
        self.round = Round()
        self.refused: Counter[DeadReason] = Counter()
        self.rounds = 0
        self.busy_rounds = 0
        self.horizons = 0
        self.inflow_share = 0.0
        self.size_error = 0.0
        self.peak_bytes = 0
        self.overshoot_bytes = 0
        self.now_us = self.shards[0].now_us
        self.seq = -1

    @property
    def topics(self) -> dict[str, Topic]:
        """The topics of all shards."""
        return {name: topic for shard in self.shards for name, topic in shard.topics.items()}

    def feed(self, row: Row) -> RowOutcome:
        """Take one row: the round that it ends, what it says, and the round that ends with it."""
        refused = refusal(row, self.now_us, self.seq, self.settings)
        if refused is not None:
            self.refused[refused] += 1
            return RowOutcome(dead=refused)
        removed = self.end_round() if self.round.ends_before(row, self.settings) else ()
        self.now_us, self.seq = row.t_us, row.seq
        outcome = self._change(row) if row.kind == EventKind.CONF else self._shard(row.topic).feed(row)
        self.round.take(row)
        ended = self.end_round() if self.round.ends_now(self.settings) else ()
        return outcome._replace(removed=(*removed, *outcome.removed, *ended))

    def advance(self, t_us: int) -> RowOutcome:
        """End the round, then run the ticks of all shards up to `t_us`."""
        removed = self.end_round()
        if t_us > self.now_us:
            self.now_us, self.seq = t_us, -1
        return RowOutcome(removed=(*removed, *_removed(shard.advance(t_us) for shard in self.shards)))

    def end_round(self) -> tuple[Removed, ...]:
        """Let all shards free what is too much, together; what left. A round without rows does nothing."""
        ended, self.round = self.round, Round()
        if not ended.rows:
            return ()
        removed = _removed([shard.advance(ended.last_us) for shard in self.shards])
        reports = [shard.report() for shard in self.shards]
        limit = self.shards[0].store.limit
        total_bytes = sum(report.current_bytes for report in reports)
        self._note_round(total_bytes, sum(report.inserted_bytes for report in reports))
        goal = goal_bytes(reports, ended.rows, limit)
        if goal is None:
            return removed
        horizon = horizon_of(reports, total_bytes - goal)
        outcomes = [shard.apply(horizon, ended.last_us) for shard in self.shards]
        self.horizons += 1
        left_bytes = sum(shard.store.limit.current_bytes for shard in self.shards)
        self.size_error = abs(left_bytes - goal) / max(1, limit.max_bytes)
        return (*removed, *_removed(outcomes))

    @property
    def dead_letters(self) -> dict[DeadReason, int]:
        """Refused rows by reason."""
        return dict(sum((Counter(shard.dead_letters) for shard in self.shards), self.refused))

    def totals(self) -> dict[str, int]:
        """What happened since the beginning, and what is cached now, in all shards; a size pass is a horizon."""
        of_shards = [shard.totals() for shard in self.shards]
        totals = {key: sum(total[key] for total in of_shards) for key in of_shards[0]}
        return {
            **totals,
            "dead": totals["dead"] + self.refused.total(),
            "size_passes": self.horizons,
            "peak_bytes": self.peak_bytes,
            "overshoot_bytes": self.overshoot_bytes,
        }

    def _change(self, row: Row) -> RowOutcome:
        outcomes = [shard.feed(row) for shard in self.shards]
        self.settings = self.shards[0].settings
        return RowOutcome(removed=_removed(outcomes))

    def misses_by_reason(self) -> dict[str, int]:
        """Entries that were missed, by reason; reasons without one are left out."""
        return dict(sum((Counter(shard.misses_by_reason()) for shard in self.shards), Counter()))

    def finished_bytes(self) -> int:
        """Bytes of cached entries that nobody will read."""
        return sum(shard.finished_bytes() for shard in self.shards)

    def pinned_bytes(self) -> int:
        """Estimated memory that the cached entries keep."""
        return sum(shard.pinned_bytes() for shard in self.shards)

    def _shard(self, topic: str) -> Shard:
        return self.shards[shard_of(topic, len(self.shards))]

    def _note_round(self, total_bytes: int, inserted_bytes: int) -> None:
        limit = self.shards[0].store.limit
        self.rounds += 1
        self.inflow_share = inserted_bytes / max(1, limit.max_bytes)
        self.busy_rounds += self.inflow_share > BUSY_SHARE
        if total_bytes > self.peak_bytes:
            self.peak_bytes = total_bytes
            self.overshoot_bytes = max(0, total_bytes - limit.max_bytes)


def _removed(outcomes: Iterable[RowOutcome]) -> tuple[Removed, ...]:
    return tuple(gone for outcome in outcomes for gone in outcome.removed)
