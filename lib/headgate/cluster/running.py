"""What commands that follow a running cluster share."""

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

from headgate.cluster.brokers import Cluster
from headgate.cluster.pulsar_brokers import PulsarBrokers
from headgate.conf.cluster import ClusterConf


def cluster_of(conf: ClusterConf) -> Cluster:
    """The cluster that cluster.toml names. Nothing is asked yet."""
    return PulsarBrokers(conf)


def own_name() -> str:
    """Of this process, unlike any other's that runs now: host, a mark of this start of it, and process id."""
    return f"{_machine()}:{os.getpid()}"


def is_dead(name: str) -> bool:
    """Whether a process of that name is of this machine, and runs no more."""
    machine, _, process = name.rpartition(":")
    if machine != _machine() or not process.isdigit():
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def _machine() -> str:
    """Containers may share a host's name, but not their process ids."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii")[:8]
        return f"{socket.gethostname()}-{boot}-{Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:  # not Linux
        return socket.gethostname()


@contextmanager
def stopped_by_signals() -> Iterator[Event]:
    """An event that SIGTERM, Ctrl-C and a terminal that closes set while the block runs."""
    stop = Event()
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in numbers}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
