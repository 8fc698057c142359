"""What a wrapper needs of a library that sends messages, and which producers it needs them for."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

from headgate.core.protocol.settings import ClientSettings, PartitionedSettings
from headgate.errors import InvalidArgument

Settings: TypeAlias = ClientSettings | PartitionedSettings
Completed: TypeAlias = Callable[[object, BaseException | None], None]
"""(result, error) of a message; error is None where it was acknowledged."""


class Library(Protocol):
    """Producers of a library, by the ids of the settings. Messages of a producer are sent in the order of the writes.

    The wrapper fails messages by their send timeout. A library whose own timeout is later, as Kafka's, drops them then.
    """

    @property
    def options(self) -> frozenset[str] | None:
        """The names of the options of a send that `write` takes; None: any."""

    def write(self, producer_id: int, payload: Any, options: Mapping[str, Any], completed: Completed) -> None:
        """Start to send a message; one thread at a time writes.

        `completed` is called once, by any thread, in here too; it neither raises nor blocks. What is raised here
        stands for it. May block while the library has no room, until `close`.
        """

    def partition_of(self, options: Mapping[str, Any]) -> int | None:
        """The partition that a message's key asks for, None for one without a key."""

    def flush(self, timeout_s: float) -> None:
        """Send now what waits for company in a batch. May wait for it to be acknowledged."""

    def close(self, timeout_s: float) -> None:
        """Drop what is not acknowledged, then end all threads and connections of the producers."""


def client_of(settings: Settings) -> ClientSettings:
    """Those of the client, partitioned or not."""
    return settings.client if isinstance(settings, PartitionedSettings) else settings


def topics(settings: Settings) -> Mapping[int, str]:
    """The producers of the settings, of which those that are not partitioned have one.

    Raises InvalidArgument for several.
    """
    if isinstance(settings, PartitionedSettings):
        return settings.client.producers
    if len(settings.producers) != 1:
        raise InvalidArgument(
            f"producers: got {len(settings.producers)}, allowed is one; make a RateLimitedProducer for each"
        )
    return settings.producers
