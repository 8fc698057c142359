"""When a connection was read, and what kept it from being read: its throttle tracker in time (rate-limiters 5)."""

from collections.abc import Iterable
from typing import NamedTuple, Self

from headgate.core.names import one_of
from headgate.core.numbers import MIN
from headgate.core.publish.throttle_tracker import MarkResult, ThrottleTracker, ThrottleType

TYPES = tuple(ThrottleType)
_PLACE = {type_: place for place, type_ in enumerate(TYPES)}
_TRACKED = ("active", "auto_read", "paused", "resumed", "throttled_connections")
NUMBERS = (
    *_TRACKED,
    *("high_ns", "paused_at_ns", "waiting", "owed_at_ns"),
    *(f"{name}_{type_}" for name in ("count", "since_ns", "held_ns", "owed") for type_ in TYPES),
)
"""What `ConnectionReads.numbers` returns, in its order."""
_NEVER = MIN


class Transition(NamedTuple):
    """Reads were switched off or on at `at_ns`, or ended while they were off; the tracker's metrics after it.

    Each pause has one Transition that begins it and, but for one that goes on, one that ends it. auto_read: None when
    the connection was closed before reads were on again. paused_ns, held_ns: of one that ends a pause, how long reads
    were off, and for how long each type held them in it; these times overlap. None and empty when it begins.
    """

    at_ns: int
    auto_read: bool | None
    paused: int
    resumed: int
    throttled_connections: int
    paused_ns: int | None = None
    held_ns: tuple[int, ...] = ()


