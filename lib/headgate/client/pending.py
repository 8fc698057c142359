"""The messages of a wrapper that have not ended yet."""

from itertools import count
from threading import Condition, Lock
from typing import cast

from headgate.client.messages import Message
from headgate.core.protocol.client.client_outputs import MessageId


class Pending:
    """Messages by id, from `add` to `take`, each taken once. All calls are made under the lock."""

    def __init__(self, lock: Lock) -> None:
        self._ids = count(1)
        self._messages: dict[int, Message] = {}
        self._held = 0
        self._changed = Condition(lock)

    def add(self, message: Message) -> int:
        """Take a message in; its id is new."""
        message_id = next(self._ids)
        self._messages[message_id] = message
        self._held += 1
        return message_id

    def get(self, message_id: MessageId) -> Message | None:
        """The message, None if it has ended."""
        return self._messages.get(cast("int", message_id))

    def take(self, message_id: MessageId) -> Message:
        """The message ends. To be called once."""
        message = self._messages.pop(cast("int", message_id))
        self.hand_over(message)
        if not self._messages:
            self._changed.notify_all()
        return message

    def hand_over(self, message: Message) -> None:
        """The message is with the library, or nowhere any more."""
        if message.is_held:
            message.is_held = False
            self._held -= 1
            if not self._held:
                self._changed.notify_all()

    def wait_handed_over(self, timeout_s: float) -> bool:
        """Wait until none is held back; false if the time was over before."""
        return self._changed.wait_for(lambda: not self._held, timeout_s)

    def wait_empty(self, timeout_s: float) -> bool:
        """Wait until all have ended; false if the time was over before."""
        return self._changed.wait_for(lambda: not self._messages, timeout_s)
