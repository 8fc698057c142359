"""The client's side of a connection: its producers, their clock and their timers (throttle-protocol 10)."""

from collections.abc import Callable

from headgate.core.numbers import MAX
from headgate.core.protocol.client.client_metrics import ClientMetrics
from headgate.core.protocol.client.client_outputs import (
    Failed,
    MessageId,
    Output,
    Probe,
    Receipt,
    Rejected,
    Rejection,
)
from headgate.core.protocol.client.client_producer import ClientProducer
from headgate.core.protocol.client.client_timers import ClientTimers, TimerKind
from headgate.core.protocol.client.commands import CommandOutcome, ThrottleCommand
from headgate.core.protocol.client.windows import Window
from headgate.core.protocol.reasons import Reason, received
from headgate.core.protocol.request_ids import RequestIds
from headgate.core.protocol.settings import ClientSettings

Operation = Callable[[int], list[Output]]


class ClientMachine:
    """No producer writes inside its window while the link is up, and every command that is understood is answered.

    Each input is a method: its last argument is the time in ms, and it returns what to do, in order; that of timers
    due before the input comes first. At one ms come all inputs, then the timers, so tell with `advance` that a ms is
    complete. An input with an earlier time than one before acts at the latest time seen. Bad input never raises.
    A machine is not safe to use from several threads at once.

    Attributes: `now_ms`, the clock, from 0.
    Source: PIP-385; throttle-protocol 10
    """

    __slots__ = ("_enabled", "_link_up", "_metrics", "_producers", "_seen", "_timers", "now_ms")

    def __init__(self, settings: ClientSettings) -> None:
        self.now_ms = 0
        self._enabled = settings.enabled
        self._link_up = True
        self._seen = RequestIds()
        self._producers = {
            producer_id: ClientProducer(producer_id, topic, settings)
            for producer_id, topic in sorted(settings.producers.items())
        }
        self._timers = ClientTimers(lambda kind, producer_id: self._producers[producer_id].due_ms(kind))
        self._metrics = ClientMetrics()

    def next_due_ms(self) -> int | None:
        """When `advance` has something to do, None for never. It may be after 2^63-1."""
        timer = self._timers.next()
        return None if timer is None else timer.due_ms

    def advance(self, at_ms: int) -> list[Output]:
        """That ms is complete: all timers due up to and including it fire."""
        return self.perform(at_ms, self._fired)

    def throttle(self, command: ThrottleCommand, at_ms: int) -> list[Output]:
        """A command arrived. Its receipt comes last, when its window is in force. Source: throttle-protocol 10.3"""
        if not command.has_issue_time:
            return self._counted([Rejected(at_ms, Rejection.BAD_TIME)])
        return self.perform(at_ms, lambda now_ms: self._throttled(command, now_ms))

    def send(self, producer_id: int, message_id: MessageId, at_ms: int) -> list[Output]:
        """A message to be delivered; its id is that of no other pending message of the producer."""
        return self.perform(at_ms, lambda now_ms: self._sent(producer_id, message_id, now_ms))

    def send_routed(self, route: Callable[[int], int], message_id: MessageId, at_ms: int) -> list[Output]:
        """As `send`, to the producer that `route` names when the machine has reached the time, which it is given."""
        return self.perform(at_ms, lambda now_ms: self._sent(route(now_ms), message_id, now_ms))

    def ack(self, producer_id: int, message_id: MessageId, at_ms: int) -> list[Output]:
        """The broker has stored the message."""
        return self.perform(at_ms, lambda now_ms: self._completed(ClientProducer.ack, producer_id, message_id, now_ms))

    def nack(self, producer_id: int, message_id: MessageId, at_ms: int) -> list[Output]:
        """The broker, or the library, has refused the message."""
        return self.perform(at_ms, lambda now_ms: self._completed(ClientProducer.nack, producer_id, message_id, now_ms))

    def disconnect(self, at_ms: int) -> list[Output]:
        """The connection is lost."""
        return self.perform(at_ms, self._disconnected)

    def reconnect(self, at_ms: int) -> list[Output]:
        """The connection is there again."""
        return self.perform(at_ms, self._reconnected)

    def renumber(self, at_ms: int) -> list[Output]:
        """The library has connected again and has written again by itself what was pending: request ids start anew.

        Instead of `disconnect` and `reconnect`; windows run out. Source: throttle-protocol 9, 13
        """
        return self.perform(at_ms, self._renumbered)

    def close(self, producer_id: int, at_ms: int) -> list[Output]:
        """The producer is closed for good."""
        return self.perform(at_ms, lambda now_ms: self._closed(producer_id, now_ms))

    def probe(self, producer_id: int, at_ms: int) -> list[Output]:
        """How the producer stands, as the last output."""
        return self.perform(at_ms, lambda now_ms: self._probed(producer_id, now_ms))

    def is_throttled(self, producer_id: int, at_ms: int) -> bool:
        """Whether a window of the producer is active. Changes nothing and fires nothing; false for unknown ones."""
        return self.window(producer_id, at_ms) is not None

    def window(self, producer_id: int, at_ms: int) -> Window | None:
        """The producer's window, None where none is active. Changes nothing and fires nothing."""
        producer = self._open(producer_id)
        window = None if producer is None else producer.throttle.window
        return window if window is not None and max(at_ms, self.now_ms) < window.end_ms else None

    def hold_back(self, producer_id: int, passed_ms: int) -> None:
        """Outside of windows the producer's writes were held back for so long: send timeouts count it as throttled."""
        self._producers[producer_id].throttle.hold_back(passed_ms)

    def metrics(self) -> dict[str, int]:
        """All totals so far by written name, Θ up to the machine's clock. Fires nothing. Source: 14"""
        for producer in self._producers.values():
            producer.throttle.settle(self.now_ms)
            for reason, passed_ms in producer.throttle.taken_ms().items():
                self._metrics.throttled(passed_ms, reason, producer.topic)
        return self._metrics.values()

    def perform(self, at_ms: int, operation: Operation) -> list[Output]:
        """Fire what is due before `at_ms`, move the clock, then run `operation` with the time. Source: 1, Ties"""
        if type(at_ms) is not int or not 0 <= at_ms <= MAX:
            return self._counted([Rejected(at_ms, Rejection.BAD_TIME)])
        now_ms = max(self.now_ms, at_ms)
        fired = self._fired(now_ms - 1)
        self.now_ms = now_ms
        return self._counted(fired + operation(now_ms))

    def _fired(self, until_ms: int) -> list[Output]:
        emitted: list[Output] = []
        while (timer := self._timers.due_by(until_ms)) is not None:
            self.now_ms = timer.due_ms
            producer = self._producers[timer.producer_id]
            act = producer.expire if timer.kind is TimerKind.SEND_TIMEOUT else producer.drain
            emitted += act(timer.due_ms)
        return emitted

    def _counted(self, emitted: list[Output]) -> list[Output]:
        for output in emitted:
            if isinstance(output, Failed):
                self._metrics.failed(output.error, self._producers[output.producer_id].topic)
            elif isinstance(output, Rejected):
                self._metrics.rejected(output.error)
        return emitted

    def _throttled(self, command: ThrottleCommand, now_ms: int) -> list[Output]:
        if not self._enabled:
            return []
        if not command.has_request_id:
            return [Rejected(now_ms, Rejection.BAD_REQUEST_ID)]
        if not command.has_pause:
            return [Rejected(now_ms, Rejection.BAD_PAUSE)]
        reason, producer = received(command.reason), self._open(command.producer_id)
        outcome = self._outcome(command, reason, producer, now_ms)
        topic = "" if producer is None else producer.topic
        self._metrics.command(outcome, reason, topic)
        if outcome in {CommandOutcome.APPLIED, CommandOutcome.NO_CHANGE}:
            self._metrics.announced(command.pause_ms, reason, topic)
        return [] if outcome is CommandOutcome.DISCONNECTED else [Receipt(now_ms, command.request_id)]

    def _outcome(
        self, command: ThrottleCommand, reason: Reason, producer: ClientProducer | None, now_ms: int
    ) -> CommandOutcome:
        if not self._link_up:
            return CommandOutcome.DISCONNECTED
        if not self._seen.add(command.request_id):
            return CommandOutcome.DUPLICATE
        if producer is None:
            return CommandOutcome.UNKNOWN_PRODUCER
        return producer.obey(command, reason, now_ms)

    def _sent(self, producer_id: int, message_id: MessageId, now_ms: int) -> list[Output]:
        producer = self._known(producer_id)
        if producer is None:
            return [Rejected(now_ms, Rejection.UNKNOWN_PRODUCER)]
        emitted = producer.send(message_id, now_ms, link_up=self._link_up)
        self._timers.plan(producer_id)
        return emitted

    def _completed(
        self,
        act: Callable[[ClientProducer, MessageId, int], list[Output]],
        producer_id: int,
        message_id: MessageId,
        now_ms: int,
    ) -> list[Output]:
        producer = self._known(producer_id)
        return [] if producer is None else act(producer, message_id, now_ms)

    def _disconnected(self, now_ms: int) -> list[Output]:
        if self._link_up:
            self._link_up = False
            for producer in self._producers.values():
                producer.disconnect(now_ms)
        return []

    def _reconnected(self, now_ms: int) -> list[Output]:
        if self._link_up:
            return []
        self._link_up = True
        self._seen = RequestIds()
        return [output for producer in self._producers.values() for output in producer.reconnect(now_ms)]

    def _renumbered(self, _now_ms: int) -> list[Output]:
        self._seen = RequestIds()
        return []

    def _closed(self, producer_id: int, now_ms: int) -> list[Output]:
        producer = self._open(producer_id)
        return [] if producer is None else producer.close(now_ms)

    def _probed(self, producer_id: int, now_ms: int) -> list[Output]:
        producer = self._open(producer_id)
        if producer is None:
            return [Rejected(now_ms, Rejection.UNKNOWN_PRODUCER)]
        throttle = producer.throttle
        throttle.settle(now_ms)
        return [Probe(now_ms, producer_id, throttle.window, producer.blocked, producer.pending, throttle.theta_ms)]

    def _known(self, producer_id: int) -> ClientProducer | None:
        return self._producers.get(producer_id) if type(producer_id) is int else None

    def _open(self, producer_id: int) -> ClientProducer | None:
        producer = self._known(producer_id)
        return producer if producer is not None and producer.is_open else None
