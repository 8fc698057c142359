"""Who connects to headgate serve and does not ask, or with too many others, over real sockets."""

import asyncio
import gc
import socket
import ssl
import threading
from asyncio.sslproto import SSLProtocol
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest
import uvicorn
from starlette.concurrency import run_in_threadpool
from starlette.responses import FileResponse, PlainTextResponse

from headgate.service.bounds import AtOnce, BoundedServer
from headgate.service.counted import Counted
from headgate.service.patience import PatientProtocol

TIMEOUT_S = 30.0
REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Impatient(PatientProtocol):
    PATIENCE_S: ClassVar[float] = 0.2
    LINGER_S: ClassVar[float] = 0.1
    ran_out: ClassVar[asyncio.Event]
    """Set once somebody's patience has; each service has its own."""
    lingered: ClassVar[asyncio.Event]
    """Likewise, once somebody has had the time to end TLS."""

    def _give_up(self) -> None:
        super()._give_up()
        self.ran_out.set()

    def _leave(self) -> None:
        super()._leave()
        self.lingered.set()


@asynccontextmanager
async def served(
    app: Any, most: int = 100, graceful_s: int = 1, **tls: Any
) -> AsyncIterator[tuple[uvicorn.Server, Counted, Any]]:
    """The app, what is counted, and the address."""
    Impatient.ran_out, Impatient.lingered = asyncio.Event(), asyncio.Event()
    counted = Counted(AtOnce(app, most))
    config = uvicorn.Config(counted, lifespan="off", log_level="error", timeout_graceful_shutdown=graceful_s, **tls)
    server = BoundedServer(config, Impatient, most, counted.refused.inc)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        serving = asyncio.ensure_future(server.serve([listener]))
        try:
            yield server, counted, listener.getsockname()
        finally:
            server.should_exit = True
            await serving


@asynccontextmanager
async def connected(app: Any) -> AsyncIterator[tuple[uvicorn.Server, asyncio.StreamReader, asyncio.StreamWriter]]:
    """The app served, and a client of it, whose reader takes some 100 KiB by itself."""
    async with served(app) as (server, _, address):
        reader, writer = await asyncio.open_connection(*address)
        try:
            yield server, reader, writer
        finally:
            writer.close()


async def slow_answer(scope: Any, receive: Any, send: Any) -> None:
    """Takes longer than a client may."""
    await Impatient.ran_out.wait()
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


@pytest.mark.parametrize(("body", "lines"), [(b"12", 0), (b"123", 1)], ids=["a body on its way", "a long answer"])
def test_its_end_waits_for_no_body_and_says_in_one_line_which_answers_it_broke_off(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, body: bytes, lines: int
) -> None:
    monkeypatch.setattr(Impatient, "PATIENCE_S", TIMEOUT_S)

    async def play() -> bytes:
        asked = asyncio.Event()

        async def no_answer(scope: Any, receive: Any, send: Any) -> None:
            """It is never made."""
            asked.set()
            while (await receive())["type"] == "http.request":
                pass

        async with served(no_answer) as (_, _, address):
            reader, writer = await asyncio.open_connection(*address)
            writer.write(b"PUT / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\n" + body)
            await asyncio.wait_for(asked.wait(), TIMEOUT_S)
        try:
            return (await asyncio.wait_for(reader.read(), TIMEOUT_S))[9:12]
        except ConnectionResetError:
            return b""
        finally:
            writer.close()

    assert asyncio.run(play()) == (b"503" if lines else b"")
    assert capsys.readouterr().err.count("\n") == lines


