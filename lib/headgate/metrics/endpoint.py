"""The HTTP endpoint that Prometheus scrapes."""

from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, ProcessCollector, disable_created_metrics, start_http_server

from headgate.conf import MetricsSettings
from headgate.errors import EndpointError
from headgate.metrics.counting import Metrics
from headgate.metrics.upkeep_series import UpkeepSeries

disable_created_metrics()  # type: ignore[no-untyped-call]
"""A series _created for each counter would be twice as many, and tell when the process began."""


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
        server, thread = start_http_server(settings.port, settings.address, registry)
    except (OSError, UnicodeError) as error:
        raise EndpointError(
            f"metrics: nothing can listen on {settings.address} port {settings.port}: {_why(error)}; allowed is an "
            "address of this machine with a port that is free: give another one with --metrics-port (of a job also in "
            "[metrics] of headgate.toml), or end what uses it"
        ) from error
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _why(error: OSError | UnicodeError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
