"""The endpoint over HTTP: there while the block runs, and a clear refusal where nothing can listen."""

import socket
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from headgate.conf import MetricsSettings
from headgate.errors import EndpointError
from headgate.metrics import serving, url_of
from real_broker import free_ports
from unit.metrics.batches import batch


def settings(**values):
    return MetricsSettings(**({"port": free_ports(1)[0]} | values))


def test_it_tells_what_was_counted_and_ends_with_its_block():
    here = settings()
    with serving(here) as metrics:
        metrics.take(0, batch(batches=[{"batch_id": 0}]))
        with urlopen(url_of(here)) as answer:
            assert "text/plain" in answer.headers["Content-Type"]
            assert "\nheadgate_batches_total 1.0\n" in answer.read().decode()
    with pytest.raises(URLError, match="refused"):
        urlopen(url_of(here))


def test_topics_of_the_settings_are_those_of_the_metrics():
    with serving(settings(topics=3)) as metrics:
        assert "headgate_topic_throttled_publishes" in {family.name for family in metrics.collect()}


def test_port_0_is_off():
    with serving(MetricsSettings()) as metrics:
        assert metrics is None


def test_a_port_in_use_is_refused_with_what_to_do():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        told = rf"nothing can listen on 127.0.0.1 port {port}: Address already in use; allowed .* --metrics-port \(of"
        with pytest.raises(EndpointError, match=told), serving(settings(port=port)):
            pass


@pytest.mark.parametrize("address", ["203.0.113.1", "no-such-host.invalid", "a..b"])
def test_an_address_that_is_not_of_this_machine_is_refused(address):
    with (
        pytest.raises(EndpointError, match=rf"nothing can listen on {address} port"),
        serving(settings(address=address)),
    ):
        pass


def test_an_ipv6_address_stands_in_brackets_in_the_url():
    assert "http://[::1]:9464/metrics" == url_of(MetricsSettings(address="::1", port=9464))
