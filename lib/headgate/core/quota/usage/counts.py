"""Counts of one broker by one group and class, by time, as far back as a report can still ask (resource-groups 6.1)."""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from headgate.core.quota.groups import UNLIMITED, FlagPair, IntPair, RatePair
from headgate.core.quota.usage.reports import Measured
from headgate.core.quota.usage.usage import NO_FLAGS, Usage
from headgate.core.state import PlainData, check_fields

_Sums = tuple[int, int, int, int]
"""Messages and bytes that passed, and that were tried for the first time."""


@dataclass(frozen=True, slots=True)
class Sent:
    """The last row sent for a (group, class), with the counts behind it and the instant of its cut."""

    measured: Measured
    admitted: IntPair
    epoch: int
    at_ms: int


@dataclass(frozen=True, slots=True)
class Wait:
    """Refused at `from_ms` (then `until_ms` is the same), or delayed from then until `until_ms`."""

    from_ms: int
    until_ms: int
    throttled: FlagPair

    def reaches(self, from_ms: int, until_ms: int) -> bool:
        """Whether any of it lies in the window; a wait that ended as the window began does not."""
        return self.from_ms < until_ms and (self.until_ms > from_ms or self.from_ms >= from_ms)

    def joined(self, later: "Wait") -> "Wait | None":
        """One wait for both, None where they differ or leave a gap."""
        if self.throttled != later.throttled or not self.from_ms <= later.from_ms <= self.until_ms:
            return None
        return Wait(self.from_ms, max(self.until_ms, later.until_ms), self.throttled)


