"""Who connects to headgate serve and does not ask, over real sockets."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, ClassVar

import pytest
import uvicorn

from headgate.service.patience import PatientProtocol

TIMEOUT_S = 30.0
REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Impatient(PatientProtocol):
    PATIENCE_S: ClassVar[float] = 0.2


@asynccontextmanager
async def connected(app: Any) -> AsyncIterator[tuple[uvicorn.Server, asyncio.StreamReader, asyncio.StreamWriter]]:
    """The app served, and a client of it, whose reader takes some 100 KiB by itself."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, http=Impatient, lifespan="off", log_level="error"))
    serving = asyncio.ensure_future(server.serve())
    while not server.started:  # noqa: ASYNC110  uvicorn does not say when it listens
        await asyncio.sleep(0)
    reader, writer = await asyncio.open_connection(*server.servers[0].sockets[0].getsockname())
    try:
        yield server, reader, writer
    finally:
        writer.close()
        server.should_exit = True
        await serving


async def slow_answer(scope: Any, receive: Any, send: Any) -> None:
    """Takes twice as long as a client may."""
    await asyncio.sleep(2 * Impatient.PATIENCE_S)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


@pytest.mark.parametrize(
    ("answered", "then"),
    [(False, b""), (False, REQUEST[:-2]), (True, b""), (True, REQUEST[:-2])],
    ids=["nothing", "half a request", "a request", "a request and half of another"],
)
def test_who_brings_no_whole_request_is_closed_and_answers_have_their_time(answered: bool, then: bytes) -> None:
    async def play() -> bytes:
        async with connected(slow_answer) as (_, reader, writer):
            if answered:
                writer.write(REQUEST)
                await asyncio.wait_for(reader.readuntil(b"ok"), TIMEOUT_S)
            writer.write(then)
            return await asyncio.wait_for(reader.read(), TIMEOUT_S)

    assert asyncio.run(play()) == b""


async def answer_to_a_body(scope: Any, receive: Any, send: Any) -> None:
    """Once all of it is there."""
    while (message := await receive())["type"] == "http.request" and message["more_body"]:
        pass
    await slow_answer(scope, receive, send)


@pytest.mark.parametrize(("body", "expected"), [(b"12", b""), (b"123", b"ok")])
def test_a_body_that_does_not_come_is_not_waited_for(body: bytes, expected: bytes) -> None:
    async def play() -> bytes:
        async with connected(answer_to_a_body) as (_, reader, writer):
            writer.write(b"PUT / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\n" + body)
            return (await asyncio.wait_for(reader.read(), TIMEOUT_S))[-2:]

    assert asyncio.run(play()) == expected


async def long_answer(scope: Any, receive: Any, send: Any) -> None:
    """More than sockets hold."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": bytes(2**24)})


def test_who_asks_and_does_not_read_is_closed() -> None:
    async def play() -> None:
        async with connected(long_answer) as (server, _, writer), asyncio.timeout(TIMEOUT_S):
            writer.write(REQUEST)
            while not server.server_state.connections:  # noqa: ASYNC110  nor that somebody is there
                await asyncio.sleep(0)
            while server.server_state.connections:  # noqa: ASYNC110  nor that nobody is any more
                await asyncio.sleep(0)

    asyncio.run(play())
