"""What a connection's machine emits, and the counters that go with it (throttle-protocol 14)."""

from headgate.core.protocol.broker.broker_metrics import BrokerMetrics
from headgate.core.protocol.broker.outputs import (
    BadInput,
    Cause,
    Command,
    CommandKind,
    Output,
    ReadsPaused,
    ReadsResumed,
    Rejected,
)
from headgate.core.protocol.broker.pause import Pause
from headgate.core.protocol.broker.producer import Producer
from headgate.core.protocol.reasons import Reason


class Outbox:
    """Every output is counted once, in `metrics`. Request ids are 1, 2, 3 ... in the order of commands.

    `issued` is the last of them, 0 before the first.
    """

    __slots__ = ("_emitted", "issued", "metrics")

    def __init__(self, metrics: BrokerMetrics, issued: int = 0) -> None:
        self.metrics = metrics
        self.issued = issued
        self._emitted: list[Output] = []

    def command(self, at_ms: int, kind: CommandKind, producer: Producer, pause: Pause) -> int:
        """Ask the producer's client to stop, or tell it; returns the request id."""
        self.issued += 1
        self._emitted.append(
            Command(at_ms, self.issued, producer.id, producer.topic, pause.reason, pause.pause_ms, kind)
        )
        self.metrics.command(kind, pause.reason)
        return self.issued

    def paused(self, at_ms: int, cause: Cause, reason: Reason, producer: Producer | None) -> None:
        """Reads go off."""
        told = (None, None) if producer is None else (producer.id, producer.topic)
        self._emitted.append(ReadsPaused(at_ms, cause, reason, *told))
        self.metrics.reads("paused")

    def resumed(self, at_ms: int, off_ms: int) -> None:
        """Reads come on."""
        self._emitted.append(ReadsResumed(at_ms, off_ms))
        self.metrics.reads("resumed")
        self.metrics.reads_off(off_ms)

    def rejected(self, at_ms: int, error: BadInput) -> None:
        """An operation was refused."""
        self._emitted.append(Rejected(at_ms, error))
        self.metrics.rejected(error)

    def taken(self) -> list[Output]:
        """What was emitted since it was last taken, in order."""
        taken, self._emitted = self._emitted, []
        return taken
