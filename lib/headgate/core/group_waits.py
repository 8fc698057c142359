"""When a group makes somebody wait, and for want of what: told in pieces that add up, however often one looks."""

from dataclasses import dataclass, field
from typing import NamedTuple


class GroupWait(NamedTuple):
    """A time in which somebody waited for a group, for the same causes all along (1 messages, 2 bytes)."""

    limiter: int
    from_ns: int
    until_ns: int
    causes: int


@dataclass
class OpenWait:
    """A wait that goes on, and was told up to `since_ns`. is_told: something of it was told already."""

    causes: int
    since_ns: int
    is_told: bool = False


@dataclass
class WaitLog:
    """Waits by limiter: those that go on, and what is told."""

    open: dict[int, OpenWait] = field(default_factory=dict)
    told: list[GroupWait] = field(default_factory=list)

    def note(self, limiter: int, causes: int, now_ns: int) -> None:
        """Somebody has to wait: a wait begins, or goes on, or goes on for more causes."""
        wait = self.open.get(limiter)
        if wait is None:
            self.open[limiter] = OpenWait(causes, now_ns)
        elif wait.causes | causes != wait.causes:
            self._tell(limiter, wait, now_ns)
            self.open[limiter] = OpenWait(wait.causes | causes, now_ns)

    def end(self, limiter: int, now_ns: int) -> None:
        """Nobody waits any longer."""
        wait = self.open.pop(limiter, None)
        if wait is not None:
            self._tell(limiter, wait, now_ns)

    def _tell(self, limiter: int, wait: OpenWait, now_ns: int) -> None:
        """Up to now; a time without a length only if nothing of it was told before."""
        if wait.since_ns < now_ns or not wait.is_told:
            self.told.append(GroupWait(limiter, wait.since_ns, now_ns, wait.causes))