async def endless_answer(scope: Any, receive: Any, send: Any) -> None:
    """It begins and never ends."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"begun", "more_body": True})
    await asyncio.Event().wait()


@pytest.mark.parametrize("is_report", [True, False], ids=["a report to a slow client", "an endless answer"])
@pytest.mark.parametrize("is_forced", [False, True], ids=["a signal", "Ctrl-C twice"])
def test_an_answer_that_has_begun_ends_with_its_connection_and_one_line(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    is_report: bool,
    is_forced: bool,
) -> None:
    """No second answer follows it. A second Ctrl-C waits for nothing, and uvicorn has no line for that."""
    monkeypatch.setattr(Impatient, "PATIENCE_S", TIMEOUT_S)
    with (tmp_path / "report.html").open("wb") as report:
        report.truncate(2**26)  # more than sockets hold
    app = FileResponse(tmp_path / "report.html") if is_report else endless_answer

    async def play() -> tuple[bytes, bytes]:
        async with served(app) as (server, _, address):
            reader, writer = await asyncio.open_connection(*address)
            writer.write(REQUEST)
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), TIMEOUT_S)
            server.force_exit = is_forced
        body = await asyncio.wait_for(reader.read(), TIMEOUT_S)
        writer.close()
        return head[9:12], body

    status, body = asyncio.run(play())
    assert status == b"200"
    assert len(body) < 2**26
    assert not body.endswith(b"0\r\n\r\n")
    assert b"503" not in body
    assert capsys.readouterr().err.count("\n") == (0 if is_forced else 1)


@pytest.mark.parametrize(("method", "is_known"), [("GET", True), ("PUT", False)])
def test_a_change_that_is_broken_off_may_be_done_and_its_answer_says_so(method: str, is_known: bool) -> None:
    done, may_go_on, asked = threading.Event(), threading.Event(), threading.Event()

    def change() -> None:
        asked.set()
        may_go_on.wait(TIMEOUT_S)
        done.set()

    async def changing(scope: Any, receive: Any, send: Any) -> None:
        await run_in_threadpool(change)
        await PlainTextResponse("ok")(scope, receive, send)

    async def play() -> str:
        async with served(changing) as (_, _, address):
            reader, writer = await asyncio.open_connection(*address)
            writer.write(REQUEST.replace(b"GET", method.encode()))
            assert await asyncio.to_thread(asked.wait, TIMEOUT_S)
        answer = await asyncio.wait_for(reader.read(), TIMEOUT_S)
        writer.close()
        assert not done.is_set()
        may_go_on.set()
        assert await asyncio.to_thread(done.wait, TIMEOUT_S)
        return answer.decode()

    answer = asyncio.run(play())
    assert answer[9:12] == "503"
    assert ("whether this was done is not known" not in answer) == is_known


def test_its_end_does_not_wait_for_clients_that_do_not_answer_the_end_of_tls(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, certificates: Path
) -> None:
    """Such as those in a pool, which nobody reads. uvicorn has a line for those that it waits for in vain."""
    context = ssl.create_default_context(cafile=certificates / "broker.pem")

    def asked(address: Any) -> ssl.SSLSocket:
        client = context.wrap_socket(socket.create_connection(address, TIMEOUT_S), server_hostname=address[0])
        client.sendall(REQUEST)
        assert client.recv(12)[9:] == b"200"
        return client

    async def play() -> None:
        tls = {"ssl_certfile": certificates / "broker.pem", "ssl_keyfile": certificates / "key.pem"}
        async with served(PlainTextResponse("ok"), **tls) as (_, _, address):
            client = await asyncio.to_thread(asked, address)
        client.close()

    monkeypatch.setattr(Impatient, "PATIENCE_S", TIMEOUT_S)
    asyncio.run(play())
    assert capsys.readouterr().err == ""


async def long_answer(scope: Any, receive: Any, send: Any) -> None:
    """More than sockets hold."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": bytes(2**24)})


def test_its_end_waits_for_a_client_that_reads_its_answer_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Impatient, "PATIENCE_S", TIMEOUT_S)

    async def play() -> bytes:
        async with served(long_answer, graceful_s=30) as (server, _, address):
            reader, writer = await asyncio.open_connection(*address)
            writer.write(REQUEST)
            await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), TIMEOUT_S)
            server.should_exit = True
            await asyncio.wait_for(Impatient.lingered.wait(), TIMEOUT_S)
            body = await asyncio.wait_for(reader.read(), TIMEOUT_S)
            writer.close()
            return body

    assert asyncio.run(play()).count(0) == 2**24


