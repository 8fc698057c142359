"""What commands that follow a running cluster share."""

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event

from headgate.cluster.brokers import Cluster
from headgate.cluster.pulsar_brokers import PulsarBrokers
from headgate.conf.cluster import ClusterConf


def cluster_of(conf: ClusterConf) -> Cluster:
    """The cluster that cluster.toml names. Nothing is asked yet."""
    return PulsarBrokers(conf)


def own_name() -> str:
    """Of this process, unlike any other's that runs now: host and process id."""
    return f"{socket.gethostname()}:{os.getpid()}"


@contextmanager
def stopped_by_signals() -> Iterator[Event]:
    """An event that SIGTERM and Ctrl-C set while the block runs."""
    stop = Event()
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in numbers}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
