"""Which producer obeys a command, and which connection its receipt goes to."""

import threading
from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from headgate.core.protocol.request_ids import RequestIds
from headgate.errors import InvalidArgument
from headgate.wire import ThrottleProducer


class Obeys(Protocol):
    """What is asked of a producer: RateLimitedProducer.on_command."""

    def on_command(self, request_id: int, producer_id: int, reason: int | None, pause_ms: int) -> None:
        """A command came."""


P = TypeVar("P", bound=Obeys)
Answer = Callable[[int], object]
"""Writes the receipt of a request id to the connection that the command came from, if that is still there."""


class ProducerCommands:
    """A producer's commands under numbers of its own, without gaps over all connections; each is answered once.

    Gates count from 1 on each connection, and one after another for all producers of it. A producer that heard these
    numbers would take the first commands of a new connection for old ones, and keep a gap for each that another had.
    """

    def __init__(self) -> None:
        self.producer: Obeys | None = None
        self._last = 0
        self._asked: dict[int, tuple[int, Answer]] = {}

    def tell(self, command: ThrottleProducer, answer: Answer) -> None:
        """Have the producer obey; on return the window is in force. One that is not there yet has nothing to stop."""
        if self.producer is None:
            answer(command.request_id)
            return
        self._last += 1
        self._asked[self._last] = (command.request_id, answer)
        self.producer.on_command(self._last, command.producer_id, command.reason, command.pause_ms)

    def answer(self, number: int) -> None:
        """The producer obeyed: what its wrapper has for `receipts`. Numbers that it was not told here are nothing."""
        asked = self._asked.pop(number, None)
        if asked is not None:
            request_id, answer = asked
            answer(request_id)


class CommandRouter:
    """Every command of a connection is answered, after the producer that it is for has obeyed.

    Producers may come at any time, from any thread; commands come from one. A copy, and a command for a producer that
    is not there, are answered at once (throttle-protocol 10.3).
    """

    def __init__(self) -> None:
        self._producers: dict[int, ProducerCommands] = {}
        self._adding = threading.Lock()
        self._seen = RequestIds()

    def add(self, producer_ids: Iterable[int], make: Callable[[Answer], P]) -> P:
        """A producer that hears the commands of these ids from here on.

        Arguments: make: makes it of what is to be called with the request id of each command that it has obeyed.
        Raises InvalidArgument for an id that another producer has or had, and what `make` raises; no id is taken then.
        """
        commands = ProducerCommands()
        taken = self._take(producer_ids, commands)
        try:
            commands.producer = made = make(commands.answer)
        except BaseException:
            self._give_back(taken)
            raise
        return made

    def _take(self, producer_ids: Iterable[int], commands: ProducerCommands) -> list[int]:
        with self._adding:
            wanted = sorted(producer_ids)
            taken = [number for number in wanted if number in self._producers]
            if taken:
                raise InvalidArgument(
                    f"producers: got ids {wanted}, of which this connection has, or had, {taken}; allowed are ids that "
                    "no producer of it had before; take others"
                )
            self._producers |= dict.fromkeys(wanted, commands)
        return wanted

    def _give_back(self, producer_ids: Iterable[int]) -> None:
        with self._adding:
            for number in producer_ids:
                del self._producers[number]

    def renumber(self) -> None:
        """A new connection: its ids start anew."""
        self._seen = RequestIds()

    def route(self, command: ThrottleProducer, answer: Answer) -> None:
        """A command came. Ids that are none, 0, are not obeyed and not answered."""
        if command.request_id < 1:
            return
        is_new = self._seen.add(command.request_id)
        commands = self._producers.get(command.producer_id)
        if commands is None or not is_new:
            answer(command.request_id)
        else:
            commands.tell(command, answer)
