"""A real Prometheus that scrapes endpoints, a fixture that has it for one, and `promtool`, which judges its rules."""

import json
import math
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

from real_broker import free_ports, started

START_TIMEOUT_S = 120  # the first start fetches the package
SCRIPT = Path(__file__).with_name("prometheus.sh")
UNAVAILABLE = 69


class Prometheus(NamedTuple):
    """Where it listens, and the ports that it scrapes each second, by the name of the job. All on loopback."""

    port: int
    target_ports: dict[str, int]

    @property
    def target_port(self) -> int:
        """Of the throttle job."""
        return self.target_ports["headgate"]

    def started(self, folder: Path) -> AbstractContextManager[None]:
        """Prometheus while the block runs, with conf/alerts.yml as its rules."""
        settings = {
            "PROMETHEUS_PORT": self.port,
            "PROMETHEUS_TARGETS": " ".join(f"{job}=127.0.0.1:{port}" for job, port in self.target_ports.items()),
            "PROMETHEUS_RUN": folder / "run",
        }
        return started(SCRIPT.name, "Prometheus", START_TIMEOUT_S, folder, **settings)

    def api(self, path: str, **parameters: object) -> Any:
        """What its HTTP API says."""
        with urlopen(f"http://127.0.0.1:{self.port}/api/v1/{path}?{urlencode(parameters, doseq=True)}") as answer:
            return json.load(answer)["data"]

    def rows(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """The numbers that the expression gives now, with their labels."""
        found = self.api("query", query=expression)["result"]
        rows = ((row["metric"], float(row["value"][1])) for row in found)
        return [(labels, value) for labels, value in rows if math.isfinite(value)]

    def values(self, expression: str) -> dict[tuple[str, ...], float]:
        """The same by the values of their labels, in the order of their names."""
        return {tuple(value for _, value in sorted(labels.items())): number for labels, number in self.rows(expression)}


@pytest.fixture(scope="session")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """It scrapes one endpoint, as job `headgate`.

    Skips, with the script's own words, where no Prometheus is to be had: neither is it installed, nor is its package.
    """
    port, target_port = free_ports(2)
    server = Prometheus(port, {"headgate": target_port})
    with server.started(tmp_path_factory.mktemp("prometheus")):
        yield server


@pytest.fixture(scope="session")
def promtool() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs promtool with these arguments. Skips where it cannot be had."""

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        words = [SCRIPT, "promtool", *map(str, arguments)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=START_TIMEOUT_S, check=False)
        if done.returncode == UNAVAILABLE:
            pytest.skip(f"no promtool: {done.stderr.strip()}")
        return done

    return run
