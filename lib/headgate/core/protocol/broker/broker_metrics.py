"""What the broker's side of the protocol counts (throttle-protocol 14)."""

from headgate.core.protocol.broker.outputs import BadInput, Cause, CommandKind
from headgate.core.protocol.counters import Counters
from headgate.core.protocol.reasons import Reason

PUBLISH_LIMIT = "pulsar.broker.topic.publish.rate.limit.count"
CONNECTION_LIMIT = "pulsar.broker.connection.rate_limit.count"
TOPIC = "pulsar.topic"
OPERATION = "pulsar.connection.rate_limit.operation.name"
COMMANDS = "headgate.broker.throttle.command.count"
RECEIPTS = "headgate.broker.throttle.receipt.count"
FALLBACKS = "headgate.broker.throttle.fallback.count"
READS_OFF = "headgate.broker.reads.off.duration"
REJECTED = "headgate.input.rejected.count"
OPERATIONS = ("paused", "resumed", "throttled", "unthrottled")
OUTCOMES = ("in_time", "ignored", "unknown")

LIMITERS = {
    Reason.TopicProduceQuotaExceeded: "topic",
    Reason.ResourceGroupProduceQuotaExceeded: "resource_group",
    Reason.BrokerProduceQuotaExceeded: "broker",
}


class BrokerMetrics(Counters):
    """The counters of any number of connections; given to each, and kept by who keeps the connections."""

    __slots__ = ()

    def breach(self, reason: Reason, topic: str) -> None:
        """A limiter began to hold a producer of `topic`, or the broker's was tripped by it."""
        self.add(PUBLISH_LIMIT, (("pulsar.publish.rate_limiter", LIMITERS[reason]), (TOPIC, topic)))

    def reads(self, operation: str) -> None:
        """Reads `paused` or `resumed`; pending requests `throttled` or `unthrottled` the connection."""
        self.add(CONNECTION_LIMIT, ((OPERATION, operation),))

    def command(self, kind: CommandKind, reason: Reason) -> None:
        """A command was sent."""
        self.add(COMMANDS, (("kind", str(kind)), ("reason", reason.name)))

    def receipt(self, outcome: str) -> None:
        """A receipt was read or settled: `in_time`, `ignored` or `unknown`."""
        self.add(RECEIPTS, (("outcome", outcome),))

    def fallback(self, cause: Cause) -> None:
        """A producer came to hold the connection."""
        self.add(FALLBACKS, (("cause", str(cause)),))

    def reads_off(self, off_ms: int) -> None:
        """Reads were off for so long."""
        self.add(READS_OFF, amount=off_ms)

    def rejected(self, error: BadInput) -> None:
        """An operation was refused."""
        self.add(REJECTED, (("error", str(error)),))
