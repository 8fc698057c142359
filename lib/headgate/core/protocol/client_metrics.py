"""What a client counts (throttle-protocol 14)."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from headgate.core.protocol.client_outputs import Rejection
from headgate.core.protocol.commands import Outcome
from headgate.core.protocol.reasons import Reason
from headgate.core.protocol.send_errors import SendError

THROTTLED_TIMES = "pulsar.client.producer.throttled_times"
THROTTLED_DURATION = "headgate.client.producer.throttled.duration"
COMMANDS = "headgate.client.producer.throttle.command.count"
FAILED_SENDS = "headgate.client.producer.send.failed.count"
REJECTED_INPUTS = "headgate.input.rejected.count"


class MetricKey(NamedTuple):
    """A counter's name and its labels in ascending order; its text is `name{label=value,...}`."""

    name: str
    labels: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return f"{self.name}{{{','.join(f'{label}={value}' for label, value in self.labels)}}}"


class ClientMetrics:
    """Counters that never decrease; one that counted nothing is not there."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: Counter[MetricKey] = Counter()

    def command(self, outcome: Outcome, reason: Reason, topic: str) -> None:
        """A command and what became of it; an unknown producer's topic is empty."""
        self._counts[MetricKey(COMMANDS, (("outcome", outcome), *_by(reason, topic)))] += 1

    def announced(self, pause_ms: int, reason: Reason, topic: str) -> None:
        """The pause of a command that was obeyed; pauses that overlap count twice."""
        self._counts[MetricKey(THROTTLED_TIMES, _by(reason, topic))] += pause_ms

    def failed(self, error: SendError, topic: str) -> None:
        """A message that failed."""
        self._counts[MetricKey(FAILED_SENDS, (("error", error), ("topic", topic)))] += 1

    def rejected(self, error: Rejection) -> None:
        """An operation that was rejected."""
        self._counts[MetricKey(REJECTED_INPUTS, (("error", error),))] += 1

    def totals(self, throttled_ms: Iterable[tuple[str, Mapping[Reason, int]]]) -> dict[MetricKey, int]:
        """All totals so far, with those of Θ: pairs of a topic and its ms by reason."""
        totals = self._counts.copy()
        for topic, by_reason_ms in throttled_ms:
            for reason, passed_ms in by_reason_ms.items():
                totals[MetricKey(THROTTLED_DURATION, _by(reason, topic))] += passed_ms
        return dict(totals)


def _by(reason: Reason, topic: str) -> tuple[tuple[str, str], ...]:
    return ("reason", reason.name), ("topic", topic)
