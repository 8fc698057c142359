"""The fixture `pulsar_standalone`: one real Pulsar broker, started on free ports when the first test asks for it."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from kafka_broker import free_ports

SCRIPT = Path(__file__).with_name("pulsar-standalone.sh")
START_TIMEOUT_S = 600  # the first start fetches the distribution


class Pulsar(NamedTuple):
    """Where an empty broker listens, on loopback. Tests use topics of their own in public/default."""

    port: int
    web_port: int
    door_port: int
    """Where clients go that ask for the listener `door`: nothing is there unless a test puts it there."""

    @property
    def service_url(self) -> str:
        """What clients connect to, for example pulsar://127.0.0.1:40123."""
        return f"pulsar://127.0.0.1:{self.port}"

    @property
    def admin_url(self) -> str:
        """Where the admin API is, for example http://127.0.0.1:40124."""
        return f"http://127.0.0.1:{self.web_port}"

    def settings(self, run: Path) -> dict[str, str]:
        """The script's environment. run: the broker's folder, which is emptied."""
        settings = {
            "PULSAR_PORT": self.port,
            "PULSAR_WEB_PORT": self.web_port,
            "PULSAR_LISTENERS": f"door:pulsar://127.0.0.1:{self.door_port}",
            "PULSAR_RUN": run,
        }
        return os.environ | {name: str(value) for name, value in settings.items()}


@pytest.fixture(scope="session")
def pulsar_standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pulsar]:
    """A broker of 1.3 GB of memory. Tests that use it are best in one file: processes share the suite file by file.

    Skips, with the script's own words, where no broker is to be had: Maven, or the distribution and the network are not
    there.
    """
    pulsar = Pulsar(*free_ports(3))
    environment = pulsar.settings(tmp_path_factory.mktemp("pulsar"))
    # Output to a file: a pipe would stay open in the broker.
    with (tmp_path_factory.mktemp("pulsar-start") / "out").open("w+") as output:
        started = subprocess.run(
            [SCRIPT, "start"], env=environment, stdout=output, stderr=output, timeout=START_TIMEOUT_S, check=False
        )
        output.seek(0)
        if started.returncode != 0:
            pytest.skip(f"no Pulsar broker: {output.read().strip()}")
    with ExitStack() as stack:
        stack.callback(subprocess.run, [SCRIPT, "stop"], env=environment, stdout=subprocess.DEVNULL, check=True)
        yield pulsar
