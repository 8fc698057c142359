"""Ids of producers and ordinals of marks, which rows of `marks` do not have (throttle-protocol 2)."""

from collections.abc import Mapping
from typing import Any, Self


class Numbering:
    """Numbers follow from the order of a connection's rows alone.

    Marks and unmarks are counted by producer and reason: limiters release first-in first-out, so the n-th unmark
    releases the n-th mark. Conditions are flags: one that is set again keeps its number.
    """

    __slots__ = ("_conditions", "_counts", "_ids")

    def __init__(self) -> None:
        self._ids: dict[tuple[str, str], int] = {}
        self._counts: dict[tuple[int | None, int], list[int]] = {}
        self._conditions: dict[int, list[int]] = {}

    def declare(self, topic: str, name: str, id_: int) -> None:
        """The producer called `name` on `topic` has this id."""
        self._ids[topic, name] = id_

    def add(self, topic: str, name: str) -> int:
        """The id of a producer that nobody declared: the next one."""
        id_ = self._ids[topic, name] = len(self._ids)
        return id_

    def forget(self, id_: int) -> None:
        """The producer closed: its names and counts go, as its id is not used again."""
        self._ids = {pair: own for pair, own in self._ids.items() if own != id_}
        self._counts = {pair: counts for pair, counts in self._counts.items() if pair[0] != id_}

    def id_of(self, topic: str, name: str) -> int | None:
        """The producer's id, None where it has none."""
        return self._ids.get((topic, name))

    def mark(self, producer: int | None, reason: int) -> int:
        """The ordinal of the producer's next mark."""
        counts = self._counts.setdefault((producer, reason), [0, 0])
        counts[0] += 1
        return counts[0]

    def unmark(self, producer: int | None, reason: int) -> int:
        """The ordinal of the mark that its limiter releases next."""
        counts = self._counts.setdefault((producer, reason), [0, 0])
        counts[1] += 1
        return counts[1]

    def begin(self, reason: int) -> int:
        """The ordinal of the condition's activation, a new one where it was not set."""
        condition = self._conditions.setdefault(reason, [0, 0])
        if not condition[1]:
            condition[:] = [condition[0] + 1, 1]
        return condition[0]

    def end(self, reason: int) -> int:
        """The ordinal of the activation that ends; 0 where there was none."""
        condition = self._conditions.setdefault(reason, [0, 0])
        condition[1] = 0
        return condition[0]

    def state(self) -> dict[str, Any]:
        """All of it as plain data; what is empty is left out."""
        parts = {
            "ids": [[*pair, id_] for pair, id_ in self._ids.items()],
            "counts": [[*pair, *counts] for pair, counts in self._counts.items()],
            "conditions": [[reason, *condition] for reason, condition in self._conditions.items()],
        }
        return {name: part for name, part in parts.items() if part}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Rebuild what `state` was taken from."""
        numbering = cls()
        numbering._ids = {(topic, name): id_ for topic, name, id_ in state.get("ids", ())}
        numbering._counts = {(producer, reason): counts for producer, reason, *counts in state.get("counts", ())}
        numbering._conditions = {reason: condition for reason, *condition in state.get("conditions", ())}
        return numbering
