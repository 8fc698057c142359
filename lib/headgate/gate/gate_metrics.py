"""What the machines of a gate count, with the reasons that screens and metrics have."""

from headgate.core.protocol.broker.broker_metrics import COMMANDS, BrokerMetrics
from headgate.core.protocol.broker.outputs import CommandKind
from headgate.core.protocol.reasons import Reason
from headgate.core.reasons import protocol_reason

MAX_TOPICS = 10_000
OTHER_TOPICS = "other topics"


class GateMetrics(BrokerMetrics):
    """As BrokerMetrics, but for the label `reason`, which is a HeldReason, and for topics: the first `max_topics` are
    counted each, others together, as OTHER_TOPICS.
    """

    __slots__ = ("_max_topics", "_topics")

    def __init__(self, max_topics: int = MAX_TOPICS) -> None:
        super().__init__()
        self._max_topics = max_topics
        self._topics: set[str] = set()

    def breach(self, reason: Reason, topic: str) -> None:
        """A limiter began to hold a producer of `topic`."""
        if len(self._topics) < self._max_topics:
            self._topics.add(topic)
        super().breach(reason, topic if topic in self._topics else OTHER_TOPICS)

    def command(self, kind: CommandKind, reason: Reason) -> None:
        """A command was sent."""
        self.add(COMMANDS, (("kind", str(kind)), ("reason", protocol_reason(reason) or reason.name)))
