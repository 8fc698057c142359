"""A producer that stops when the broker asks it to (PIP-385; throttle-protocol 10 to 14)."""

import asyncio
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from types import TracebackType
from typing import Any, NamedTuple, Self, TypedDict, Unpack

from headgate.client.clock import Clock, MonotonicClock
from headgate.client.errors import ProducerClosedError, error_of, plain_error
from headgate.client.held import Held
from headgate.client.held_reasons import with_held_reasons
from headgate.client.in_library import InLibrary
from headgate.client.library import Library, Settings, client_of, topics
from headgate.client.machines import machine_of
from headgate.client.messages import Completions, Message, Unsent
from headgate.client.options import SendOptions
from headgate.client.outbox import Outbox, Outgoing
from headgate.client.pending import Pending
from headgate.client.release import Release
from headgate.client.rows import command_of
from headgate.client.throttles import Throttle, Throttles
from headgate.client.timer import Timer
from headgate.core.protocol.client.client import Operation
from headgate.core.protocol.client.client_metrics import ClientMetrics
from headgate.core.protocol.client.client_outputs import Done, Failed, Receipt, Write
from headgate.core.protocol.client.commands import ThrottleCommand
from headgate.core.protocol.client.send_errors import SendError
from headgate.core.protocol.settings import PartitionedSettings
from headgate.errors import InvalidArgument

LOG = logging.getLogger(__name__)
CLOSE_TIMEOUT_S = 30.0
THREADS_TIMEOUT_S = 5.0
"""How long `close` waits, when all messages have ended, for the library and for each thread, so for callbacks, too."""

FLUSH_S = 0.1
"""How often a library is told to send what it has while it has no room for more."""


class FollowUp(NamedTuple):
    """What follows from something that the machine was told: when it wants to act next, and whether anything left."""

    due_ms: int | None
    is_outgoing: bool


class ProducerOptions(TypedDict, total=False):
    """What a RateLimitedProducer takes beside library, settings and receipts."""

    connection: str | None
    on_throttle: Callable[[Throttle], object] | None
    on_resume: Callable[[Throttle], object] | None
    max_pending_bytes: int
    clock: Clock | None


