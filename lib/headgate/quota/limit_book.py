"""The limits of this loop's brokers as they were decided last, and which of them changed since they were told."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from headgate.core.quota.evaluation.step_parameters import CellLimit, Reason
from headgate.core.quota.groups import Dimension, RatePair, UsageKey

Cell = tuple[int, int, int]
"""Group id, class, dimension."""


class Present(NamedTuple):
    """A limit, a second, None for not limited, and why."""

    limit: int | None
    reason: Reason


NEVER_LIMITED = Present(None, Reason.UNSET)
DROPPED = CellLimit(None, None, None, 0, 0, 0, 0, Reason.UNSET)
_NOBODY: Mapping[int, Present] = {}


class Decided(NamedTuple):
    """A cell of a broker whose limit or reason is another one than before."""

    broker_id: int
    cell: Cell
    outcome: CellLimit


class LimitBook:
    """A cell that was never decided is not limited. What changed and changed back before a `settle` did not change."""

    def __init__(self) -> None:
        self._present: dict[Cell, dict[int, Present]] = {}
        self._before: dict[tuple[Cell, int], Present] = {}
        self._outcomes: dict[tuple[Cell, int], CellLimit] = {}

    def of(self, cell: Cell) -> Mapping[int, Present]:
        """What is known of a cell, by broker."""
        return self._present.get(cell, _NOBODY)

    def present(self, cell: Cell, broker_id: int) -> Present:
        """What holds now for a broker."""
        return self.of(cell).get(broker_id, NEVER_LIMITED)

    def limits(self, key: UsageKey, broker_id: int) -> RatePair:
        """Both limits of a group and class."""
        of_messages, of_bytes = (self.present((*key, dimension), broker_id).limit for dimension in Dimension)
        return of_messages, of_bytes

    def decide(self, cell: Cell, broker_id: int, outcome: CellLimit) -> None:
        """From now on this holds."""
        before = self.present(cell, broker_id)
        now = Present(outcome.limit, outcome.reason)
        if now == before:
            return
        self._before.setdefault((cell, broker_id), before)
        self._outcomes[cell, broker_id] = outcome
        self._present.setdefault(cell, {})[broker_id] = now

    def drop(self, group_id: int) -> None:
        """The group is not in use any more: nothing limits it."""
        for cell in [cell for cell in self._present if cell[0] == group_id]:
            for broker_id in list(self._present[cell]):
                self.decide(cell, broker_id, DROPPED)
            del self._present[cell]

    def settle(self) -> Iterator[Decided]:
        """What changed since the last time, by broker and cell."""
        for (cell, broker_id), outcome in sorted(self._outcomes.items(), key=lambda one: (one[0][1], one[0][0])):
            if self._before[cell, broker_id] != (outcome.limit, outcome.reason):
                yield Decided(broker_id, cell, outcome)
        self._before.clear()
        self._outcomes.clear()
