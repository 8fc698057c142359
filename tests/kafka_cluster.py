"""The fixture `kafka_cluster`: two real Kafka brokers with users, started when the first test asks for it."""

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from real_broker import free_span, started

START_TIMEOUT_S = 300  # the first start fetches the jars
SCRIPT = "kafka-cluster.sh"
SPAN = 30
"""The ports that two brokers take are within so many."""


@dataclass(frozen=True)
class KafkaCluster:
    """Users are admin, acme, globex and guest, who may do nothing; the password of each is its name and -secret."""

    settings: dict[str, object]

    @property
    def servers(self) -> str:
        port = int(str(self.settings["KAFKA_PORT"]))
        return f"127.0.0.1:{port + 1},127.0.0.1:{port + 2}"

    def run(self, *arguments: str) -> None:
        """Of brokers, which are numbered from 1: kill-broker 2, start-broker 2."""
        environment = os.environ | {name: str(value) for name, value in self.settings.items()}
        path = Path(__file__).with_name(SCRIPT)
        subprocess.run([path, *arguments], env=environment, check=True, stdout=subprocess.DEVNULL, timeout=60)


@pytest.fixture(scope="session")
def kafka_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """Skips, with the script's own words, where no broker is to be had. Tests use topics of their own."""
    folder = tmp_path_factory.mktemp("kafka-cluster")
    settings: dict[str, object] = {"KAFKA_PORT": free_span(SPAN), "KAFKA_RUN": folder / "run"}
    with started(SCRIPT, "Kafka cluster", START_TIMEOUT_S, folder, **settings):
        yield KafkaCluster(settings)
