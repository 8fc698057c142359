"""Numbers of marks and of releases, by which copies and reordering do no harm (throttle-protocol 7.2)."""

from collections.abc import Iterable, Sequence
from typing import Self

from headgate.core.protocol.reasons import Reason


class Ordinals:
    """A reason is held while its youngest mark is younger than its youngest release.

    Both numbers only grow, so a copy changes nothing, a release may overtake its mark, and one without a mark has no
    effect. Marks of conditions are their settings, releases their clearings.
    Source: throttle-protocol 7.2
    """

    __slots__ = ("_marked", "_released")

    def __init__(self) -> None:
        self._marked: dict[Reason, int] = {}
        self._released: dict[Reason, int] = {}

    def mark(self, reason: Reason, ordinal: int) -> bool:
        """Whether the mark is live: younger than those seen, and not released yet."""
        if ordinal <= self._marked.get(reason, 0):
            return False
        self._marked[reason] = ordinal
        return ordinal > self._released.get(reason, 0)

    def release(self, reason: Reason, ordinal: int) -> bool:
        """Release all marks up to `ordinal`; whether the reason was held and is not any more."""
        was_held = self.holds(reason)
        if ordinal > self._released.get(reason, 0):
            self._released[reason] = ordinal
        return was_held and not self.holds(reason)

    def holds(self, reason: Reason) -> bool:
        """Whether the reason is held."""
        return self._marked.get(reason, 0) > self._released.get(reason, 0)

    def held(self) -> list[Reason]:
        """The reasons that are held, ascending."""
        return sorted(reason for reason in self._marked if self.holds(reason))

    def state(self) -> list[list[int]]:
        """[reason, youngest mark, youngest release] for each reason seen, ascending."""
        return [
            [int(reason), self._marked.get(reason, 0), self._released.get(reason, 0)]
            for reason in sorted({*self._marked, *self._released})
        ]

    @classmethod
    def from_state(cls, state: Iterable[Sequence[int]]) -> Self:
        """Rebuild what `state` was taken from."""
        ordinals = cls()
        for code, marked, released in state:
            ordinals._marked[Reason(code)] = marked
            ordinals._released[Reason(code)] = released
        return ordinals
