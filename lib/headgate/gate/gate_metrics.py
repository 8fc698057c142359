"""What the machines of a gate count, with the reasons that screens and metrics have."""

from headgate.core.protocol.broker.broker_metrics import COMMANDS, BrokerMetrics
from headgate.core.protocol.broker.outputs import CommandKind
from headgate.core.protocol.reasons import Reason
from headgate.core.reasons import protocol_reason
from headgate.metrics.counting import Names

MAX_TOPICS = 10_000
OTHER_TOPICS = "other topics"


class GateMetrics(BrokerMetrics):
    """As BrokerMetrics, but for the label `reason`, which is a HeldReason, and for topics: the first `max_topics` are
    counted each, others together, as OTHER_TOPICS.
    """

    __slots__ = ("_topics",)

    def __init__(self, max_topics: int = MAX_TOPICS) -> None:
        super().__init__()
        self._topics = Names(max_topics, OTHER_TOPICS)

    def breach(self, reason: Reason, topic: str) -> None:
        """A limiter began to hold a producer of `topic`."""
        super().breach(reason, self._topics.label(topic))

    def command(self, kind: CommandKind, reason: Reason) -> None:
        """A command was sent."""
        self.add(COMMANDS, (("kind", str(kind)), ("reason", protocol_reason(reason) or reason.name)))
