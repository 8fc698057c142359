"""Whether a connection is read, and what waits while it is not (throttle-protocol 7.3, 7.5)."""

from collections.abc import Mapping
from typing import Any, Self

from headgate.core.protocol.reasons import Reason
from headgate.core.state import PlainData, check_fields


def producer_hold(producer: int) -> str:
    """The hold of a producer in P."""
    return f"producer:{producer}"


def condition_hold(reason: Reason) -> str:
    """The hold of a condition."""
    return f"reason:{int(reason)}"


class Gate:
    """Reads are off exactly while there is a hold.

    Deadlines of receipts count in ms of reading: where they freeze, that clock stands still while reads are off, and
    so a resume thaws all of them at once. Where they do not, it is the clock of the machine.

    Attributes: `holds`; `off_at_ms`, when reads went off, None while they are on; `queued`, the receipts that arrived
    meanwhile and belonged to an open id then, in order of arrival.
    Source: throttle-protocol 7.3, 7.5
    """

    __slots__ = ("_freezes", "_stood_ms", "holds", "off_at_ms", "queued")

    def __init__(self, *, freezes: bool) -> None:
        self._freezes = freezes
        self._stood_ms = 0
        self.holds: set[str] = set()
        self.off_at_ms: int | None = None
        self.queued: dict[int, None] = {}

    def add(self, hold: str, now_ms: int) -> bool:
        """Hold the connection; whether reads go off by it."""
        self.holds.add(hold)
        if self.off_at_ms is not None:
            return False
        self.off_at_ms = now_ms
        return True

    def remove(self, hold: str, now_ms: int) -> int | None:
        """Let go; how long reads were off if they come on by it, else None. Deadlines thaw."""
        self.holds.discard(hold)
        if self.holds or self.off_at_ms is None:
            return None
        off_ms = now_ms - self.off_at_ms
        self.off_at_ms = None
        if self._freezes:
            self._stood_ms += off_ms
        return off_ms

    def queue(self, request_id: int) -> bool:
        """Keep a receipt until reads are on; False for a copy of one that is kept."""
        if request_id in self.queued:
            return False
        self.queued[request_id] = None
        return True

    def take_queued(self) -> list[int]:
        """The receipts that were kept, in order of arrival."""
        ids = list(self.queued)
        self.queued.clear()
        return ids

    def reading_ms(self, now_ms: int) -> int:
        """The ms of reading at `now_ms`."""
        stands_at_ms = self.off_at_ms if self._freezes else None
        return (now_ms if stands_at_ms is None else stands_at_ms) - self._stood_ms

    def due_ms(self, deadline_ms: int) -> int | None:
        """When a deadline in ms of reading comes, None while it is frozen.

        One that was due in the millisecond in which reads went off still comes then.
        """
        due_ms = deadline_ms + self._stood_ms
        return None if self._freezes and self.off_at_ms is not None and due_ms > self.off_at_ms else due_ms

    def state(self) -> PlainData:
        """All of it as plain data, a copy."""
        return {
            "freezes": self._freezes,
            "stood_ms": self._stood_ms,
            "holds": sorted(self.holds),
            "off_at_ms": self.off_at_ms,
            "queued": list(self.queued),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Rebuild the gate that `state` was taken from. Raises StateError for fields of another version."""
        check_fields(cls.__name__, state, ("freezes", "stood_ms", "holds", "off_at_ms", "queued"))
        gate = cls(freezes=state["freezes"])
        gate._stood_ms = state["stood_ms"]
        gate.holds = set(state["holds"])
        gate.off_at_ms = state["off_at_ms"]
        gate.queued = dict.fromkeys(state["queued"])
        return gate
