"""The fixture `kafka_broker`: one real Kafka broker, started on free ports when the first test asks for it."""

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("kafka-broker.sh")
START_TIMEOUT_S = 300  # the first start fetches the jars


@pytest.fixture(scope="session")
def kafka_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The bootstrap address of an empty broker, for example 127.0.0.1:40123. Tests use topics of their own.

    Skips, with the script's own words, where no broker is to be had: neither its jars nor the network are there.
    """
    port, controller = free_ports(2)
    settings = {"KAFKA_PORT": port, "KAFKA_CONTROLLER_PORT": controller, "KAFKA_RUN": tmp_path_factory.mktemp("kafka")}
    environment = {**os.environ, **{name: str(value) for name, value in settings.items()}}
    # Output to a file: a pipe would stay open in the broker.
    with (tmp_path_factory.mktemp("kafka-start") / "out").open("w+") as output:
        started = subprocess.run(
            [SCRIPT, "start"], env=environment, stdout=output, stderr=output, timeout=START_TIMEOUT_S, check=False
        )
        output.seek(0)
        if started.returncode != 0:
            pytest.skip(f"no Kafka broker: {output.read().strip()}")
    with ExitStack() as stack:
        stack.callback(subprocess.run, [SCRIPT, "stop"], env=environment, stdout=subprocess.DEVNULL, check=True)
        yield f"127.0.0.1:{port}"


def free_ports(count: int) -> list[int]:
    """Ports that nothing listened on a moment ago; all are held until the last is known, so they differ."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for taken in sockets:
            taken.bind(("127.0.0.1", 0))
        return [taken.getsockname()[1] for taken in sockets]
