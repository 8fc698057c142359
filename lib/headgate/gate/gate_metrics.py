"""What the machines of a gate count, with the reasons that screens and metrics have."""

from headgate.core.protocol.broker.broker_metrics import COMMANDS, BrokerMetrics
from headgate.core.protocol.broker.outputs import CommandKind
from headgate.core.protocol.reasons import Reason
from headgate.core.reasons import protocol_reason


class GateMetrics(BrokerMetrics):
    """As BrokerMetrics, but for the label `reason`, which is a HeldReason."""

    __slots__ = ()

    def command(self, kind: CommandKind, reason: Reason) -> None:
        """A command was sent."""
        self.add(COMMANDS, (("kind", str(kind)), ("reason", protocol_reason(reason) or reason.name)))
