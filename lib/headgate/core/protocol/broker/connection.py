"""The broker's machine of one connection: when it asks producers to stop, and when it stops reading (PIP-385)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Self

from headgate.core.numbers import MAX, at_least
from headgate.core.protocol.broker import inputs
from headgate.core.protocol.broker.broker_metrics import BrokerMetrics
from headgate.core.protocol.broker.checks import Facts, error_in, is_time
from headgate.core.protocol.broker.conditions import Conditions
from headgate.core.protocol.broker.gate import Gate
from headgate.core.protocol.broker.inputs import Input
from headgate.core.protocol.broker.outbox import Outbox
from headgate.core.protocol.broker.outputs import BadInput, Output
from headgate.core.protocol.broker.producer import Phase, Producer
from headgate.core.protocol.broker.throttling import Throttling
from headgate.core.protocol.reasons import Reason
from headgate.core.protocol.settings import BrokerSettings, PauseMode
from headgate.core.state import PlainData, check_fields

OfProducer = inputs.Publish | inputs.Mark | inputs.Quote | inputs.Unmark | inputs.CloseProducer

_FIELDS = ("now_ms", "supports", "settings", "issued", "gate", "conditions", "producers")


class Connection:
    """Reads are off exactly while a producer holds the connection or a condition is active.

    Pure: time comes with the inputs. An input acts at the highest time seen, after all timers due before it; those due
    in its own millisecond fire when a later input or `advance` says that the millisecond is over. Bad input is
    rejected, and moves no more than the clock.

    Arguments: `settings`, fixed for the connection's life and part of its state; `metrics`, where it counts, no part of
    its state; `supports`, the client's feature flag; `at_ms`, when it opened, 0 to 2^63-1.
    Attributes: `now_ms`, its clock; `is_open`, until a Close.
    Source: PIP-385, throttle-protocol 1 and 7
    """

    __slots__ = ("_conditions", "_facts", "_gate", "_outbox", "_settings", "_throttling", "is_open", "now_ms")

    def __init__(self, settings: BrokerSettings, metrics: BrokerMetrics, *, supports: bool, at_ms: int) -> None:
        self.now_ms = at_least(0, at_ms, "at_ms")
        self._assemble(settings, Gate(freezes=settings.freeze_deadlines), Outbox(metrics), supports=supports)

    def feed(self, given: Input) -> list[Output]:
        """Take one input, and return what it and the timers before it emit, in order."""
        if not is_time(given.at_ms):
            self._outbox.rejected(given.at_ms, BadInput.BAD_TIME)
            return self._outbox.taken()
        self._reach(given.at_ms)
        error = error_in(given, self._facts)
        if error is None:
            _ACTIONS[type(given)](self, given)
        else:
            self._outbox.rejected(self.now_ms, error)
        return self._outbox.taken()

    def advance(self, at_ms: int) -> list[Output]:
        """Millisecond `at_ms` is over: fire all that is due by then. A late one acts at the clock, as an input does.

        Raises InvalidArgument outside 0 to 2^63-1.
        """
        self._reach(at_least(0, at_ms, "at_ms"))
        self._fire_until(self.now_ms)
        return self._outbox.taken()

    def next_due_ms(self) -> int | None:
        """When the earliest timer is due, None without one. What is frozen is not due, nor what is past 2^63-1."""
        told = self._throttling.told
        due = [timer[0] for timer in (told.deadline(), told.end()) if timer is not None and timer[0] <= MAX]
        return min(due, default=None)

    @property
    def awaits_receipts(self) -> bool:
        """Whether an id is open, its deadline frozen or not."""
        return bool(self._throttling.told.open_ids)

    @property
    def is_free(self) -> bool:
        """Whether reads are on and no producer was told anything that is in force."""
        producers = self._throttling.producers.values()
        return not self._gate.holds and all(producer.phase is Phase.FREE for producer in producers)

    def view(self) -> PlainData:
        """Reads, holds, queued receipts and producers as a probe shows them. Source: throttle-protocol 19"""
        return {
            "reads": "on" if self._gate.off_at_ms is None else "off",
            "holds": sorted(self._gate.holds),
            "queued": list(self._gate.queued),
            "producers": {str(id_): producer.view() for id_, producer in self._throttling.producers.items()},
        }

    def state(self) -> PlainData:
        """Settings and state as plain data, a copy: integers, texts, and lists and dicts of these."""
        return {
            "now_ms": self.now_ms,
            "supports": self._facts.supports,
            "settings": self._settings.values(),
            "issued": self._outbox.issued,
            "gate": self._gate.state(),
            "conditions": self._conditions.state(),
            "producers": [producer.state() for producer in self._throttling.producers.values()],
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any], metrics: BrokerMetrics) -> Self:
        """Rebuild the connection that `state` was taken from. Raises StateError for fields of another version."""
        check_fields(cls.__name__, state, _FIELDS)
        connection = cls.__new__(cls)
        connection.now_ms = state["now_ms"]
        connection._assemble(
            _settings(tuple(state["settings"].items())),
            Gate.from_state(state["gate"]),
            Outbox(metrics, state["issued"]),
            supports=state["supports"],
            producers=[Producer.from_state(producer) for producer in state["producers"]],
            conditions=state["conditions"],
        )
        return connection

    def _assemble(
        self,
        settings: BrokerSettings,
        gate: Gate,
        outbox: Outbox,
        *,
        supports: bool,
        producers: Iterable[Producer] = (),
        conditions: Iterable[Sequence[int]] = (),
    ) -> None:
        asks = supports and settings.is_on
        self._settings = settings
        self._gate = gate
        self._outbox = outbox
        self._throttling = Throttling(settings, gate, outbox, producers, asks=asks)
        self._conditions = Conditions(self._throttling, outbox, conditions, asks=asks)
        needs_buckets = settings.pause_mode is PauseMode.BUCKET_REFILL
        self._facts = Facts(self._throttling.producers, supports=supports, needs_buckets=needs_buckets)
        self.is_open = True

    def _reach(self, at_ms: int) -> None:
        if at_ms > self.now_ms:
            self._fire_until(at_ms - 1)
            self.now_ms = at_ms

    def _fire_until(self, last_ms: int) -> None:
        """Fire timers due up to `last_ms`, each at its time: in one millisecond deadlines, then ends of windows."""
        told, throttling = self._throttling.told, self._throttling
        while True:
            deadline, end = told.deadline(), told.end()
            if deadline is not None and deadline[0] <= last_ms and (end is None or deadline[0] <= end[0]):
                self.now_ms = deadline[0]
                throttling.miss_deadline(deadline[1], self.now_ms)
            elif end is not None and end[0] <= last_ms:
                self.now_ms = end[0]
                throttling.end_window(end[1], self.now_ms)
            else:
                return

    def _connect(self, _: inputs.Connect) -> None:
        """A copy: the connection is open."""

    def _open(self, given: inputs.Open) -> None:
        if given.producer not in self._throttling.producers:
            self._throttling.producers[given.producer] = Producer(given.producer, given.topic)

    def _publish(self, given: inputs.Publish) -> None:
        self._throttling.publish(self._producer(given), self.now_ms)

    def _mark(self, given: inputs.Mark) -> None:
        self._throttling.mark(self._producer(given), given.trips, self.now_ms, trigger=given.trigger)

    def _receipt(self, given: inputs.Receipt) -> None:
        self._throttling.receipt(given.request_id)

    def _quote(self, given: inputs.Quote) -> None:
        self._throttling.quote(self._producer(given), Reason(given.reason), given.buckets, self.now_ms)

    def _set(self, given: inputs.ConditionSet) -> None:
        tripped_by = self._throttling.producers.get(given.producer) if type(given.producer) is int else None
        self._conditions.set(Reason(given.reason), given.ordinal, tripped_by, self.now_ms)

    def _unmark(self, given: inputs.Unmark) -> None:
        self._throttling.unmark(self._producer(given), Reason(given.reason), given.ordinal, self.now_ms)

    def _clear(self, given: inputs.ConditionClear) -> None:
        self._conditions.clear(Reason(given.reason), given.ordinal, self.now_ms)

    def _close_producer(self, given: inputs.CloseProducer) -> None:
        self._throttling.close(self._producer(given), self.now_ms)

    def _close(self, _: inputs.Close) -> None:
        self.is_open = False
        if self._gate.off_at_ms is not None:
            self._outbox.metrics.reads_off(self.now_ms - self._gate.off_at_ms)

    def _probe(self, _: inputs.Probe) -> None:
        """Looking changes nothing."""

    def _producer(self, given: OfProducer) -> Producer:
        return self._throttling.producers[given.producer]


@lru_cache(maxsize=64)
def _settings(values: tuple[tuple[str, Any], ...]) -> BrokerSettings:
    """Settings are few, and connections that were stored with them many."""
    return BrokerSettings.of(dict(values))


_ACTIONS: dict[type, Callable[[Connection, Any], None]] = {
    inputs.Connect: Connection._connect,
    inputs.Open: Connection._open,
    inputs.Publish: Connection._publish,
    inputs.Mark: Connection._mark,
    inputs.Receipt: Connection._receipt,
    inputs.Quote: Connection._quote,
    inputs.ConditionSet: Connection._set,
    inputs.Unmark: Connection._unmark,
    inputs.ConditionClear: Connection._clear,
    inputs.CloseProducer: Connection._close_producer,
    inputs.Close: Connection._close,
    inputs.Probe: Connection._probe,
}
