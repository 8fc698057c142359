"""The limiter of docs/gate.md, as it stands there, with a real gate and headgate's own client."""

import json
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from gate_clients import TIMEOUT_S, Client
from gate_processes import Limiter, machine
from headgate.client import ClientSettings, GateConnection, RateLimitedProducer
from unit.client.doubles import ToldLibrary

PAGE = Path(__file__).parents[2] / "docs" / "gate.md"
RATE = 100
PAUSE_MS = 510
"""Of a producer that has sent 50 messages more than the bucket holds: until it holds one again."""
STALLING = """
class Stalling(asyncio.SelectorEventLoop):
    stalled_s, holds = 0, False

    def time(self):
        return super().time() + self.stalled_s

    def call_later(self, delay_s, act, *args, **how):
        self.holds = self.holds or delay_s > IDLE_S
        return super().call_later(delay_s, self.stall if self.holds and delay_s == IDLE_S else act, *args, **how)

    def stall(self, future, result):
        future.set_result(result)
        self.stalled_s = 100


"""
"""A loop that does nothing for 100 s once it is time to look for idle producers, and one is held."""
THROTTLED = "pulsar.client.producer.throttled_times{reason=TOPIC_PUBLISH_RATE,topic=t1}"


def program() -> str:
    """The only program on the page."""
    (found,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return str(found)


class Publishes:
    """The limiter's process, which `kill` ends. A line is what a producer has sent; what it prints is heard line by
    line.
    """

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.kill = process.kill

    def sent(self, connection: str, producer_id: int, messages: int) -> None:
        names = {"connection": connection, "topic": f"t{producer_id}", "producer": "p"}
        assert self._process.stdin is not None
        print(
            json.dumps(names | {"producer_id": producer_id, "messages": messages}), file=self._process.stdin, flush=True
        )

    def printed(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        return dict(json.loads(self._process.stdout.readline()))


@contextmanager
def limiter_of(
    tmp_path: Path, control: int, status: int = 0, idle_s: float = 60, *, stalls: bool = False
) -> Iterator[Publishes]:
    text = program().replace("IDLE_S = 60", f"IDLE_S = {idle_s}")
    if stalls:
        text = text.replace("asyncio.run(limit", f"{STALLING}asyncio.Runner(loop_factory=Stalling).run(limit")
    (tmp_path / "limiter.py").write_text(text)
    command = [sys.executable, str(tmp_path / "limiter.py"), str(control)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield Publishes(process)
        if status:
            process.wait(TIMEOUT_S)
        process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == status
    finally:
        process.kill()
        process.wait()


def await_that(holds: Callable[[], bool], what: str) -> None:
    give_up_s = time.monotonic() + TIMEOUT_S
    while not holds():
        assert time.monotonic() < give_up_s, f"{what} did not come"


def opened(publishes: Publishes, asked: Limiter, connection: str) -> None:
    """A publish of nothing opens the producer once the limiter has heard that the client has joined."""

    def is_open() -> bool:
        publishes.sent(connection, 1, 0)
        return bool(asked.say(kind="probe", connection=connection).get("producers"))

    await_that(is_open, "the producer")


def producer_of(connection: GateConnection, number: int) -> RateLimitedProducer:
    settings = ClientSettings.of({"producers": {number: f"t{number}"}})
    return connection.producer(ToldLibrary(acknowledges=True), settings)


def holds_and_releases(port: int, publishes: Publishes, asked: Limiter) -> None:
    with (
        GateConnection("127.0.0.1", port, "c") as connection,
        producer_of(connection, 1) as greedy,
        producer_of(connection, 2) as other,
    ):
        assert connection.wait_connected(TIMEOUT_S)
        opened(publishes, asked, "c")
        publishes.sent("c", 2, RATE // 2)
        publishes.sent("c", 1, RATE + 50)
        await_that(greedy.is_throttled, "the command")
        assert not other.is_throttled()
        await_that(lambda: not asked.say(kind="probe", connection="c")["producers"][0]["held"], "the release")
        await_that(lambda: not greedy.is_throttled(), "the end of the pause")

        assert greedy.metrics()[THROTTLED] >= PAUSE_MS
        assert [one["state"] for one in asked.say(kind="probe", connection="c")["producers"]] == ["N", "N"]
    await_that(lambda: asked.say(kind="connections") == {"connections": []}, "the end of the connection")


def test_it_holds_who_exceeds_the_rate_and_nobody_else_and_releases_again(tmp_path: Path) -> None:
    """Also a client that has come again, whose machine is new; and one without the protocol, by its reads."""
    (tmp_path / "broker.conf").write_text("throttleProducerReceiptWaitTimeMillis=5000\n")
    with (
        machine("--conf-dir", str(tmp_path)) as (_, (port, control)),
        Limiter(control) as asked,
        limiter_of(tmp_path, control) as publishes,
    ):
        holds_and_releases(port, publishes, asked)
        holds_and_releases(port, publishes, asked)
        with Client(port) as old:
            old.greet("old", supports=False)
            opened(publishes, asked, "old")
            publishes.sent("old", 1, RATE + 50)
            paused, resumed = publishes.printed(), publishes.printed()

            assert (paused["event"], paused["cause"], paused["topic"]) == ("reads_paused", "no_support", "t1")
            assert (resumed["event"], resumed["connection"]) == ("reads_resumed", "old")


def test_a_limiter_that_is_started_again_releases_what_the_one_that_died_held(tmp_path: Path) -> None:
    """A client that waits publishes nothing of which the new one could hear. It holds and releases as the first did."""
    (tmp_path / "broker.conf").write_text("throttleProducerReceiptWaitTimeMillis=5000\n")
    with (
        machine("--conf-dir", str(tmp_path)) as (_, (port, control)),
        Limiter(control) as asked,
        GateConnection("127.0.0.1", port, "c") as connection,
        producer_of(connection, 1) as greedy,
    ):

        def is_held() -> bool:
            return bool(asked.say(kind="probe", connection="c")["producers"][0]["held"])

        assert connection.wait_connected(TIMEOUT_S)
        with limiter_of(tmp_path, control, status=-signal.SIGKILL) as first:
            opened(first, asked, "c")
            first.sent("c", 1, 100 * RATE)
            await_that(greedy.is_throttled, "the command")
            first.kill()
        assert is_held()
        with limiter_of(tmp_path, control) as second:
            await_that(lambda: not is_held(), "the release of what the first held")
            second.sent("c", 1, RATE + 50)
            await_that(is_held, "a hold of the second")
            await_that(lambda: not is_held(), "its release")


def test_it_closes_producers_that_are_idle_and_opens_them_again(tmp_path: Path) -> None:
    """Not one that it holds."""
    with (
        machine() as (_, (port, control)),
        Limiter(control) as asked,
        limiter_of(tmp_path, control, idle_s=0.05) as publishes,
        Client(port) as client,
    ):

        def topics() -> list[str]:
            return [one["topic"] for one in asked.say(kind="probe", connection="c")["producers"]]

        client.greet("c", supports=False)
        opened(publishes, asked, "c")
        publishes.sent("c", 2, 100 * RATE)
        await_that(lambda: topics() == ["t2"], "the end of the idle one")
        publishes.sent("c", 1, RATE)
        await_that(lambda: sorted(topics()) == ["t1", "t2"], "the idle one again")


def test_it_releases_what_it_holds_before_it_closes_it_also_where_it_had_no_time(tmp_path: Path) -> None:
    """The end of the hold is overdue when the limiter looks for idle producers."""
    with ExitStack() as gate:
        listener = gate.enter_context(socket.create_server(("127.0.0.1", 0)))
        with limiter_of(tmp_path, listener.getsockname()[1], idle_s=0.05, stalls=True) as publishes:
            connection = gate.enter_context(listener.accept()[0])
            connection.settimeout(TIMEOUT_S)
            lines = gate.enter_context(connection.makefile("r"))
            connection.sendall(b'{"event": "joined", "connection": "c"}\n')
            assert [json.loads(lines.readline())["kind"] for _ in range(2)] == ["subscribe", "unmark"]
            publishes.sent("c", 1, 10 * RATE)
            assert [json.loads(lines.readline())["kind"] for _ in range(3)] == ["open", "mark", "unmark"]


def test_it_ends_when_the_gate_is_away(tmp_path: Path) -> None:
    with machine() as (gate, (_, control)), limiter_of(tmp_path, control, status=1):
        gate.kill()
