"""The machine behind a wrapper: of a producer with partitions, or of one without (throttle-protocol 10, 12)."""

from typing import Protocol

from headgate.client.library import Settings, client_of, topics
from headgate.core.protocol.client.client import ClientMachine
from headgate.core.protocol.client.client_outputs import MessageId, Output
from headgate.core.protocol.client.partitioned import PartitionedProducer
from headgate.core.protocol.settings import PartitionedSettings


class Machine(Protocol):
    """What is asked of a producer apart from its client machine."""

    @property
    def client(self) -> ClientMachine:
        """Takes all inputs but sends."""

    def send(self, message_id: MessageId, at_ms: int, partition: int | None = None) -> list[Output]:
        """A message to be delivered, to the partition, or where routing sends it."""

    def is_throttled(self, at_ms: int) -> bool:
        """Whether any of its producers is."""


class SingleProducer:
    """The one producer of a client machine. A partition is the producer itself."""

    def __init__(self, settings: Settings) -> None:
        (self._id,) = topics(settings)
        self.client = ClientMachine(client_of(settings))

    def send(self, message_id: MessageId, at_ms: int, partition: int | None = None) -> list[Output]:
        """A message to be delivered."""
        return self.client.send(self._id if partition is None else partition, message_id, at_ms)

    def is_throttled(self, at_ms: int) -> bool:
        """Whether the producer is. Changes nothing."""
        return self.client.is_throttled(self._id, at_ms)


def machine_of(settings: Settings) -> Machine:
    """A new machine. Raises InvalidArgument for settings of several producers that are no partitions."""
    return PartitionedProducer(settings) if isinstance(settings, PartitionedSettings) else SingleProducer(settings)