class Counts:
    """Every count, wait and limit lies at its own time, so a window has one answer however the input was cut.

    Windows are half-open, [from_ms, until_ms), and their ends are multiples of `slot_ms`; what happened within a slot
    is added up. Sums up to each slot are kept until a count changes them: many windows are asked for between two
    batches of counts.
    """

    __slots__ = ("_limits", "_numbers", "_slots", "_sums", "_waits", "last", "slot_ms")

    def __init__(self, slot_ms: int) -> None:
        self.slot_ms = slot_ms
        self.last: Sent | None = None
        self._slots: dict[int, list[int]] = {}  # messages and bytes that passed, and that were tried for the first time
        self._numbers: list[int] = []  # of the slots, in order, as far as `_sums` holds
        self._sums: list[_Sums] = []  # of all slots before each of them, and of all; empty: to be summed
        self._waits: list[Wait] = []
        self._limits: list[tuple[int, RatePair]] = []  # in the order of their times

    def add(self, at_ms: int, admitted: IntPair, offered: IntPair) -> None:
        """Count what happened at `at_ms`."""
        self._sums = []
        number = at_ms // self.slot_ms
        slot = self._slots.get(number)
        if slot is None:
            self._slots[number] = [*admitted, *offered]
        else:
            slot[0] += admitted[0]
            slot[1] += admitted[1]
            slot[2] += offered[0]
            slot[3] += offered[1]

    def add_wait(self, wait: Wait) -> None:
        """Remember that something was held back."""
        joined = self._waits[-1].joined(wait) if self._waits else None
        if joined is None:
            self._waits.append(wait)
        else:
            self._waits[-1] = joined

    def set_limit(self, at_ms: int, limit: RatePair) -> None:
        """The limit in force from `at_ms` on."""
        self._limits.append((at_ms, limit))
        self._limits.sort(key=lambda change: change[0])

    def counted(self, from_ms: int, until_ms: int) -> tuple[IntPair, IntPair]:
        """All counts of the window: what passed, and what was tried for the first time."""
        if not self._sums:
            self._sum()
        first = bisect_left(self._numbers, from_ms // self.slot_ms)
        end = bisect_left(self._numbers, until_ms // self.slot_ms)
        messages, of_bytes, tried, tried_bytes = self._sums[first]
        messages_end, bytes_end, tried_end, tried_bytes_end = self._sums[end]
        return (messages_end - messages, bytes_end - of_bytes), (tried_end - tried, tried_bytes_end - tried_bytes)

    def throttled(self, from_ms: int, until_ms: int) -> FlagPair:
        """Whether anything was held back in the window, for messages and for bytes."""
        if not self._waits:
            return NO_FLAGS
        flags = [wait.throttled for wait in self._waits if wait.reaches(from_ms, until_ms)]
        return any(messages for messages, _ in flags), any(of_bytes for _, of_bytes in flags)

    def limit(self, until_ms: int) -> RatePair:
        """The limit in force just before `until_ms`."""
        return next((limit for at_ms, limit in reversed(self._limits) if at_ms < until_ms), UNLIMITED)

    def first_ms(self) -> int | None:
        """The start of the first slot or wait that is still kept, None without any."""
        slots = (number * self.slot_ms for number in self._slots)
        return min((*slots, *(wait.from_ms for wait in self._waits)), default=None)

    @property
    def quiet(self) -> bool:
        """Whether readers know of no usage: no row was sent, or the last one is idle."""
        return self.last is None or self.last.measured.usage.idle

    @property
    def empty(self) -> bool:
        """Whether nothing is kept that a later row would depend on."""
        return self.last is None and not self._slots and not self._waits and not self._limits

    def forget(self, before_ms: int) -> None:
        """Drop what no window can ask for that starts at `before_ms` or later."""
        first = before_ms // self.slot_ms
        if self._slots and min(self._slots) < first:
            self._slots = {number: slot for number, slot in self._slots.items() if number >= first}
            self._sums = []
        self._waits = [wait for wait in self._waits if max(wait.from_ms, wait.until_ms - 1) >= before_ms]
        earlier = [change for change in self._limits if change[0] < before_ms]
        self._limits = earlier[-1:] + self._limits[len(earlier) :]

    def _sum(self) -> None:
        self._numbers = sorted(self._slots)
        messages = of_bytes = tried = tried_bytes = 0
        self._sums = [(0, 0, 0, 0)]
        for number in self._numbers:
            slot = self._slots[number]
            messages += slot[0]
            of_bytes += slot[1]
            tried += slot[2]
            tried_bytes += slot[3]
            self._sums.append((messages, of_bytes, tried, tried_bytes))

    def state(self) -> PlainData:
        """Everything kept, as plain data, a copy."""
        return {
            "slot_ms": self.slot_ms,
            "last": None if self.last is None else _plain(self.last),
            "slots": [[number, slot[:2], slot[2:]] for number, slot in self._slots.items()],
            "waits": [[wait.from_ms, wait.until_ms, list(wait.throttled)] for wait in self._waits],
            "limits": [[at_ms, list(limit)] for at_ms, limit in self._limits],
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any], slot_ms: int) -> Self:
        """Rebuild what `state` was taken from; with another `slot_ms` its slots count at their starts.

        Raises StateError for fields of another version.
        """
        check_fields(cls.__name__, state, ("slot_ms", "last", "slots", "waits", "limits"))
        counts = cls(slot_ms)
        counts.last = None if state["last"] is None else _of_plain(state["last"])
        for number, passed, tried in state["slots"]:
            counts.add(number * state["slot_ms"], tuple(passed), tuple(tried))
        counts._waits = [Wait(from_ms, until_ms, tuple(flags)) for from_ms, until_ms, flags in state["waits"]]
        counts._limits = [(at_ms, tuple(limit)) for at_ms, limit in state["limits"]]
        return counts


def _plain(sent: Sent) -> list[Any]:
    measured = sent.measured
    return [measured.usage.plain(), measured.config_version, list(sent.admitted), sent.epoch, sent.at_ms]


def _of_plain(values: list[Any]) -> Sent:
    usage, config_version, (messages, of_bytes), epoch, at_ms = values
    return Sent(Measured(Usage.of_plain(usage), config_version), (messages, of_bytes), epoch, at_ms)