def test_its_end_waits_for_no_client_that_asks_again_and_has_not_read(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its second answer could not be written before it has read the first."""
    monkeypatch.setattr(Impatient, "PATIENCE_S", 2 * TIMEOUT_S)

    async def play() -> None:
        asked = asyncio.Event()

        async def one_answer(scope: Any, receive: Any, send: Any) -> None:
            if scope["path"] == "/":
                await long_answer(scope, receive, send)
            else:
                asked.set()
                await asyncio.Event().wait()

        async with asyncio.timeout(TIMEOUT_S), served(one_answer) as (_, _, address):
            _, writer = await asyncio.open_connection(*address)
            writer.write(REQUEST + REQUEST.replace(b"/ ", b"/again ", 1))
            await asked.wait()
        writer.close()

    asyncio.run(play())
    assert capsys.readouterr().err.count("\n") == 1


def test_who_asks_and_does_not_read_is_closed() -> None:
    async def play() -> None:
        async with connected(long_answer) as (server, _, writer), asyncio.timeout(TIMEOUT_S):
            writer.write(REQUEST)
            while not server.server_state.connections:  # noqa: ASYNC110  nor that somebody is there
                await asyncio.sleep(0)
            while server.server_state.connections:  # noqa: ASYNC110  nor that nobody is any more
                await asyncio.sleep(0)

    asyncio.run(play())


async def ended(address: Any, said: bytes = b"") -> bytes:
    """All that a connection says up to its end."""
    reader, writer = await asyncio.open_connection(*address)
    try:
        writer.write(said)
        return await asyncio.wait_for(reader.read(), TIMEOUT_S)
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


@pytest.mark.parametrize("has_tls", [False, True])
def test_a_connection_above_the_bound_is_closed_and_silent_ones_make_room(has_tls: bool, certificates: Path) -> None:
    """Also before TLS has begun: there an answer would need a handshake, so all are silent."""
    tls: dict[str, Any] = {
        "ssl_certfile": certificates / "broker.pem",
        "ssl_keyfile": certificates / "key.pem",
    }

    async def play() -> tuple[float | None, float | None, bytes]:
        async with served(slow_answer, most=2, **(tls if has_tls else {})) as (_, counted, address):
            silent = [asyncio.ensure_future(ended(address)) for _ in range(5)]
            assert await asyncio.gather(*silent) == [b""] * 5
            context = ssl.create_default_context(cafile=certificates / "broker.pem") if has_tls else None
            reader, writer = await asyncio.open_connection(*address, ssl=context)
            writer.write(REQUEST)
            answer = await asyncio.wait_for(reader.readuntil(b"ok"), TIMEOUT_S)
            writer.close()
            registry = counted.registry
            refused = registry.get_sample_value("headgate_serve_refused_connections_total")
            return refused, registry.get_sample_value("headgate_serve_answers_total", {"status": "200"}), answer[-2:]

    assert asyncio.run(play()) == (3, 1, b"ok")


def test_a_handshake_that_is_broken_off_leaves_nothing_to_the_collector(certificates: Path) -> None:
    """TLS has 256 KiB of buffers for each."""

    async def play() -> int:
        tls = {"ssl_certfile": certificates / "broker.pem", "ssl_keyfile": certificates / "key.pem"}
        async with served(slow_answer, **tls) as (server, _, address), asyncio.timeout(TIMEOUT_S):
            before = handshakes()
            _, writer = await asyncio.open_connection(*address)
            while handshakes() == before:  # noqa: ASYNC110  nobody says that it has begun
                await asyncio.sleep(0)
            writer.close()
            while len(server._tasks) > 1:  # noqa: ASYNC110  nobody says that it has ended
                await asyncio.sleep(0)
            return handshakes() - before

    gc.collect()
    gc.disable()
    try:
        assert asyncio.run(play()) == 0
    finally:
        gc.enable()


def handshakes() -> int:
    """How many there are, ended ones that are kept included."""
    return sum(type(one) is SSLProtocol for one in gc.get_objects())  # a proxy may have lost what it stands for


def test_a_request_above_the_bound_gets_503_and_both_answers_are_counted() -> None:
    """The first client has gone; its answer is made all the same."""
    asked, may_answer = asyncio.Event(), asyncio.Event()

    async def held_answer(scope: Any, receive: Any, send: Any) -> None:
        asked.set()
        await may_answer.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"ok"})

    async def play() -> tuple[bytes, list[float | None]]:
        async with served(held_answer, most=1) as (server, counted, address):
            _, writer = await asyncio.open_connection(*address)
            writer.write(REQUEST)
            await asyncio.wait_for(asked.wait(), TIMEOUT_S)
            writer.close()
            async with asyncio.timeout(TIMEOUT_S):
                while server.server_state.connections:  # noqa: ASYNC110  nobody says that the client has gone
                    await asyncio.sleep(0)
            answer = await ended(address, REQUEST)
            may_answer.set()
            while server.server_state.tasks:  # noqa: ASYNC110  nor that it is answered
                await asyncio.sleep(0)
            name = "headgate_serve_answers_total"
            return answer[9:12], [counted.registry.get_sample_value(name, {"status": one}) for one in ("200", "503")]

    assert asyncio.run(play()) == (b"503", [1, 1])
