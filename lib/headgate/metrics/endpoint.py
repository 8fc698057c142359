"""The HTTP endpoint that Prometheus scrapes."""

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Thread
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler

from prometheus_client import CollectorRegistry, ProcessCollector, disable_created_metrics, make_wsgi_app
from prometheus_client.exposition import ThreadingWSGIServer

from headgate.conf import MetricsSettings
from headgate.errors import EndpointError
from headgate.metrics.counting import Metrics
from headgate.metrics.upkeep_series import UpkeepSeries

disable_created_metrics()  # type: ignore[no-untyped-call]
"""A series _created for each counter would be twice as many, and tell when the process began."""

MOST_CONNECTIONS = 16
PATIENCE_S = 10


def url_of(settings: MetricsSettings) -> str:
    """What to scrape."""
    address = f"[{settings.address}]" if ":" in settings.address else settings.address
    return f"http://{address}:{settings.port}/metrics"


def check_port(settings: MetricsSettings) -> None:
    """Raise EndpointError if nothing can listen there now."""
    if settings.port:
        with serving(settings):
            pass


@contextmanager
def serving(settings: MetricsSettings) -> Iterator[Metrics | None]:
    """Metrics that are told at `url_of` these settings while the block runs, and no longer; None if the port is 0.

    Raises EndpointError if nothing can listen there.
    """
    if settings.port == 0:
        yield None
        return
    metrics, registry = Metrics(settings.topics), CollectorRegistry()
    registry.register(metrics)
    with listening(settings, registry):
        yield metrics


@contextmanager
def listening(settings: MetricsSettings, registry: CollectorRegistry) -> Iterator[None]:
    """What is in the registry, UpkeepSeries and those of the process are told while the block runs; nothing if the port
    is 0.

    Raises EndpointError.
    """
    if settings.port == 0:
        yield
        return
    registry.register(UpkeepSeries())
    ProcessCollector(registry=registry)
    try:
        server = _Server(settings, registry)
    except (OSError, UnicodeError) as error:
        raise EndpointError(
            f"metrics: nothing can listen on {settings.address} port {settings.port}: {_why(error)}; allowed is an "
            "address of this machine with a port that is free: give another one with --metrics-port (of a job also in "
            "[metrics] of headgate.toml), or end what uses it"
        ) from error
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingWSGIServer):
    """At most MOST_CONNECTIONS are open, each for at most PATIENCE_S; one more is closed at once.

    prometheus_client's own server takes connections in until no descriptor is left, and waits for ever for a request.
    """

    def __init__(self, settings: MetricsSettings, registry: CollectorRegistry) -> None:
        found = socket.getaddrinfo(settings.address, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        self.address_family, _, _, _, address = found[0]
        self._until_s: dict[socket.socket, float] = {}
        super().__init__((str(address[0]), settings.port), _Request)
        self.set_app(make_wsgi_app(registry))

    def verify_request(self, request: Any, client_address: Any) -> bool:  # noqa: ARG002  the base class gives both
        """Whether the connection is taken in. Source: socketserver.BaseServer"""
        is_taken = len(self._until_s) < MOST_CONNECTIONS
        if is_taken:
            self._until_s[request] = time.monotonic() + PATIENCE_S
        return is_taken

    def service_actions(self) -> None:
        """Called about twice a second. Source: socketserver.BaseServer"""
        for request, until_s in self._until_s.copy().items():
            if until_s < time.monotonic():
                with suppress(OSError):  # it has gone itself
                    request.shutdown(socket.SHUT_RDWR)

    def shutdown_request(self, request: Any) -> None:
        """The connection has ended. Source: socketserver.BaseServer"""
        super().shutdown_request(request)
        self._until_s.pop(request, None)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing: a client that has gone. What fails while metrics are made is told by wsgiref."""


class _Request(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  Python's name
        """Nothing: a line for each scrape would hide the others."""


def _why(error: OSError | UnicodeError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
