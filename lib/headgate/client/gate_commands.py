"""Which producer obeys a command, and which connection its receipt goes to."""

import threading
from collections.abc import Callable, Collection, Mapping
from itertools import count
from typing import Any, Generic, Protocol, TypeVar

from headgate.client.clock import Clock
from headgate.client.early_commands import EarlyCommands
from headgate.client.held_reasons import with_held_reasons
from headgate.core.protocol.client.client_metrics import ClientMetrics
from headgate.core.protocol.client.client_outputs import Rejection
from headgate.core.protocol.client.commands import CommandOutcome
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


class ProducerCommands(Generic[P]):
    """A producer's commands under numbers of its own, without gaps over all connections; each is answered once.

    Gates count from 1 on each connection, and one after another for all producers of it. A producer that heard these
    numbers would take the first commands of a new connection for old ones, and keep a gap for each that another had.

    Arguments: topics: by its ids. make: makes the producer of what it is to call with the number of each command that
    it has obeyed; what it raises is raised here.
    Attributes: `topics`; `producer`.
    """

    def __init__(self, topics: Mapping[int, str], make: Callable[[Answer], P]) -> None:
        self.topics = topics
        self._numbers = count(1)
        self._asked: dict[int, tuple[int, Answer]] = {}
        self.producer = make(self._answer)

    def tell(self, command: ThrottleProducer, answer: Answer) -> None:
        """Have the producer obey; on return the window is in force."""
        number = next(self._numbers)
        self._asked[number] = (command.request_id, answer)
        self.producer.on_command(number, command.producer_id, command.reason, command.pause_ms)

    def _answer(self, number: int) -> None:
        """The producer obeyed. Numbers that it was not told here are nothing."""
        asked = self._asked.pop(number, None)
        if asked is not None:
            request_id, answer = asked
            answer(request_id)


class CommandRouter:
    """Every command of a connection is answered, after the producer that it is for has obeyed.

    Producers may come at any time, from any thread; commands come from one. A copy, and a command for a producer that
    is not there, are answered at once, and counted here, since no producer hears of them (throttle-protocol 10.3). But
    the answer is a promise: a producer that comes obeys what is in force for it by then.

    Arguments: clock: that of the producers.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._early = EarlyCommands()
        self._taken: set[int] = set()
        self._commands: dict[int, ProducerCommands[Any]] = {}
        self._seen = RequestIds()
        self._metrics = ClientMetrics()
        self._lock = threading.Lock()

    def add(self, topics: Mapping[int, str], make: Callable[[Answer], P]) -> P:
        """A producer, made of its way to answer, that hears the commands of these ids from here on, and has obeyed on
        return those that are in force.

        Raises InvalidArgument for an id that another producer has or had, and what `make` raises; no id is taken then.
        """
        self._take(topics)
        try:
            commands = ProducerCommands(topics, make)
        except BaseException:
            self._give_back(topics)
            raise
        with self._lock:
            self._commands |= dict.fromkeys(topics, commands)
            now_ms = self._clock.now_ms()
            early = [command for producer_id in topics for command in self._early.take(producer_id, now_ms)]
        for command in early:
            commands.tell(command, _was_answered)
        return commands.producer

    def renumber(self) -> None:
        """A new connection: its ids start anew."""
        self._seen = RequestIds()

    def route(self, command: ThrottleProducer, answer: Answer) -> None:
        """A command came. Ids that are none, 0, are not obeyed and not answered."""
        with self._lock:
            if command.request_id < 1:
                self._metrics.rejected(Rejection.BAD_REQUEST_ID)
                return
            commands = self._who_obeys(command)
        if commands is None:
            answer(command.request_id)
        else:
            commands.tell(command, answer)

    def metrics(self) -> dict[str, int]:
        """What was counted here, by `name{label=value,...}`; `reason` is a HeldReason. Source: throttle-protocol 14"""
        with self._lock:
            return with_held_reasons(self._metrics.values())

    def _take(self, wanted: Collection[int]) -> None:
        with self._lock:
            taken = sorted(self._taken.intersection(wanted))
            if taken:
                raise InvalidArgument(
                    f"producers: got ids {sorted(wanted)}, of which this connection has, or had, {taken}; allowed are "
                    "ids that no producer of it had before; take others"
                )
            self._taken.update(wanted)

    def _give_back(self, taken: Collection[int]) -> None:
        with self._lock:
            self._taken.difference_update(taken)

    def _who_obeys(self, command: ThrottleProducer) -> ProducerCommands[Any] | None:
        commands = self._commands.get(command.producer_id)
        if not self._seen.add(command.request_id):
            topic = "" if commands is None else commands.topics[command.producer_id]
            self._metrics.command(CommandOutcome.DUPLICATE, command.reason, topic)
            return None
        if commands is None:
            self._metrics.command(CommandOutcome.UNKNOWN_PRODUCER, command.reason, "")
            self._early.keep(command, self._clock.now_ms())
        return commands


def _was_answered(_request_id: int) -> None:
    """The command was answered when it came."""
