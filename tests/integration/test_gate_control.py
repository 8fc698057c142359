"""The control port under limiters that take more than they may, over real sockets."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from gate_clients import TIMEOUT_S
from headgate.core.protocol.broker.broker_metrics import BrokerMetrics
from headgate.core.protocol.counters import Counters
from headgate.core.protocol.settings import BrokerSettings
from headgate.gate.command import LoopClock
from headgate.gate.control import Control, ControlLimits, Port, control_on
from headgate.gate.machine_feed import MachineFeed
from headgate.hosts import listening

ASK = b'{"kind": "connections"}\n'
EMPTY = {"connections": []}


class AskedFeed(MachineFeed):
    """Counts how often the connections were asked for; their names fill a line."""

    asked = 0
    filling = ""

    def names(self) -> list[str]:
        self.asked += 1
        return [self.filling] if self.filling else []


class Limiter:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def say(self, lines: bytes) -> None:
        self.writer.write(lines)
        await asyncio.wait_for(self.writer.drain(), TIMEOUT_S)

    async def hear(self) -> dict[str, Any] | None:
        """The next line; None at the end."""
        try:
            line = await asyncio.wait_for(self.reader.readline(), TIMEOUT_S)
        except ConnectionError:
            return None
        return dict(json.loads(line)) if line else None

    async def ask(self, line: bytes = ASK) -> dict[str, Any] | None:
        await self.say(line)
        return await self.hear()


class Running:
    """A port with these limits, in this loop."""

    def __init__(self, limits: ControlLimits, token: bytes | None) -> None:
        clock, self.counters = LoopClock(asyncio.get_running_loop()), Counters()
        self.feed = AskedFeed(BrokerSettings(), clock, BrokerMetrics())
        self.listener = listening("127.0.0.1", 0)
        self.number: int = self.listener.getsockname()[1]
        self.said: list[str] = []
        self.port = Port(self.feed, self.counters, clock, token, limits, self.said.append)
        self.limiters: list[Limiter] = []

    async def limiter(self, limit: int = 2**16) -> Limiter:
        limiter = Limiter(*await asyncio.open_connection("127.0.0.1", self.number, limit=limit))
        self.limiters.append(limiter)
        return limiter

    def ended(self, why: str) -> int:
        return self.counters.values().get(f"headgate.gate.control.ended.count{{why={why}}}", 0)


def run(limits: ControlLimits, play: Callable[[Running], Awaitable[None]], token: bytes | None = None) -> None:
    async def played() -> None:
        running = Running(limits, token)
        async with control_on(running.listener, running.port):
            try:
                await asyncio.wait_for(play(running), TIMEOUT_S)
            finally:
                for limiter in running.limiters:
                    limiter.writer.close()
                ends = (limiter.writer.wait_closed() for limiter in running.limiters)
                await asyncio.gather(*ends, return_exceptions=True)

    asyncio.run(played())


def test_connections_above_the_limit_are_told_so_and_closed() -> None:
    async def play(port: Running) -> None:
        first, second, third = [await port.limiter() for _ in range(3)]
        assert "2 connections" in str(await third.hear())
        assert await third.hear() is None
        assert [await one.ask() for one in (first, second)] == [EMPTY, EMPTY]
        first.writer.close()
        while len(port.port.open_) == 2:  # noqa: ASYNC110  a socket says when its other end has seen its end
            await asyncio.sleep(0)
        assert await (await port.limiter()).ask() == EMPTY
        assert port.ended("too many connections") == 1

    run(ControlLimits(connections=2), play)


def test_wrong_lines_end_a_connection_and_refused_inputs_do_not() -> None:
    async def play(port: Running) -> None:
        limiter = await port.limiter()
        for _ in range(10):
            refused = await limiter.ask(b'{"kind": "publish", "connection": "gone", "topic": "t"}\n')
            assert refused == {"error": "unknown_connection"}
        await limiter.say(b"no JSON\n" * 5)
        heard = [str(await limiter.hear()) for _ in range(5)]
        assert all("no JSON" in one for one in heard[:4])
        assert "more than 3 wrong lines" in heard[4]
        assert await limiter.hear() is None
        assert port.ended("wrong lines") == 1

    run(ControlLimits(wrong_lines=3), play)


def test_wrong_lines_now_and_then_end_nothing() -> None:
    async def play(port: Running) -> None:
        limiter = await port.limiter()
        for _ in range(10):
            assert "no JSON" in str(await limiter.ask(b"no JSON\n"))

    run(ControlLimits(wrong_lines=3, wrong_lines_ms=0), play)


def test_a_limiter_with_many_requests_waits_for_others_and_has_all_answered() -> None:
    async def play(port: Running) -> None:
        busy, other = await port.limiter(), await port.limiter()
        await busy.say(ASK * 10_000)
        assert await other.ask() == EMPTY
        assert port.feed.asked < 5_000
        answers = json.dumps(EMPTY).encode() + b"\n"
        assert await asyncio.wait_for(busy.reader.readexactly(10_000 * len(answers)), TIMEOUT_S) == answers * 10_000

    run(ControlLimits(), play)


def test_a_limiter_that_does_not_read_fills_no_memory() -> None:
    """Answers of a kilobyte: the gate makes as many as wait at most, and what two sockets hold. Nobody else notices."""

    async def play(port: Running) -> None:
        port.feed.filling = "x" * 1000
        deaf = await port.limiter(limit=1)
        deaf.writer.write(ASK * 20_000)
        other = await port.limiter()
        while not port.ended("does not read"):
            assert await other.ask() is not None
        number = deaf.writer.get_extra_info("sockname")[1]
        assert port.feed.asked < 10_000
        assert len(port.said) == 1
        assert f"127.0.0.1 port {number}: it read nothing for 1 s" in port.said[0]

    run(ControlLimits(unread_ms=1000), play)


async def unread(port: Running) -> tuple[Limiter, Control]:
    """A limiter that does not read: its sockets are full, and some 20 KiB wait in the gate, which may wait for ever."""
    port.feed.filling = "x" * 10_000
    limiter = await port.limiter()
    while not port.port.open_:  # noqa: ASYNC110  as above
        await asyncio.sleep(0)
    (control,) = port.port.open_
    while control._transport.get_write_buffer_size() < 20_000:
        asked = port.feed.asked
        limiter.writer.write(ASK)
        while port.feed.asked == asked:  # noqa: ASYNC110  as above
            await asyncio.sleep(0)
    return limiter, control


def test_a_limiter_that_ends_its_lines_and_does_not_read_loses_its_place() -> None:
    async def play(port: Running) -> None:
        limiter, _ = await unread(port)
        limiter.writer.write_eof()
        while port.port.open_:  # noqa: ASYNC110  as above
            await asyncio.sleep(0)
        assert port.ended("does not read") == 1

    run(ControlLimits(unread_ms=1000), play)


def test_a_limiter_that_ends_its_lines_and_reads_then_has_all_answers() -> None:
    async def play(port: Running) -> None:
        limiter, control = await unread(port)
        limiter.writer.write_eof()
        while not control._transport.is_closing():  # noqa: ASYNC110  as above
            await asyncio.sleep(0)
        await assert_all_answered(port, limiter)

    run(ControlLimits(), play)


def test_a_limiter_that_ends_its_lines_before_they_are_answered_has_all_answers() -> None:
    async def play(port: Running) -> None:
        port.feed.filling = "x" * 1_000
        limiter = await port.limiter()
        limiter.writer.write(ASK * 5_000)
        limiter.writer.write_eof()
        await assert_all_answered(port, limiter)
        assert port.feed.asked == 5_000

    run(ControlLimits(), play)


async def assert_all_answered(port: Running, limiter: Limiter) -> None:
    heard = await asyncio.wait_for(limiter.reader.read(-1), TIMEOUT_S)
    answer = json.dumps({"connections": [port.feed.filling]}).encode() + b"\n"
    assert heard == answer * port.feed.asked


def test_large_answers_reach_who_reads_them() -> None:
    """60 answers of a megabyte, of which two sockets hold a small part."""

    async def play(port: Running) -> None:
        port.feed.filling = "x" * 1_000_000
        limiter = await port.limiter(limit=2**21)
        await limiter.say(ASK * 60)
        for _ in range(60):
            assert await limiter.hear() == {"connections": [port.feed.filling]}
        assert port.counters.values() == {}

    run(ControlLimits(), play)


def test_a_token_that_is_no_text_is_a_wrong_one() -> None:
    async def play(port: Running) -> None:
        strange = await port.limiter()
        assert "the first line has to be" in str(await strange.ask(b'{"token": "\\ud800"}\n'))
        assert await strange.ask(b'{"token": "s3cret"}\n') == {"ok": True}

    run(ControlLimits(), play, token=b"s3cret")
