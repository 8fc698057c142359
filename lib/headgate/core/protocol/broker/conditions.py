"""Causes at the level of a connection: reads go off at once, and clients are only told (throttle-protocol 7.7)."""

from collections.abc import Iterable, Sequence

from headgate.core.protocol.broker.gate import condition_hold
from headgate.core.protocol.broker.ordinals import Ordinals
from headgate.core.protocol.broker.outbox import Outbox
from headgate.core.protocol.broker.outputs import Cause, CommandKind
from headgate.core.protocol.broker.pause import Pause
from headgate.core.protocol.broker.producer import Producer
from headgate.core.protocol.broker.throttling import Throttling
from headgate.core.protocol.reasons import Reason


class Conditions:
    """A condition holds the gate exactly while its youngest setting is younger than its youngest clearing.

    A notice goes to each producer open at that moment. It is no open id: nobody waits for its receipt.

    Arguments: `asks`, whether the connection is cooperative.
    Source: PIP-385, throttle-protocol 7.7
    """

    __slots__ = ("_asks", "_ordinals", "_outbox", "_throttling")

    def __init__(
        self, throttling: Throttling, outbox: Outbox, ordinals: Iterable[Sequence[int]] = (), *, asks: bool
    ) -> None:
        self._throttling = throttling
        self._outbox = outbox
        self._asks = asks
        self._ordinals = Ordinals.from_state(ordinals)

    def set(self, reason: Reason, ordinal: int, tripped_by: Producer | None, now_ms: int) -> None:
        """The cause is there; nothing more if it was before, or is over already."""
        was_active = self._ordinals.holds(reason)
        if not self._ordinals.mark(reason, ordinal) or was_active:
            return
        self._count_begin(reason, tripped_by)
        if self._asks and reason.is_told:
            self._tell_all(reason, now_ms)
        self._throttling.hold(condition_hold(reason), Cause.CONDITION, reason, None, now_ms)

    def clear(self, reason: Reason, ordinal: int, now_ms: int) -> None:
        """The cause is over, up to a setting. Nobody is told."""
        if not self._ordinals.release(reason, ordinal):
            return
        if reason is Reason.ConnectionPendingMessagesBreach:
            self._outbox.metrics.reads("unthrottled")
        self._throttling.let_go(condition_hold(reason), now_ms)

    def state(self) -> list[list[int]]:
        """[reason, youngest setting, youngest clearing] for each reason seen."""
        return self._ordinals.state()

    def _tell_all(self, reason: Reason, now_ms: int) -> None:
        for _, producer in sorted(self._throttling.producers.items()):
            self._outbox.command(now_ms, CommandKind.NOTICE, producer, Pause(0, reason))

    def _count_begin(self, reason: Reason, tripped_by: Producer | None) -> None:
        if reason is Reason.ConnectionPendingMessagesBreach:
            self._outbox.metrics.reads("throttled")
        if reason is Reason.BrokerProduceQuotaExceeded and tripped_by is not None:
            self._outbox.metrics.breach(reason, tripped_by.topic)
