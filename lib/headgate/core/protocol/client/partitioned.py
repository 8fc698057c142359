"""A producer with several partitions: which partition a message goes to (throttle-protocol 12)."""

from collections.abc import Callable

from headgate.core.protocol.client.client import ClientMachine
from headgate.core.protocol.client.client_outputs import MessageId, Output, PartitionsProbe
from headgate.core.protocol.settings import PartitionedSettings, Routing


class PartitionRouter:
    """A message goes to a throttled partition only if all are throttled, or the routing knows one alone.

    Without throttling and slices the counts of partitions differ by at most one. Not asked for messages with a
    partition of their own: they are never moved.

    Arguments: `is_throttled(partition, now_ms)`, whether a window of that partition is active; a notice is none, and
    a closed partition is not throttled.
    Source: PIP-385; throttle-protocol 12
    """

    __slots__ = ("_cursor", "_is_throttled", "_settings", "_slice_end_ms", "_slice_partition")

    def __init__(self, settings: PartitionedSettings, is_throttled: Callable[[int, int], bool]) -> None:
        self._settings = settings
        self._is_throttled = is_throttled
        self._cursor = settings.cursor
        self._slice_partition = settings.cursor
        self._slice_end_ms = 0

    def route(self, now_ms: int) -> int:
        """The partition of a message that has none, sent now; times never go back."""
        if self._settings.routing is Routing.SINGLE:
            return self._settings.single_partition
        if now_ms >= self._slice_end_ms or self._is_throttled(self._slice_partition, now_ms):
            self._slice_partition = self._next(now_ms)
            self._slice_end_ms = now_ms + self._settings.slice_ms
        return self._slice_partition

    def _next(self, now_ms: int) -> int:
        partitions = self._settings.partitions
        chosen = self._cursor
        for step in range(partitions):
            partition = (self._cursor + step) % partitions
            if not self._is_throttled(partition, now_ms):
                chosen = partition
                break
        self._cursor = (chosen + 1) % partitions
        return chosen


class PartitionedProducer:
    """The partitions as producers of one client machine, by number; a message goes where the router says.

    Attributes: `client`, the machine, which takes all inputs but sends.
    """

    __slots__ = ("_partitions", "_router", "client")

    def __init__(self, settings: PartitionedSettings) -> None:
        self.client = ClientMachine(settings.client)
        self._partitions = range(settings.partitions)
        self._router = PartitionRouter(settings, self.client.is_throttled)

    def send(self, message_id: MessageId, at_ms: int, partition: int | None = None) -> list[Output]:
        """Send to `partition`, or where the router says; a message that fails there moves the rotation on, too."""
        if partition is not None:
            return self.client.send(partition, message_id, at_ms)
        return self.client.send_routed(self._router.route, message_id, at_ms)

    def probe(self, at_ms: int) -> list[Output]:
        """Which partitions are throttled, as the last output."""
        return self.client.perform(at_ms, lambda now_ms: [PartitionsProbe(now_ms, self.throttled(now_ms))])

    def throttled(self, at_ms: int) -> tuple[int, ...]:
        """The throttled partitions, ascending. Changes nothing."""
        return tuple(partition for partition in self._partitions if self.client.is_throttled(partition, at_ms))

    def is_throttled(self, at_ms: int) -> bool:
        """Whether any partition is throttled. Changes nothing."""
        return any(self.client.is_throttled(partition, at_ms) for partition in self._partitions)
