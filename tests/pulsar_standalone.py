"""The fixture `pulsar_standalone`: one real Pulsar broker, started on free ports when the first test asks for it."""

import json
import urllib.request
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from real_broker import free_ports, started

START_TIMEOUT_S = 600  # the first start fetches the distribution
TIMEOUT_S = 60


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

    def send(self, method: str, path: str, body: Any = None, api: str = "admin/v2/") -> Any:
        """Ask its admin API. Source: Pulsar's REST API"""
        content = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.admin_url}/{api}{path}", content, headers, method=method)
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:
            text = response.read()
        return json.loads(text) if text else None

    def started(self, folder: Path) -> AbstractContextManager[None]:
        """The broker while the block runs. folder: for what it keeps and says."""
        settings = {
            "PULSAR_PORT": self.port,
            "PULSAR_WEB_PORT": self.web_port,
            "PULSAR_LISTENERS": f"door:pulsar://127.0.0.1:{self.door_port}",
            "PULSAR_RUN": folder / "run",
        }
        return started("pulsar-standalone.sh", "Pulsar broker", START_TIMEOUT_S, folder, **settings)


@pytest.fixture(scope="session")
def pulsar_standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pulsar]:
    """A broker of 1.3 GB of memory.

    Skips, with the script's own words, where no broker is to be had: Maven, or the distribution and the network are not
    there.
    """
    pulsar = Pulsar(*free_ports(3))
    with pulsar.started(tmp_path_factory.mktemp("pulsar")):
        yield pulsar
