"""How much a producer holds in memory."""

from typing import Any

from headgate.client.messages import Message


class Held:
    """Messages and bytes of payloads from their send until nobody has them any more: the library, once it was asked to
    write them, until it is done with them, also if they have failed since. All calls are made under the lock.

    most, most_bytes: 0 is no bound.
    """

    def __init__(self, most: int, most_bytes: int) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._messages = self._bytes = 0

    def take(self, message: Message) -> bool:
        """Whether there is room for the message, which is then held; a first one may be of any size."""
        size = _bytes_of(message.payload)
        is_full = 0 < self._most <= self._messages
        is_full = is_full or bool(self._bytes and 0 < self._most_bytes < self._bytes + size)
        if not is_full:
            message.held_bytes = size
            self._messages += 1
            self._bytes += size
        return not is_full

    def drop(self, message: Message) -> None:
        """Nobody has the message any more; may be said again."""
        if message.held_bytes is not None:
            self._messages -= 1
            self._bytes -= message.held_bytes
            message.held_bytes = None


def _bytes_of(payload: Any) -> int:
    """0 for what is neither bytes nor text, such as objects of a schema."""
    if isinstance(payload, str):
        return len(payload.encode())
    return memoryview(payload).nbytes if isinstance(payload, bytes | bytearray | memoryview) else 0
