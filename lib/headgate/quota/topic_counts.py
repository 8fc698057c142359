"""How many topics of a group had traffic in an epoch, of one broker: the column `topics` of rg_usage."""

from collections.abc import Iterable
from typing import Any, Self

from headgate.core.quota.groups import INT32_MAX, UsageKey
from headgate.core.quota.usage.usage_report import ReportKind, UsageReport


class TopicCounts:
    """Topics by the slot of their first traffic in its epoch; added up over an epoch they are each counted once."""

    def __init__(self, epoch_ms: int) -> None:
        self._epoch_ms = epoch_ms
        self._slots: dict[UsageKey, dict[int, int]] = {}

    def add(self, key: UsageKey, at_ms: int, topics: int) -> None:
        """So many topics of `key` had their first traffic in the slot that begins at `at_ms`."""
        if topics:
            slots = self._slots.setdefault(key, {})
            slots[at_ms] = slots.get(at_ms, 0) + topics

    def of(self, cut: UsageReport) -> dict[UsageKey, int]:
        """The topics of a cut's rows: of its epoch, up to the cut where it is made inside."""
        first_ms = cut.epoch * self._epoch_ms
        end_ms = first_ms + self._epoch_ms
        if cut.kind is ReportKind.EVENT:
            end_ms = min(end_ms, cut.at_ms)
        if cut.kind is ReportKind.LEAVE or not self._slots:
            return {}
        keys = [(row.group_id, row.traffic_class) for row in cut.rows]
        counted = {key: self._between(key, first_ms, end_ms) for key in keys if key in self._slots}
        return {key: topics for key, topics in counted.items() if topics}

    def forget(self, before_ms: int) -> None:
        """Drop the slots of epochs that have closed."""
        for key, slots in list(self._slots.items()):
            kept = {at_ms: topics for at_ms, topics in slots.items() if at_ms >= before_ms}
            if kept:
                self._slots[key] = kept
            else:
                del self._slots[key]

    def drop(self, keys: Iterable[UsageKey]) -> None:
        """Drop everything of these."""
        for key in keys:
            self._slots.pop(key, None)

    def state(self) -> list[Any]:
        """Everything but the epoch length, as plain data."""
        return [[*key, [list(slot) for slot in slots.items()]] for key, slots in self._slots.items()]

    @classmethod
    def from_state(cls, state: Iterable[Any], epoch_ms: int) -> Self:
        """The counts that `state` was taken from."""
        counts = cls(epoch_ms)
        counts._slots = {
            (group_id, traffic_class): {at_ms: topics for at_ms, topics in slots}  # noqa: C416  lists, not tuples
            for group_id, traffic_class, slots in state
        }
        return counts

    def _between(self, key: UsageKey, first_ms: int, end_ms: int) -> int:
        total = sum(topics for at_ms, topics in self._slots[key].items() if first_ms <= at_ms < end_ms)
        return min(total, INT32_MAX)
