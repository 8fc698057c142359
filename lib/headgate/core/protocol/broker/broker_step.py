"""A connection by its name, over the lives that it has: from connect to close, and again (throttle-protocol 15, 19)."""

from headgate.core.protocol.broker.broker_metrics import BrokerMetrics
from headgate.core.protocol.broker.checks import is_time
from headgate.core.protocol.broker.connection import Connection
from headgate.core.protocol.broker.inputs import Connect, Input
from headgate.core.protocol.broker.outputs import BadInput, Output, Rejected
from headgate.core.protocol.settings import BrokerSettings


def step(
    connection: Connection | None, given: Input, settings: BrokerSettings, metrics: BrokerMetrics
) -> tuple[Connection | None, list[Output]]:
    """The connection after an input, and what was emitted; None stands for one that is not open.

    Only a Connect opens one, with `settings`; an open one keeps those that it has. It counts in `metrics`.
    """
    if connection is not None:
        emitted = connection.feed(given)
        return (connection if connection.is_open else None), emitted
    if not is_time(given.at_ms):
        return None, [_refused(given, BadInput.BAD_TIME, metrics)]
    if isinstance(given, Connect):
        return Connection(settings, metrics, supports=given.supports is True, at_ms=given.at_ms), []
    return None, [_refused(given, BadInput.UNKNOWN_CONNECTION, metrics)]


def _refused(given: Input, error: BadInput, metrics: BrokerMetrics) -> Rejected:
    metrics.rejected(error)
    return Rejected(given.at_ms, error)
