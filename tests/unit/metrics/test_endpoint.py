"""The endpoint over HTTP: there while the block runs, and a clear refusal where nothing can listen."""

import socket
import time
from contextlib import ExitStack
from http.client import RemoteDisconnected
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from headgate.conf import MetricsSettings
from headgate.errors import EndpointError
from headgate.metrics import endpoint, serving, url_of
from real_broker import free_ports
from unit.metrics.batches import batch

TIMEOUT_S = 60


def settings(**values):
    return MetricsSettings(**({"port": free_ports(1)[0]} | values))


def test_it_tells_what_was_counted_and_ends_with_its_block():
    here = settings()
    with serving(here) as metrics:
        metrics.take(0, batch(batches=[{"batch_id": 0}]))
        with urlopen(url_of(here), timeout=TIMEOUT_S) as answer:
            assert "text/plain" in answer.headers["Content-Type"]
            assert "\nheadgate_batches_total 1.0\n" in answer.read().decode()
    with pytest.raises(URLError, match="refused"):
        urlopen(url_of(here), timeout=TIMEOUT_S)


def connected(here):
    return socket.create_connection((here.address, here.port), TIMEOUT_S)


def ended(client):
    """Whether nothing more comes."""
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True


def scraped(here):
    """Whether there is an answer."""
    try:
        with urlopen(url_of(here), timeout=TIMEOUT_S) as answer:
            return answer.status == 200
    except (ConnectionResetError, RemoteDisconnected, URLError):
        return False


def test_a_connection_above_the_bound_is_closed_at_once_and_one_that_ends_makes_room(monkeypatch):
    monkeypatch.setattr(endpoint, "MOST_CONNECTIONS", 2)
    here = settings()
    with serving(here), ExitStack() as silent:
        first, _ = (silent.enter_context(connected(here)) for _ in range(2))
        with connected(here) as above:
            assert ended(above)
        assert not scraped(here)
        first.close()
        until_s = time.monotonic() + TIMEOUT_S
        while not scraped(here):  # nobody says that there is room
            assert time.monotonic() < until_s


@pytest.mark.parametrize("begun", [b"", b"GET /metrics HTTP/1.1\r\nA: "])
def test_a_connection_without_a_whole_request_ends_in_time_and_nothing_is_printed(monkeypatch, capfd, begun):
    monkeypatch.setattr(endpoint, "PATIENCE_S", 0.1)
    here = settings()
    with serving(here), connected(here) as client:
        client.sendall(begun)
        assert ended(client)
    assert capfd.readouterr().err == ""


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
