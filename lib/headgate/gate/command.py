"""`headgate gate`: a gate from its arguments to a signal."""

import argparse
import asyncio
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import fields

from headgate.conf import Conf, MetricsSettings, load_conf, protocol_settings
from headgate.core.numbers import SECOND_MS
from headgate.core.protocol.counters import Counters
from headgate.core.protocol.settings import BrokerSettings
from headgate.engines.stops import handled
from headgate.errors import ConfError
from headgate.gate.control import ControlLimits, Port, control_on
from headgate.gate.decisions import DecisionReader
from headgate.gate.gate_metrics import GateMetrics
from headgate.gate.machine_feed import MachineFeed
from headgate.gate.receipts import ReceiptLog
from headgate.gate.series import GateSeries
from headgate.gate.server import SOCKET_BUFFER_BYTES, Gate
from headgate.gate.settings import GateSettings
from headgate.gate.table_feed import TableFeed
from headgate.heap import give_buffers_back, leave_loaded_alone
from headgate.hosts import allow_files, listening
from headgate.metrics import endpoint
from headgate.stores import check_reachable


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
OTHER_DESCRIPTORS = 64 + ControlLimits().connections + endpoint.MOST_CONNECTIONS
MAX_PORT = 65_535
MAX_POLL_MS = 3_600_000


def run(arguments: argparse.Namespace, say: Say) -> None:
    """Serve until SIGTERM or SIGINT. `say` hears where the gate listens, what fails, and at the end what was counted.

    Raises ConfError, EndpointError, TableError, or InputError of a place, for what keeps it from that.
    """
    settings = GateSettings.of(_said(arguments))
    allow_descriptors(settings.max_connections + settings.max_handshakes)
    leave_loaded_alone()  # a look at it takes a receipt's whole wait
    give_buffers_back()
    if arguments.mode == "machine":
        _in_range("--control-port", arguments.control_port, 0, MAX_PORT)
        broker = protocol_settings(Conf() if arguments.conf_dir is None else load_conf(arguments.conf_dir))
        asyncio.run(_machine(settings, broker, arguments, say))
        return
    _in_range("--poll-ms", arguments.poll_ms, 1, MAX_POLL_MS)
    check_reachable(arguments.output, "OUTPUT")
    if arguments.receipts is not None:
        check_reachable(arguments.receipts, "--receipts")
    asyncio.run(_table(settings, arguments, say))


async def _machine(settings: GateSettings, broker: BrokerSettings, arguments: argparse.Namespace, say: Say) -> None:
    clock, metrics, counters = LoopClock(asyncio.get_running_loop()), GateMetrics(), Counters()
    feed = MachineFeed(broker, clock, metrics)
    gate = Gate(settings, feed, clock, counters, _line(say))
    listener = listening(LOOPBACK, arguments.control_port, "--control-port", SOCKET_BUFFER_BYTES)
    limits = ControlLimits(token_ms=settings.handshake_timeout_ms)
    with _metrics_served(arguments, metrics, counters):
        async with control_on(listener, Port(feed, counters, clock, settings.token(), limits, _line(say))):
            say(f"gate: clients on {_place(gate.address)}, control on {_place(listener.getsockname()[:2])}")
            with _stop_asked() as stop:
                await gate.serve(stop)
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
        say=_line(say),
        receipts=None if arguments.receipts is None else ReceiptLog(arguments.receipts, _line(say)),
    )
    gate = Gate(settings, feed, clock, counters, _line(say))
    with _metrics_served(arguments, counters):
        say(f"gate: clients on {_place(gate.address)}, commands of {location}")
        with _stop_asked() as stop:
            await gate.serve(stop)
    _say_counts(say, counters)


def _metrics_served(arguments: argparse.Namespace, *counted: Counters) -> AbstractContextManager[None]:
    return endpoint.listening(MetricsSettings(port=arguments.metrics_port), GateSeries(*counted).registry)


def allow_descriptors(connections: int) -> None:
    """See to it that so many sockets can be open. Raises ConfError where the system does not allow it."""
    wanted = connections + OTHER_DESCRIPTORS
    files = allow_files(wanted)
    if files < wanted:
        got = f"--max-connections and --max-handshakes: got {connections} together; this process may open {files} files"
        allowed = f"allowed: up to {files - OTHER_DESCRIPTORS}; give fewer, or raise the limit (ulimit -n)"
        raise ConfError([f"{got}; {allowed}"])


def _said(arguments: argparse.Namespace) -> dict[str, object]:
    keys = (one.metadata["setting"].key for one in fields(GateSettings))
    return {key: getattr(arguments, key.removeprefix("--").replace("-", "_")) for key in keys}


def _in_range(option: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise ConfError([f"{option}: got {value}; allowed: an integer from {low} to {high}; correct it"])


@contextmanager
def _stop_asked() -> Iterator[asyncio.Event]:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    before = signal.getsignal(signal.SIGTERM)
    loop.add_signal_handler(signal.SIGTERM, stop.set)  # with one of its own, asyncio wakes the loop for every signal
    try:
        with handled(lambda *_: loop.call_soon_threadsafe(stop.set)):
            yield stop
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
        signal.signal(signal.SIGTERM, before)


def _line(say: Say) -> Say:
    return lambda text: say(f"gate: {text}")


def _place(address: tuple[str, int]) -> str:
    return f"{address[0]} port {address[1]}"


def _say_counts(say: Say, *counted: Counters) -> None:
    say("gate: stopped")
    for counters in counted:
        for name, count in sorted(counters.values().items()):
            say(f"  {name} {count}")
