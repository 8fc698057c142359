"""The fixture `kafka_broker`: one real Kafka broker, started on free ports when the first test asks for it."""

from collections.abc import Iterator

import pytest

from real_broker import free_ports, started

START_TIMEOUT_S = 300  # the first start fetches the jars


@pytest.fixture(scope="session")
def kafka_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The bootstrap address of an empty broker, for example 127.0.0.1:40123. Tests use topics of their own.

    Skips, with the script's own words, where no broker is to be had: neither its jars nor the network are there.
    """
    port, controller = free_ports(2)
    folder = tmp_path_factory.mktemp("kafka")
    settings = {"KAFKA_PORT": port, "KAFKA_CONTROLLER_PORT": controller, "KAFKA_RUN": folder / "run"}
    with started("kafka-broker.sh", "Kafka broker", START_TIMEOUT_S, folder, **settings):
        yield f"127.0.0.1:{port}"
