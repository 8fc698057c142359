"""Commands as the protocol's job wrote them to the table `throttle_decisions`, each to the client that it names."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from headgate.core.numbers import MAX, SECOND_MS
from headgate.core.protocol.counters import Counters
from headgate.core.protocol.reasons import received
from headgate.errors import TableError
from headgate.gate.decisions import NOTICE_TTL_MS, DecisionReader
from headgate.gate.feed import Link, NameTaken, Seat
from headgate.gate.receipts import ReceiptLog
from headgate.wire import ThrottleProducer

COMMANDS = "headgate.gate.command.count"
RECEIPTS = "headgate.gate.receipt.count"
WRITTEN_EVERY_S = 1.0
"""Receipts are a commit, which costs more with every one in the log."""
_NUMBERS = ("seq", "at_ms", "request_id", "producer_id", "pause_for_millis")


@dataclass(eq=False)
class _TableSeat:
    """A client that is there. is_new: what is in force was not looked for yet. last_seq: up to which it was told."""

    feed: "TableFeed"
    connection: str
    link: Link
    supports: bool
    is_new: bool = field(default=True)
    last_seq: int = field(default=0)

    def answered(self, request_id: int, read_ms: int) -> None:
        self.feed.answered(self.connection, request_id, read_ms)

    def leave(self) -> None:
        self.feed.left(self.connection)


class TableFeed:
    """Every command of a connection is sent once to its client while it is there, in the order of `seq`; to one that
    comes, or comes again, those that are in force then: what was written to a socket that died may not have arrived.

    A row has an absolute end, a frame a pause from its arrival: what is sent is what is left of the pause, and nothing
    where nothing is left, since a pause of 0 would be a notice. Pauses and resumes of reads are the broker's own, and
    sent to nobody, nor is anything to clients that do not support it.

    Arguments: `wall_ms`, the time in ms since 1970, which ends of rows are in; `say`, hears when the table cannot be
    read and when it can again; `receipts`, where they go, None: nowhere.
    Source: throttle-protocol 6, 9
    """

    def __init__(
        self,
        reader: DecisionReader,
        wall_ms: Callable[[], int],
        counters: Counters,
        *,
        poll_ms: int,
        say: Callable[[str], None],
        receipts: ReceiptLog | None = None,
    ) -> None:
        self._reader = reader
        self._wall_ms = wall_ms
        self._counters = counters
        self._poll_ms = poll_ms
        self._say = say
        self._receipts = receipts
        self._seats: dict[str, _TableSeat] = {}
        self._is_failing = False

    def join(self, connection: str, link: Link, *, supports: bool) -> Seat:
        """Take a client in; its commands come with the next look at the table. Raises NameTaken."""
        if connection in self._seats:
            raise NameTaken
        seat = self._seats[connection] = _TableSeat(self, connection, link, supports)
        return seat

    def left(self, connection: str) -> None:
        """A client has gone."""
        del self._seats[connection]

    def answered(self, connection: str, request_id: int, read_ms: int) -> None:
        """A client has sent a receipt."""
        self._counters.add(RECEIPTS)
        if self._receipts is not None:
            self._receipts.add(connection, request_id, read_ms)

    async def run(self) -> None:
        """Look at the table every `poll_ms`, and write receipts every WRITTEN_EVERY_S, until cancelled; then all."""
        try:
            await asyncio.gather(
                _again_and_again(self._look, self._poll_ms / SECOND_MS),
                _again_and_again(self._write_receipts, WRITTEN_EVERY_S),
                _again_and_again(self._keep_up, WRITTEN_EVERY_S),
            )
        finally:
            if self._receipts is not None:
                await asyncio.to_thread(self._receipts.end)

    async def _look(self) -> None:
        """One look; what fails of the table is tried again with the next."""
        asked = [seat for seat in self._seats.values() if seat.supports]
        known = {seat.connection for seat in asked if not seat.is_new}
        new = {seat.connection for seat in asked if seat.is_new}
        try:
            rows = await asyncio.to_thread(self._reader.read, known, new, self._wall_ms())
        except TableError as error:
            if not self._is_failing:
                self._say(f"{error}; trying again every {self._poll_ms} ms")
            self._is_failing = True
            return
        if self._is_failing:
            self._say("the table can be read again")
            self._is_failing = False
        for seat in asked:
            seat.is_new = False
        for row in rows.to_pylist():
            self._tell(row)

    def _tell(self, row: Mapping[str, Any]) -> None:
        """Send a row, unless its client has it, or has left meanwhile and perhaps come again."""
        connection, seq = row["connection"], row["seq"]
        seat = self._seats.get(connection)
        if seat is None or seat.is_new:
            return
        if any(row[name] is None or not 0 <= row[name] <= MAX for name in _NUMBERS):
            self._count("bad")
        elif seq > seat.last_seq:
            is_notice = row["pause_for_millis"] == 0
            stale_ms = row["at_ms"] + (NOTICE_TTL_MS if is_notice else row["pause_for_millis"])
            left_ms = stale_ms - self._wall_ms()
            seat.last_seq = seq
            if left_ms > 0:
                seat.link.send(_command(row, 0 if is_notice else left_ms))
            self._count("sent" if left_ms > 0 else "stale")

    def _count(self, outcome: str) -> None:
        self._counters.add(COMMANDS, (("outcome", outcome),))

    async def _write_receipts(self) -> None:
        if self._receipts is not None:
            await asyncio.to_thread(self._receipts.flush)

    async def _keep_up(self) -> None:
        if self._receipts is not None:
            await asyncio.to_thread(self._receipts.keep_up)


async def _again_and_again(work: Callable[[], Awaitable[None]], pause_s: float) -> None:
    while True:
        await work()
        await asyncio.sleep(pause_s)


def _command(row: Mapping[str, Any], pause_ms: int) -> ThrottleProducer:
    return ThrottleProducer(row["request_id"], row["producer_id"], received(row["reason"]), min(pause_ms, MAX))
