"""What commands that follow a running cluster share."""

import os
import select
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from headgate.cluster.brokers import Cluster
from headgate.cluster.limits import Limits
from headgate.cluster.pulsar_brokers import PulsarBrokers
from headgate.cluster.pulsar_limits import PulsarLimits
from headgate.conf.cluster import KAFKA, ClusterConf
from headgate.core.clusters.demand import SECOND_US
from headgate.engines.stops import Stop, handled
from headgate.stores import Patience

ENFORCER_PATIENCE = Patience(6, 10)
"""With the store of an enforcer's tables, so that it can put limits back before its service kills it: it waits at most
90 s at a time for one that does not answer.
"""


def cluster_of(conf: ClusterConf) -> Cluster:
    """The cluster that cluster.toml names. Nothing is asked yet."""
    if conf.settings.kind == KAFKA:
        from headgate.cluster.kafka_brokers import KafkaBrokers  # noqa: PLC0415  Pulsar needs no Kafka client

        return KafkaBrokers(conf)
    return PulsarBrokers(conf)


def limits_of(conf: ClusterConf) -> Limits:
    """Its limits. Nothing is asked yet."""
    if conf.settings.kind == KAFKA:
        from headgate.cluster.kafka_limits import KafkaLimits  # noqa: PLC0415  the same

        return KafkaLimits(conf)
    return PulsarLimits(conf)


def clock() -> Callable[[], int]:
    """The time of this machine in us at the call, and from then on by a clock that nobody sets."""
    start_us, start_ns = round(datetime.now(UTC).timestamp() * SECOND_US), time.monotonic_ns()
    return lambda: start_us + (time.monotonic_ns() - start_ns) // 1000


def time_of_day(at_us: int) -> str:
    """As lines on the screen begin."""
    return f"{datetime.fromtimestamp(at_us // SECOND_US, UTC):%H:%M:%S}"


def own_name() -> str:
    """Of this process, unlike any other's that runs now: host, a mark of this start of it, and process id."""
    return f"{_machine()}:{os.getpid()}"


def is_running(name: str) -> bool | None:
    """Whether a process with the id in that name runs on this machine; None: it is of another machine."""
    machine, _, process = name.rpartition(":")
    if machine != _machine() or not process.isdigit():
        return None
    if int(process) == os.getpid():  # an earlier one had the same: containers begin with the same ids
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's
        pass
    return True


def _machine() -> str:
    """Containers may share a host's name, but not their process ids."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii")[:8]
        return f"{socket.gethostname()}-{boot}-{Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:  # not Linux
        return socket.gethostname()


def say(line: str) -> None:
    """On the screen, if there is one that takes it now: who does not read, or a full disk, holds no enforcing up."""
    with suppress(OSError, ValueError, AttributeError):  # of one that is closed, or was never there
        screen = sys.stdout.fileno()
        if select.select([], [screen], [], 0)[1]:
            os.write(screen, f"{line}\n".encode(sys.stdout.encoding, "replace"))


@contextmanager
def stopped_by_signals() -> Iterator[Stop]:
    """An event that SIGTERM, Ctrl-C and a terminal that closes set while the block runs; the latter not with nohup."""
    stop = Stop()
    with handled(lambda *_: stop.set()):
        yield stop
