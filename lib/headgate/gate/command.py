"""`headgate gate`: a gate from its arguments to a signal."""

import argparse
import asyncio
import gc
import resource
import signal
import time
from collections.abc import Callable
from dataclasses import fields

from headgate.conf import Conf, load_conf, protocol_settings
from headgate.core.numbers import SECOND_MS
from headgate.core.protocol.broker.broker_metrics import BrokerMetrics
from headgate.core.protocol.counters import Counters
from headgate.core.protocol.settings import BrokerSettings
from headgate.errors import ConfError
from headgate.gate.control import control_on
from headgate.gate.decisions import DecisionReader
from headgate.gate.machine_feed import MachineFeed
from headgate.gate.receipts import ReceiptLog
from headgate.gate.server import Gate, listening
from headgate.gate.settings import GateSettings
from headgate.gate.table_feed import TableFeed


class LoopClock:
    """Wall-clock time as of when it was made, and from there on the loop's own time, which never goes back."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._start_s = loop.time()
        self._start_ms = time.time_ns() // 1_000_000

    def now_ms(self) -> int:
        """The millisecond that is not over yet."""
        return self._start_ms + int((self._loop.time() - self._start_s) * SECOND_MS)

    def call_at(self, at_ms: int, act: Callable[[], None]) -> asyncio.TimerHandle:
        """Call `act` once `at_ms` has begun. A turn of the loop calls what sockets bring before what is due."""
        return self._loop.call_at(self._start_s + (at_ms - self._start_ms) / SECOND_MS, act)


Say = Callable[[str], None]
LOOPBACK = "127.0.0.1"
OTHER_DESCRIPTORS = 64
MAX_PORT = 65_535
MAX_POLL_MS = 3_600_000


def run(arguments: argparse.Namespace, say: Say) -> None:
    """Serve until SIGTERM or SIGINT. `say` hears where the gate listens, what fails, and at the end what was counted.

    Raises ConfError, EndpointError or TableError for what keeps it from that.
    """
    settings = GateSettings.of(_said(arguments))
    allow_descriptors(settings.max_connections)
    leave_start_to_itself()
    if arguments.mode == "machine":
        _in_range("--control-port", arguments.control_port, 0, MAX_PORT)
        broker = protocol_settings(Conf() if arguments.conf_dir is None else load_conf(arguments.conf_dir))
        asyncio.run(_machine(settings, broker, arguments.control_port, say))
        return
    _in_range("--poll-ms", arguments.poll_ms, 1, MAX_POLL_MS)
    asyncio.run(_table(settings, arguments, say))


async def _machine(settings: GateSettings, broker: BrokerSettings, control_port: int, say: Say) -> None:
    clock, metrics, counters = LoopClock(asyncio.get_running_loop()), BrokerMetrics(), Counters()
    feed = MachineFeed(broker, clock, metrics)
    gate = Gate(settings, feed, clock, counters)
    listener = listening(LOOPBACK, control_port, option="--control-port")
    async with control_on(listener, feed, counters, settings.token()):
        say(f"gate: clients on {_place(gate.address)}, control on {_place(listener.getsockname()[:2])}")
        await gate.serve(_stop_asked())
    _say_counts(say, metrics, counters)


async def _table(settings: GateSettings, arguments: argparse.Namespace, say: Say) -> None:
    clock, counters = LoopClock(asyncio.get_running_loop()), Counters()
    location = f"{arguments.output}/throttle_decisions"
    reader = DecisionReader(location)
    feed = TableFeed(
        reader,
        lambda: time.time_ns() // 1_000_000,
        counters,
        poll_ms=arguments.poll_ms,
        say=lambda text: say(f"gate: {text}"),
        receipts=None if arguments.receipts is None else ReceiptLog(arguments.receipts, say),
    )
    gate = Gate(settings, feed, clock, counters)
    say(f"gate: clients on {_place(gate.address)}, commands of {location}")
    await gate.serve(_stop_asked())
    _say_counts(say, counters)


def allow_descriptors(connections: int) -> None:
    """See to it that so many sockets can be open. Raises ConfError where the system does not allow it."""
    wanted = connections + OTHER_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and wanted > hard:
        got = f"--max-connections: got {connections}; this process may have {hard} files open"
        allowed = f"allowed: up to {hard - OTHER_DESCRIPTORS}; give fewer, or raise the limit (ulimit -n)"
        raise ConfError([f"{got}; {allowed}"])
    if soft != resource.RLIM_INFINITY and wanted > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def leave_start_to_itself() -> None:
    """Let the collector of garbage pass over what was imported, which stays: it takes 50 to 100 ms a time to look at,
    and that is a receipt's whole wait.
    """
    gc.collect()
    gc.freeze()


def _said(arguments: argparse.Namespace) -> dict[str, object]:
    keys = (one.metadata["setting"].key for one in fields(GateSettings))
    return {key: getattr(arguments, key.removeprefix("--").replace("-", "_")) for key in keys}


def _in_range(option: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise ConfError([f"{option}: got {value}; allowed: an integer from {low} to {high}; correct it"])


def _stop_asked() -> asyncio.Event:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


def _place(address: tuple[str, int]) -> str:
    return f"{address[0]} port {address[1]}"


def _say_counts(say: Say, *counted: Counters) -> None:
    say("gate: stopped")
    for counters in counted:
        for name, count in sorted(counters.values().items()):
            say(f"  {name} {count}")
