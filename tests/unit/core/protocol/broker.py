"""Connections in step tables: inputs in few words, outputs as tuples."""

from headgate.core.protocol.broker import inputs
from headgate.core.protocol.broker.broker_metrics import BrokerMetrics
from headgate.core.protocol.broker.connection import Connection
from headgate.core.protocol.broker.inputs import Trip
from headgate.core.protocol.broker.outputs import Command, ReadsPaused, ReadsResumed
from headgate.core.protocol.settings import BrokerSettings

WAIT = "throttleProducerReceiptWaitTimeMillis"
RATE = 1000
TARGET = 10


def opened(*, producers=(1,), supports=True, at=0, **keys):
    """A connection with producers 1, 2, ... of topics t1, t2, ..., opened at `at`."""
    connection = Connection(BrokerSettings.of(keys), BrokerMetrics(), supports=supports, at_ms=at)
    for producer in producers:
        assert connection.feed(inputs.Open(at, producer, f"t{producer}")) == []
    return connection


def metrics(connection):
    return connection._outbox.metrics


def refilled_in(pause_ms):
    """Balances of a limiter whose pause is `pause_ms`, 0 or more."""
    return [[TARGET - pause_ms, RATE]]


def trip(pause_ms, n=1, reason=0):
    return Trip(reason, n, refilled_in(pause_ms))


def mark(at, pause_ms, n=1, producer=1, reason=0, *, trigger=True):
    return inputs.Mark(at, producer, [trip(pause_ms, n, reason)], trigger=trigger)


def quote(at, pause_ms, producer=1, reason=0):
    return inputs.Quote(at, producer, reason, refilled_in(pause_ms))


def unmark(at, n=1, producer=1, reason=0):
    return inputs.Unmark(at, producer, reason, n)


def set_(at, reason, n=1, producer=None):
    return inputs.ConditionSet(at, reason, n, producer)


def clear(at, reason, n=1):
    return inputs.ConditionClear(at, reason, n)


def told(at, request_id, pause_ms, kind="start", producer=1, reason=0):
    return ("command", at, request_id, producer, reason, pause_ms, kind)


def paused(at, cause, reason=0, producer=1):
    return ("pause", at, cause, reason, producer)


def resumed(at, off_ms):
    return ("resume", at, off_ms)


def rejected(at, error):
    return ("rejected", at, error)


def brief(output):
    """An output as a tuple."""
    if isinstance(output, Command):
        fields = ("command", output.at_ms, output.request_id, output.producer, int(output.reason), output.pause_ms)
        return (*fields, str(output.kind))
    if isinstance(output, ReadsPaused):
        return ("pause", output.at_ms, str(output.cause), int(output.reason), output.producer)
    if isinstance(output, ReadsResumed):
        return ("resume", output.at_ms, output.off_ms)
    return ("rejected", output.at_ms, str(output.error))


def perform(connection, given):
    """What an input emits, or a time to advance to."""
    emitted = connection.advance(given) if isinstance(given, int) else connection.feed(given)
    return [brief(output) for output in emitted]


def play(connection, steps):
    """Perform (input or time to advance to, expected outputs) in order; return the connection."""
    for given, expected in steps:
        assert perform(connection, given) == expected, given
    return connection


def producer(connection, id_=1):
    """(state, end, held, open) of a producer."""
    view = connection.view()["producers"][str(id_)]
    return (view["state"], view["end"], view["held"], view["open"])


FREE = ("N", None, [], [])


def holding(*reasons):
    return ("P", None, list(reasons), [])
