"""Who connects to headgate serve and does not ask, over real sockets."""

import asyncio
from typing import Any, ClassVar

import pytest
import uvicorn

from headgate.service.patience import PatientProtocol

TIMEOUT_S = 30.0
REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Impatient(PatientProtocol):
    PATIENCE_S: ClassVar[float] = 0.2


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
        config = uvicorn.Config(slow_answer, port=0, http=Impatient, lifespan="off", log_level="error")
        server = uvicorn.Server(config)
        serving = asyncio.ensure_future(server.serve())
        while not server.started:  # noqa: ASYNC110  uvicorn does not say when it listens
            await asyncio.sleep(0)
        reader, writer = await asyncio.open_connection(*server.servers[0].sockets[0].getsockname())
        if answered:
            writer.write(REQUEST)
            await asyncio.wait_for(reader.readuntil(b"ok"), TIMEOUT_S)
        writer.write(then)
        received = await asyncio.wait_for(reader.read(), TIMEOUT_S)
        writer.close()
        server.should_exit = True
        await serving
        return received

    assert asyncio.run(play()) == b""


async def long_answer(scope: Any, receive: Any, send: Any) -> None:
    """More than sockets hold."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": bytes(2**24)})


def test_who_asks_and_does_not_read_is_closed() -> None:
    async def play() -> None:
        config = uvicorn.Config(long_answer, port=0, http=Impatient, lifespan="off", log_level="error")
        server = uvicorn.Server(config)
        serving = asyncio.ensure_future(server.serve())
        while not server.started:  # noqa: ASYNC110  uvicorn does not say when it listens
            await asyncio.sleep(0)
        reader, writer = await asyncio.open_connection(*server.servers[0].sockets[0].getsockname(), limit=1)
        writer.write(REQUEST)
        async with asyncio.timeout(TIMEOUT_S):
            while not server.server_state.connections:  # noqa: ASYNC110
                await asyncio.sleep(0)
            while server.server_state.connections:  # noqa: ASYNC110  nor when a connection is gone
                await asyncio.sleep(0)
        del reader
        writer.close()
        server.should_exit = True
        await serving

    asyncio.run(play())
