"""What a client counts (throttle-protocol 14)."""

from headgate.core.protocol.client.client_outputs import Rejection
from headgate.core.protocol.client.commands import CommandOutcome
from headgate.core.protocol.client.send_errors import SendError
from headgate.core.protocol.counters import Counters, Labels
from headgate.core.protocol.reasons import Reason

THROTTLED_TIMES = "pulsar.client.producer.throttled_times"
THROTTLED_DURATION = "headgate.client.producer.throttled.duration"
COMMANDS = "headgate.client.producer.throttle.command.count"
FAILED_SENDS = "headgate.client.producer.send.failed.count"
REJECTED_INPUTS = "headgate.input.rejected.count"


class ClientMetrics(Counters):
    """The counters of a client, by topic."""

    __slots__ = ()

    def command(self, outcome: CommandOutcome, reason: Reason, topic: str) -> None:
        """A command and what became of it; an unknown producer's topic is empty."""
        self.add(COMMANDS, (("outcome", str(outcome)), *_by(reason, topic)))

    def announced(self, pause_ms: int, reason: Reason, topic: str) -> None:
        """The pause of a command that was obeyed; pauses that overlap count twice."""
        self.add(THROTTLED_TIMES, _by(reason, topic), pause_ms)

    def throttled(self, passed_ms: int, reason: Reason, topic: str) -> None:
        """Θ of a producer grew; time that is counted is not counted again."""
        self.add(THROTTLED_DURATION, _by(reason, topic), passed_ms)

    def failed(self, error: SendError, topic: str) -> None:
        """A message failed."""
        self.add(FAILED_SENDS, (("error", str(error)), ("topic", topic)))

    def rejected(self, error: Rejection) -> None:
        """An operation was rejected."""
        self.add(REJECTED_INPUTS, (("error", str(error)),))


def _by(reason: Reason, topic: str) -> Labels:
    return ("reason", reason.name), ("topic", topic)