class ConnectionReads:
    """While the connection is open, it is read if and only if no type is marked (tracker); times never run backwards.

    Of marks and unmarks of one instant the order need not be known: an unmark that comes before its mark is owed until
    the end of that instant, and the mark takes it back. Any other unmark without a mark is dropped. For that, the marks
    of BrokerPublishRate are counted, though it is a flag (PB-6).
    """

    __slots__ = ("held_ns", "high_ns", "owed", "owed_at_ns", "paused_at_ns", "since_ns", "tracker", "waiting")

    def __init__(self) -> None:
        self.tracker = ThrottleTracker()
        self.high_ns = self.paused_at_ns = self.owed_at_ns = _NEVER
        self.waiting = 0
        self.since_ns = [_NEVER] * len(TYPES)
        self.held_ns = [0] * len(TYPES)
        self.owed = [0] * len(TYPES)

    def mark(self, type_: str, at_ns: int) -> Transition | None:
        """A limiter or condition starts to hold the connection. Raises InvalidArgument for an unknown type."""
        kind = one_of(ThrottleType, type_, "type")
        place = _PLACE[kind]
        at_ns = self._come_to(at_ns)
        if self.owed[place]:
            self.owed[place] -= 1
            return None
        if kind is ThrottleType.BROKER_PUBLISH_RATE:
            self.waiting += 1
        result = self.tracker.mark(kind)
        if self.since_ns[place] == _NEVER:
            self.since_ns[place] = at_ns
        if result is not MarkResult.CONNECTION_STATE_CHANGED or not self.tracker.active:
            return None
        self.paused_at_ns = at_ns
        return self._transition(at_ns)

    def unmark(self, type_: str, at_ns: int) -> Transition | None:
        """A limiter or condition stops holding the connection. Raises InvalidArgument for an unknown type."""
        kind = one_of(ThrottleType, type_, "type")
        place = _PLACE[kind]
        at_ns = self._come_to(at_ns)
        is_broker = kind is ThrottleType.BROKER_PUBLISH_RATE
        if not (self.waiting if is_broker else self.tracker.count(kind)):
            self.owed[place] += 1
            self.owed_at_ns = at_ns
            return None
        if is_broker:
            self.waiting -= 1
        result = self.tracker.unmark(kind)
        if result is not MarkResult.DROPPED and not self.tracker.count(kind):
            self.held_ns[place] += at_ns - self.since_ns[place]
            self.since_ns[place] = _NEVER
        if result is not MarkResult.CONNECTION_STATE_CHANGED or not self.tracker.active:
            return None
        return self._end_of_pause(at_ns)

    def open(self, at_ns: int) -> Transition | None:
        """The connection is there. One that was closed begins anew, but what is still marked goes on holding it."""
        at_ns = self._come_to(at_ns)
        if self.tracker.active:
            return None
        marked = [(type_, self.tracker.count(type_)) for type_ in TYPES]
        self.tracker = ThrottleTracker()
        self.held_ns = [0] * len(TYPES)
        for place, (type_, count) in enumerate(marked):
            for _ in range(count):
                self.tracker.mark(type_)
            self.since_ns[place] = at_ns if count else _NEVER
        if not self.tracker.throttled:
            return None
        self.paused_at_ns = at_ns
        return self._transition(at_ns)

    def close(self, at_ns: int) -> Transition | None:
        """The connection is gone, and a pause with it: from here on only counts move."""
        at_ns = self._come_to(at_ns)
        ends_pause = self.tracker.active and not self.tracker.auto_read
        self.tracker.close()
        if not ends_pause:
            return None
        for place, since_ns in enumerate(self.since_ns):
            if since_ns != _NEVER:
                self.held_ns[place] += at_ns - since_ns
        return self._end_of_pause(at_ns)._replace(auto_read=None)

    @property
    def is_over(self) -> bool:
        """Whether it is closed, and nothing that was marked is still to be unmarked."""
        return not (self.tracker.active or self.tracker.throttled or self.waiting)

    def is_silent(self, at_ns: int, silent_ns: int) -> bool:
        """Whether it is open, nothing is marked, and nothing moved it in the `silent_ns` before `at_ns` (0: never)."""
        is_free = self.tracker.active and not (self.tracker.throttled or self.waiting)
        return is_free and 0 < silent_ns < at_ns - self.high_ns

    def numbers(self) -> tuple[int, ...]:
        """The whole state, in the order of NUMBERS."""
        tracker = self.tracker
        return (
            *(int(getattr(tracker, name)) for name in _TRACKED),
            *(self.high_ns, self.paused_at_ns, self.waiting, self.owed_at_ns),
            *(tracker.count(type_) for type_ in TYPES),
            *(*self.since_ns, *self.held_ns, *self.owed),
        )

    @classmethod
    def from_numbers(cls, numbers: Iterable[int]) -> Self:
        """Rebuild what `numbers` was taken from."""
        active, auto_read, paused, resumed, throttled, high_ns, paused_at_ns, waiting, owed_at_ns, *by_type = numbers
        count, since_ns, held_ns, owed = (
            by_type[begin : begin + len(TYPES)] for begin in range(0, len(by_type), len(TYPES))
        )
        reads = cls()
        tracked = zip(_TRACKED, (bool(active), bool(auto_read), paused, resumed, throttled), strict=True)
        reads.tracker = ThrottleTracker.from_state({"counts": count} | dict(tracked))
        reads.high_ns, reads.paused_at_ns, reads.waiting, reads.owed_at_ns = high_ns, paused_at_ns, waiting, owed_at_ns
        reads.since_ns, reads.held_ns, reads.owed = since_ns, held_ns, owed
        return reads

    def _come_to(self, at_ns: int) -> int:
        """The instant that is acted at; what was owed at an earlier one is dropped."""
        self.high_ns = max(self.high_ns, at_ns)
        if self.owed_at_ns != _NEVER and self.owed_at_ns != self.high_ns:  # noqa: PLR1714  once a mark
            self.owed, self.owed_at_ns = [0] * len(TYPES), _NEVER
        return self.high_ns

    def _end_of_pause(self, at_ns: int) -> Transition:
        held_ns, self.held_ns = tuple(self.held_ns), [0] * len(TYPES)
        return self._transition(at_ns)._replace(paused_ns=at_ns - self.paused_at_ns, held_ns=held_ns)

    def _transition(self, at_ns: int) -> Transition:
        tracker = self.tracker
        return Transition(at_ns, tracker.auto_read, tracker.paused, tracker.resumed, tracker.throttled_connections)
