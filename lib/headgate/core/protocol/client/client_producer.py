"""One producer of a client: its messages, and when they may be written (throttle-protocol 10.2, 11)."""

from collections import OrderedDict, deque
from dataclasses import dataclass

from headgate.core.protocol.client.client_outputs import Done, Failed, MessageId, Output, Rejected, Rejection, Write
from headgate.core.protocol.client.client_timers import TimerKind
from headgate.core.protocol.client.commands import CommandOutcome, ThrottleCommand
from headgate.core.protocol.client.send_errors import SendError, ThrottleDetail, classify
from headgate.core.protocol.client.windows import Throttle, Window
from headgate.core.protocol.reasons import Reason
from headgate.core.protocol.settings import ClientSettings, FailMode, ZeroPause


@dataclass(slots=True)
class _Message:
    """A message that is not completed. theta0_ms: Θ when it was sent. write: number of its latest write, 0 before."""

    sent_ms: int
    theta0_ms: int
    write: int = 0


class ClientProducer:
    """First writes happen in the order of accepted sends, none inside the window; a message ends at most once.

    Times never go back. Blocked messages are the last of the pending ones, so that they leave from the front or all at
    once; send timeouts are due in the order of the sends. No call takes longer the more messages are pending or
    blocked, but for those that end or write many.

    Attributes: `topic`; `throttle`, its window, notice and Θ as of the last call; `is_open`.
    """

    __slots__ = ("_blocked", "_drain_ms", "_id", "_pending", "_settings", "_writes", "is_open", "throttle", "topic")

    def __init__(self, producer_id: int, topic: str, settings: ClientSettings) -> None:
        self.topic = topic
        self.throttle = Throttle()
        self.is_open = True
        self._id = producer_id
        self._settings = settings
        self._pending: OrderedDict[MessageId, _Message] = OrderedDict()
        self._blocked: deque[MessageId] = deque()
        self._drain_ms: int | None = None
        self._writes = 0

    @property
    def pending(self) -> int:
        """How many messages are not completed, blocked ones included."""
        return len(self._pending)

    @property
    def blocked(self) -> int:
        """How many messages are held back."""
        return len(self._blocked)

    def due_ms(self, kind: TimerKind) -> int | None:
        """When the oldest message expires, or blocked ones are written; None for never."""
        if kind is TimerKind.DRAIN:
            return self._drain_ms if self._blocked else None
        if not self._pending or not self._settings.send_timeout_ms:
            return None
        return next(iter(self._pending.values())).sent_ms + self._settings.send_timeout_ms

    def obey(self, command: ThrottleCommand, reason: Reason, now_ms: int) -> CommandOutcome:
        """Take the command's window or notice. The producer is open, the link up. Source: throttle-protocol 10.3"""
        self.throttle.settle(now_ms)
        if command.pause_ms == 0:
            return self._notice(command, reason, now_ms)
        window = Window(command.end_ms(now_ms, self._settings.clock_skew_ms), reason)
        if window.end_ms <= now_ms:
            return CommandOutcome.STALE
        if not self.throttle.hold(window):
            return CommandOutcome.NO_CHANGE
        self._drain_ms = window.end_ms + self._settings.drain_delay_ms
        return CommandOutcome.APPLIED

    def _notice(self, command: ThrottleCommand, reason: Reason, now_ms: int) -> CommandOutcome:
        if command.is_older(now_ms, self._settings.notice_ttl_ms):
            return CommandOutcome.STALE
        self.throttle.last_reason = reason
        if self._settings.zero_pause is ZeroPause.OPEN_NOTICE:
            self.throttle.notify(reason, self._writes)
        return CommandOutcome.NOTICE

    def send(self, message_id: MessageId, now_ms: int, *, link_up: bool) -> list[Output]:
        """Accept the message and write it, or keep it until the window ends or the link is up; or refuse it."""
        self.throttle.settle(now_ms)
        refused = self._refused(message_id, now_ms)
        if refused is not None:
            return [refused]
        self._pending[message_id] = _Message(now_ms, self.throttle.theta_ms)
        if self.throttle.window is not None:
            self._blocked.append(message_id)
            return []
        return [*self.drain(now_ms), self._written(message_id, now_ms)] if link_up else []

    def _refused(self, message_id: MessageId, now_ms: int) -> Output | None:
        timeout_ms, remaining_ms = self._settings.send_timeout_ms, self.throttle.remaining_ms(now_ms)
        if not self.is_open:
            return Failed(now_ms, self._id, message_id, SendError.CLOSED)
        if message_id in self._pending:
            return Rejected(now_ms, Rejection.DUPLICATE_MESSAGE)
        if 0 < self._settings.max_pending <= self.pending:
            return Failed(now_ms, self._id, message_id, SendError.QUEUE_FULL)
        if 0 < timeout_ms < remaining_ms:
            detail = ThrottleDetail(self.throttle.reason, 0, timeout_ms, remaining_ms, immediate=True)
            return Failed(now_ms, self._id, message_id, SendError.THROTTLED, detail)
        return None

    def ack(self, message_id: MessageId, now_ms: int) -> list[Output]:
        """The message is done; what is not pending or was never written is ignored."""
        message = self._completed(message_id)
        if message is None:
            return []
        self.throttle.settle(now_ms)
        self.throttle.progress(message.write)
        return [Done(now_ms, self._id, message_id)]

    def nack(self, message_id: MessageId, now_ms: int) -> list[Output]:
        """The message failed; what is not pending or was never written is ignored."""
        if self._completed(message_id) is None:
            return []
        return [Failed(now_ms, self._id, message_id, SendError.REJECTED)]

    def _completed(self, message_id: MessageId) -> _Message | None:
        message = self._pending.get(message_id)
        return self._pending.pop(message_id) if message is not None and message.write else None

    def expire(self, now_ms: int) -> list[Output]:
        """The oldest message has reached its send timeout: it fails, or all do with it. Source: throttle-protocol 11"""
        self.throttle.settle(now_ms)
        oldest = next(iter(self._pending.values()))
        timeout_ms, theta_ms = self._settings.send_timeout_ms, self.throttle.theta_ms
        throttled_ms, error = classify(theta_ms, oldest.theta0_ms, timeout_ms, self._settings.throttled_percent)
        remaining_ms = self.throttle.remaining_ms(now_ms)
        detail = ThrottleDetail(self.throttle.reason, throttled_ms, timeout_ms, remaining_ms, immediate=False)
        if self._settings.fail_mode is FailMode.HEAD_ALL:
            return self._all_failed(now_ms, error, detail)
        message_id, _ = self._pending.popitem(last=False)
        if self._blocked and self._blocked[0] == message_id:
            self._blocked.popleft()
        return [Failed(now_ms, self._id, message_id, error, detail)]

    def drain(self, now_ms: int) -> list[Output]:
        """Write what is blocked. No window is active."""
        written: list[Output] = [self._written(message_id, now_ms) for message_id in self._blocked]
        self._blocked.clear()
        return written

    def disconnect(self, now_ms: int) -> None:
        """The link is down: window and notice end, nothing is blocked."""
        self.throttle.settle(now_ms)
        self.throttle.end()
        self._blocked.clear()

    def reconnect(self, now_ms: int) -> list[Output]:
        """The link is up: write all that is pending, also what was written before."""
        return [self._written(message_id, now_ms) for message_id in self._pending]

    def close(self, now_ms: int) -> list[Output]:
        """All that is pending fails, window and notice end, and nothing is accepted any more."""
        self.disconnect(now_ms)
        self.is_open = False
        return self._all_failed(now_ms, SendError.CLOSED)

    def _written(self, message_id: MessageId, now_ms: int) -> Write:
        self._writes += 1
        self._pending[message_id].write = self._writes
        return Write(now_ms, self._id, message_id)

    def _all_failed(self, now_ms: int, error: SendError, detail: ThrottleDetail | None = None) -> list[Output]:
        failed: list[Output] = [Failed(now_ms, self._id, message_id, error, detail) for message_id in self._pending]
        self._pending.clear()
        self._blocked.clear()
        return failed
