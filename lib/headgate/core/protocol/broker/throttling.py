"""What is done about the producers of a connection: the table of throttle-protocol 7.4, whose rows comments name, and
the gate that it moves.
"""

from collections.abc import Iterable, Mapping, Sequence

from headgate.core.protocol.broker.announcements import Announcements
from headgate.core.protocol.broker.gate import Gate, producer_hold
from headgate.core.protocol.broker.inputs import Trip
from headgate.core.protocol.broker.outbox import Outbox
from headgate.core.protocol.broker.outputs import Cause, CommandKind
from headgate.core.protocol.broker.pause import Bucket, Pause, Quote, extension, until_refilled, until_second
from headgate.core.protocol.broker.producer import Phase, Producer, Window
from headgate.core.protocol.reasons import Reason
from headgate.core.protocol.settings import BrokerSettings, PauseMode, ViolationPolicy

Balances = Sequence[Sequence[int]]
"""One or two [balance, rate per s], as they arrived."""


class Throttling:
    """A producer holds the gate exactly while it is in P; nothing but an unmark or its close ends that.

    Inputs were checked, and every timer due before `now_ms` has fired. Numbers in comments are rows of the table.

    Arguments: `asks`, whether the connection is cooperative.
    Attributes: `producers` that are open, by id; `told`, what their clients were told.
    Source: PIP-385, throttle-protocol 7.2 to 7.6
    """

    __slots__ = ("_asks", "_gate", "_outbox", "_settings", "producers", "told")

    def __init__(
        self, settings: BrokerSettings, gate: Gate, outbox: Outbox, producers: Iterable[Producer], *, asks: bool
    ) -> None:
        self._settings = settings
        self._gate = gate
        self._outbox = outbox
        self._asks = asks
        self.producers = {producer.id: producer for producer in producers}
        self.told = Announcements(settings.receipt_wait_ms, gate, outbox, self.producers.values())

    def mark(self, producer: Producer, trips: Sequence[Trip], now_ms: int, *, trigger: bool) -> None:
        """One publish tripped limiters; the pause is decided by those trips that are news."""
        live = self._live(producer, trips, now_ms, trigger=trigger)
        if not live or producer.phase is Phase.HOLDING:  # 6
            return
        pause = self._pause(live, now_ms)
        if not self._asks:  # 1
            self._fall_back(producer, Cause.NO_SUPPORT, pause.reason, now_ms)
        elif self._is_above_floor(pause):  # 2
            self._fall_back(producer, Cause.HARD_FLOOR, pause.reason, now_ms)
        elif producer.window is None:  # 3
            self.told.send(CommandKind.START, producer, pause, now_ms)
        elif now_ms + pause.pause_ms >= producer.window.end_ms + self._least_gain_ms(producer.window, now_ms):  # 4; 5
            self.told.send(CommandKind.EXTEND, producer, pause, now_ms)

    def quote(self, producer: Producer, reason: Reason, buckets: Balances, now_ms: int) -> None:
        """Newer balances of a limiter; nothing where it does not hold the producer."""
        if producer.ordinals.holds(reason):  # 7
            self._note(producer, reason, buckets, now_ms)

    def receipt(self, request_id: int) -> None:
        """A receipt arrived. While reads are off that of an open id waits for them, but no copy of it and no other."""
        if request_id not in self.told.open_ids:  # 10
            self._outbox.metrics.receipt("ignored" if 1 <= request_id <= self._outbox.issued else "unknown")
        elif self._gate.off_at_ms is None:  # 8, 9
            self.told.answer(request_id)
            self._outbox.metrics.receipt("in_time")
        elif not self._gate.queue(request_id):
            self._outbox.metrics.receipt("ignored")

    def miss_deadline(self, producer: Producer, now_ms: int) -> None:
        """An open id was not answered in time."""
        if producer.window is not None:  # 11
            self._fall_back(producer, Cause.NO_RECEIPT, producer.window.reason, now_ms)

    def end_window(self, producer: Producer, now_ms: int) -> None:
        """The announced end came, and a limiter still holds."""
        pause = self._extension(producer, now_ms)
        if self._is_above_floor(pause):  # 12
            self._fall_back(producer, Cause.HARD_FLOOR, pause.reason, now_ms)
        else:  # 13
            self.told.send(CommandKind.EXTEND, producer, pause, now_ms)

    def publish(self, producer: Producer, now_ms: int) -> None:
        """A message was read; from a client that promised not to write it turns reads off."""
        if producer.phase is not Phase.TRUSTED or producer.window is None:  # 15
            return
        ends_ms = producer.window.end_ms - self._settings.violation_slack_ms
        if self._settings.violation_policy is ViolationPolicy.PAUSE and now_ms < ends_ms:  # 14
            self._fall_back(producer, Cause.VIOLATION, producer.window.reason, now_ms)

    def unmark(self, producer: Producer, reason: Reason, ordinal: int, now_ms: int) -> None:
        """A limiter released marks; the producer is free once none holds it, and only then."""
        if producer.ordinals.release(reason, ordinal) and not producer.ordinals.held():  # 16, 17; else 18
            self.told.settle(producer, Phase.FREE)
            self.let_go(producer_hold(producer.id), now_ms)

    def close(self, producer: Producer, now_ms: int) -> None:
        """The producer is gone, and its hold with it."""
        self.told.settle(producer, Phase.FREE)  # 19
        del self.producers[producer.id]
        self.let_go(producer_hold(producer.id), now_ms)

    def hold(self, hold: str, cause: Cause, reason: Reason, producer: Producer | None, now_ms: int) -> None:
        """Add a hold; the first one turns reads off."""
        if self._gate.add(hold, now_ms):
            self._outbox.paused(now_ms, cause, reason, producer)

    def let_go(self, hold: str, now_ms: int) -> None:
        """Remove a hold, where it is; the last one turns reads on, and what waited in the socket is read."""
        off_ms = self._gate.remove(hold, now_ms)
        if off_ms is not None:
            self._outbox.resumed(now_ms, off_ms)
            for request_id in self._gate.take_queued():
                self.receipt(request_id)

    def _fall_back(self, producer: Producer, cause: Cause, reason: Reason, now_ms: int) -> None:
        """Enter P."""
        self.told.settle(producer, Phase.HOLDING)
        self._outbox.metrics.fallback(cause)
        self.hold(producer_hold(producer.id), cause, reason, producer, now_ms)

    def _live(
        self, producer: Producer, trips: Sequence[Trip], now_ms: int, *, trigger: bool
    ) -> dict[Reason, list[Bucket]]:
        """The balances of the limiters whose mark is neither a copy nor released already."""
        live = {}
        for trip in trips:
            reason = Reason(trip.reason)
            was_held = producer.ordinals.holds(reason)
            if producer.ordinals.mark(reason, trip.ordinal):
                live[reason] = self._note(producer, reason, trip.buckets, now_ms)
                if trigger and not was_held:
                    self._outbox.metrics.breach(reason, producer.topic)
        return live

    def _note(self, producer: Producer, reason: Reason, balances: Balances, now_ms: int) -> list[Bucket]:
        """Keep a limiter's balances, where pauses depend on them."""
        if not self._looks_at_buckets:
            return []
        buckets = [Bucket(*balance) for balance in balances]
        producer.quotes[reason] = Quote(now_ms, buckets)
        return buckets

    def _pause(self, live: Mapping[Reason, list[Bucket]], now_ms: int) -> Pause:
        if self._looks_at_buckets:
            return until_refilled(live)
        return until_second(now_ms, self._settings.phase_ms, live)

    def _extension(self, producer: Producer, now_ms: int) -> Pause:
        held = producer.ordinals.held()
        if self._looks_at_buckets:
            quotes = {reason: producer.quotes[reason] for reason in held}
            return extension(quotes, now_ms, self._settings.idle_extension_ms)
        return until_second(now_ms, self._settings.phase_ms, held)

    def _least_gain_ms(self, window: Window, now_ms: int) -> int:
        left_ms = window.end_ms - now_ms if self._settings.doubling_extensions else 0
        return max(self._settings.extension_step_ms, left_ms)

    def _is_above_floor(self, pause: Pause) -> bool:
        return 0 < self._settings.hard_floor_pause_ms < pause.pause_ms

    @property
    def _looks_at_buckets(self) -> bool:
        return self._settings.pause_mode is PauseMode.BUCKET_REFILL