class RateLimitedProducer:
    """Every message's future ends once; per producer, messages are written in the order of their sends; after the
    receipt of a command none is written until its pause is over.

    All methods may be called by any threads at once. The machine decides, under one lock; what it says is carried out
    outside of it, in order: writes and receipts by one thread at a time (`Outbox`), the ends of futures, and the
    callbacks of windows, by a thread of their own (`Completions`).

    Arguments: library: owned from here on, and closed with this. settings: those of one producer, or of a partitioned
    one. receipts: called with the request id of a command, for each copy of it, after its window is in force and
    what came before it was written; it must not wait for sends of this producer. connection: the name whose rows
    `on_row` obeys. on_throttle: called when a window begins, in the thread of the futures' callbacks; may send. A
    window that is extended does not begin anew. on_resume: the same for the window's end, at the latest in `close`.
    max_pending_bytes: of payloads, until the library is done with them, over all partitions; 0 is no bound. So are
    messages counted by max_pending of the settings, but of a partition only until they have failed. clock: the time.
    Raises InvalidArgument for a bound that is none, and for settings of several producers that are no partitions.
    Source: PIP-385; throttle-protocol 13
    """

    def __init__(
        self,
        library: Library,
        settings: Settings,
        *,
        receipts: Callable[[int], object],
        connection: str | None = None,
        on_throttle: Callable[[Throttle], object] | None = None,
        on_resume: Callable[[Throttle], object] | None = None,
        max_pending_bytes: int = 0,
        clock: Clock | None = None,
    ) -> None:
        self._topics = topics(settings)
        self._topic = getattr(settings, "topic", None) or next(iter(self._topics.values()))
        self._machine = machine_of(settings)
        self._library = library
        self._options = library.options
        self._receipts = receipts
        self._connection = connection
        self._on_throttle, self._on_resume = on_throttle, on_resume
        self._clock = clock or MonotonicClock()
        self._in_library = {producer_id: InLibrary(self._clock.now_ms()) for producer_id in self._topics}
        self._releases = {producer_id: Release(self._clock.now_ms()) for producer_id in self._topics}
        self._released = set[int]()
        """Producers that have had a window."""
        self._lock = threading.Lock()
        self._pending = Pending(self._lock)
        if type(max_pending_bytes) is not int or max_pending_bytes < 0:
            raise InvalidArgument(
                f"max_pending_bytes: got {max_pending_bytes!r}, allowed is an integer from 0, no bound"
            )
        self._held = Held(client_of(settings).max_pending if len(self._topics) == 1 else 0, max_pending_bytes)
        self._refused = ClientMetrics()
        self._is_closed = False
        self._unsent = Counter[bool]()
        """How many messages have failed since `close` began, by whether they were begun."""
        self._completions = Completions()
        self._outbox = Outbox(self._carry)
        self._throttles = Throttles(
            self._topics, is_partitioned=isinstance(settings, PartitionedSettings), tell=self._put_throttle
        )
        self._timer = Timer(self._clock, self.advance)

    def send(self, payload: Any, *, partition: int | None = None, **options: Unpack[SendOptions]) -> Future[Any]:
        """The future of a message: what the library says of its delivery, or a SendFailedError.

        In a window the message waits for the end; where that is further away than the send timeout it has failed on
        return. May block while the library has no room.

        Arguments: partition: where it goes; without, its key decides, else the routing. options: those of the
        library's own send.
        Raises InvalidArgument for a partition that there is not, and for an option that the library does not have.
        """
        if self._options is not None and not options.keys() <= self._options:
            unknown, allowed = sorted(options.keys() - self._options), ", ".join(["partition", *sorted(self._options)])
            raise InvalidArgument(f"send to {self._topic}: got {unknown}, allowed are {allowed}")
        if partition is None and len(self._topics) > 1:
            partition = self._library.partition_of(options)
        if partition is not None and (type(partition) is not int or partition not in self._topics):
            allowed = f"{min(self._topics)} to {max(self._topics)}"
            raise InvalidArgument(f"partition of {self._topic}: got {partition!r}, allowed is {allowed}, or None")
        message = Message(payload, options)
        with self._lock:
            told = self._accept(message, partition)
            is_refused = message.error is not None
        if is_refused:
            message.complete()  # nobody has the future yet: no callback runs in here
        self._timer.plan(told.due_ms)
        self._outbox.carry_out(wait=told.is_outgoing)
        return message.future

    def send_async(
        self, payload: Any, *, partition: int | None = None, **options: Unpack[SendOptions]
    ) -> asyncio.Future[Any]:
        """As `send`, with a future of the running event loop; it is sent at the call, awaited or not.

        Who cancels the future does not cancel the message. Raises RuntimeError outside of a loop.
        """
        loop = asyncio.get_running_loop()
        return asyncio.wrap_future(self.send(payload, partition=partition, **options), loop=loop)

    def on_command(self, request_id: int, producer_id: int, reason: int | None, pause_ms: int) -> None:
        """A command came as a frame: its window is in force on return. Its receipt is handed out by then, or, where
        the library is in a write, at the end of that one.

        Bad values are counted and change nothing. producer_id: of the settings; of a partitioned producer, the
        partition. pause_ms: 0 says that reads are off. Source: throttle-protocol 10.3
        """
        self._obey(ThrottleCommand(request_id, producer_id, reason, pause_ms))

    def on_row(self, row: Mapping[str, Any]) -> None:
        """A row of `throttle_decisions`: rows may come in any order and several times, and those that are no commands
        of this connection change nothing.

        Raises InvalidArgument if this producer has no connection's name. Source: throttle-protocol 6, 9, 13
        """
        if self._connection is None:
            raise InvalidArgument(
                "connection: got None, allowed is a name; give it to RateLimitedProducer(connection=)"
            )
        command = command_of(row, self._connection)
        if command is not None:
            self._obey(command)

    def on_connection(self, connection: str | None = None) -> None:
        """The library has connected again, and writes again by itself what was not acknowledged: request ids start
        anew, windows run out. connection: the new name, for rows.
        """
        self._connection = connection or self._connection
        self._tell(self._machine.client.renumber)
        self._outbox.leave()

    def is_throttled(self, partition: int | None = None) -> bool:
        """Whether a window is active, of that partition or of any."""
        with self._lock:
            now_ms = self._clock.now_ms()
            if partition is None:
                return self._machine.is_throttled(now_ms)
            return self._machine.client.is_throttled(partition, now_ms)

    def throttle(self, partition: int | None = None) -> Throttle | None:
        """Until when and why a window is active: that of the partition, or of all the one that ends last.

        None where `is_throttled` is false.
        """
        with self._lock:
            return self._throttles.of(partition, max(self._clock.now_ms(), self._machine.client.now_ms))

    def metrics(self) -> dict[str, int]:
        """All totals up to now, by `name{label=value,...}`; `reason` is a HeldReason. Source: throttle-protocol 14"""
        self.advance()
        with self._lock:
            return with_held_reasons(Counter(self._machine.client.metrics()) + Counter(self._refused.values()))

    def advance(self) -> None:
        """What is due by now happens. The timer calls it; so may others."""
        self._tell(self._machine.client.advance)
        self._outbox.resume()

    def flush(self, timeout_s: float = CLOSE_TIMEOUT_S) -> bool:
        """Wait until no message is pending, whatever became of each; false if the time was over before."""
        deadline = time.monotonic() + timeout_s
        while not (is_handed_over := self._wait_handed_over(min(FLUSH_S, _left(deadline)))) and _left(deadline):
            with self._lock:
                is_full = any(one.is_full for one in self._in_library.values())
            if is_full:
                self._library.flush(min(FLUSH_S, _left(deadline)))
        if is_handed_over and _left(deadline):
            self._library.flush(_left(deadline))
        with self._lock:
            return self._pending.wait_empty(_left(deadline))

    def close(self, timeout_s: float = CLOSE_TIMEOUT_S) -> Unsent:
        """Take no more messages, wait for those that are pending, fail the rest with ProducerClosedError.

        Returns how many have failed since then, also by their send timeout; one line is logged if any has.
        On return all futures have ended and their callbacks have run, unless one of these takes longer than 5 s or is
        itself what closes. A second call returns at once: none.
        """
        with self._lock:
            if self._is_closed:
                return Unsent(0, 0)
            self._is_closed = True
        try:
            self.flush(timeout_s)
        finally:
            unsent = self._fail_rest()
            self._end()
        return unsent

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close; where the body raises, without waiting for what is pending."""
        self.close(CLOSE_TIMEOUT_S if kind is None else 0)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """As `__exit__`, in another thread: the event loop goes on."""
        await asyncio.to_thread(self.__exit__, kind, error, traceback)

    def _wait_handed_over(self, timeout_s: float) -> bool:
        with self._lock:
            return self._pending.wait_handed_over(timeout_s)

    def _fail_rest(self) -> Unsent:
        for producer_id in self._topics:
            self._tell(partial(self._machine.client.close, producer_id))
        with self._lock:
            self._throttles.end_all(self._machine.client.now_ms)
            unsent = Unsent(self._unsent[False], self._unsent[True])
        if unsent:
            LOG.warning(
                "%s: closed; %d messages were not written, %d were written but not acknowledged and may be stored",
                *(self._topic, unsent.not_written, unsent.not_acknowledged),
            )
        return unsent

    def _obey(self, command: ThrottleCommand) -> None:
        self._tell(partial(self._machine.client.throttle, command), command.producer_id)
        self._outbox.carry_out(wait=False)

    def _tell(self, operation: Operation, commanded: int | None = None) -> None:
        """Tell the machine something. commanded: the producer that a command is for, which may be none of these."""
        client = self._machine.client
        with self._lock:
            told = self._perform(operation)
            self._throttles.settle(client.now_ms)
            window = None if commanded is None else client.window(commanded, client.now_ms)
            if commanded is not None and window is not None:
                self._throttles.hold(commanded, window, client.now_ms)
                self._released.add(commanded)
                self._releases[commanded].hold(window.end_ms, client.now_ms)
            over_ms = self._throttles.due_ms
        self._timer.plan(told.due_ms)
        self._timer.plan(over_ms)

    def _accept(self, message: Message, partition: int | None) -> FollowUp:
        if self._is_closed:
            self._refused.failed(SendError.CLOSED, self._topic)
            message.error = ProducerClosedError(self._topic, "the producer is closed; nothing can be sent any more")
            return FollowUp(None, is_outgoing=False)
        if not self._held.take(message):
            self._refused.failed(SendError.QUEUE_FULL, self._topic)
            message.error = plain_error(SendError.QUEUE_FULL, self._topic)
            return FollowUp(None, is_outgoing=False)
        message_id = self._pending.add(message)
        return self._perform(lambda now_ms: self._machine.send(message_id, now_ms, partition), sent=message)

    def _perform(self, operation: Operation, sent: Message | None = None) -> FollowUp:
        """Under the lock: tell the machine something, and sort what it says."""
        is_outgoing = False
        now_ms = self._clock.now_ms()
        for producer_id in self._released:
            waited_ms = self._releases[producer_id].waited_ms(max(now_ms, self._machine.client.now_ms))
            if waited_ms:
                self._machine.client.hold_back(producer_id, waited_ms)
        for output in operation(now_ms):
            match output:
                case Write() | Receipt():
                    self._outbox.put(output)
                    is_outgoing = True
                case Done():
                    self._completions.put(self._pending.take(output.message_id).complete)
                case Failed():
                    message = self._pending.take(output.message_id)
                    if message.cause is None:  # what was refused is neither
                        self._unsent[message.is_begun] += self._is_closed
                    if not message.is_begun:
                        self._held.drop(message)
                    message.error = error_of(output, self._topics[output.producer_id], message.cause)
                    message.error.may_be_stored = message.is_begun
                    if message is not sent:
                        self._completions.put(message.complete)
        return FollowUp(self._machine.client.next_due_ms(), is_outgoing)

    def _put_throttle(self, throttle: Throttle) -> None:
        """Under the lock: a window has begun or is over."""
        self._completions.put(partial(self._report, throttle))

    def _report(self, throttle: Throttle) -> None:
        reason = throttle.reason or throttle.protocol_reason.name
        if throttle.remaining_ms:
            callback = self._on_throttle
            LOG.info("%s: throttled for %d ms; reason: %s", throttle.topic, throttle.remaining_ms, reason)
        else:
            callback = self._on_resume
            LOG.info("%s: was throttled for %d ms; reason: %s", throttle.topic, throttle.throttled_ms, reason)
        if callback is not None:
            callback(throttle)

    def _carry(self, outgoing: Outgoing) -> bool:
        if isinstance(outgoing, Write):
            return self._write(outgoing)
        try:
            self._receipts(outgoing.request_id)
        except Exception:
            LOG.exception("%s: the receipt of command %d was not taken", self._topic, outgoing.request_id)
        return True

    def _write(self, write: Write) -> bool:
        """Whether that is done with; what a window has overtaken waits for its end, and then for its turn, and all
        where the library has enough.
        """
        release, in_library = self._releases[write.producer_id], self._in_library[write.producer_id]
        with self._lock:
            message = self._pending.get(write.message_id)
            now_ms = max(self._clock.now_ms(), self._machine.client.now_ms)
            due_ms = release.due_ms(now_ms)
            if message is None:
                return True  # it has failed since: a failed message is not written
            waits = due_ms > now_ms or not in_library.take(now_ms)
            if not waits:
                message.is_begun = message.is_in_library = True
                release.wrote(now_ms)
        if waits:
            self._timer.plan(due_ms if due_ms > now_ms else None)
            return False
        completed = partial(self._completed, write, message)
        try:
            self._library.write(write.producer_id, message.payload, message.options, completed)
        except BaseException as error:
            completed(None, error)
            if not isinstance(error, Exception):
                raise
        with self._lock:
            self._pending.hand_over(message)
        return True

    def _completed(self, write: Write, message: Message, result: object, cause: BaseException | None = None) -> None:
        client, producer_id, message_id = self._machine.client, write.producer_id, write.message_id
        with self._lock:
            self._held.drop(message)
            if message.is_in_library:
                message.is_in_library = False
                now_ms = max(self._clock.now_ms(), client.now_ms)
                if self._in_library[producer_id].drop(now_ms, is_failed=cause is not None):
                    self._outbox.resume()
            if self._pending.get(message_id) is None:
                return
            message.result, message.cause = result, cause
            told = self._perform(partial(client.ack if cause is None else client.nack, producer_id, message_id))
        self._timer.plan(told.due_ms)
        self._outbox.leave()

    def _end(self) -> None:
        try:
            self._library.close(THREADS_TIMEOUT_S)
        finally:
            for thread in (self._timer, self._outbox, self._completions):
                thread.stop(THREADS_TIMEOUT_S)


def _left(deadline: float) -> float:
    return max(0.0, deadline - time.monotonic())
