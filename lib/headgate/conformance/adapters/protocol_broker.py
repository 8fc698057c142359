"""Kind broker: a map of connections, with metrics that survive them (throttle-protocol 19)."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from headgate.core.protocol.broker import inputs
from headgate.core.protocol.broker.broker_metrics import BrokerMetrics
from headgate.core.protocol.broker.broker_step import step
from headgate.core.protocol.broker.checks import is_time
from headgate.core.protocol.broker.connection import Connection
from headgate.core.protocol.broker.inputs import Input, Trip
from headgate.core.protocol.broker.outputs import BadInput, Command, Output, ReadsPaused, ReadsResumed, Rejected
from headgate.core.protocol.settings import BrokerSettings
from headgate.errors import InvalidArgument

Fields = Mapping[str, Any]
PROBE = "probe"


class BrokerOperations(ABC):
    """The operations of the kind by name, on connections of one broker, each with a clock of its own."""

    def __init__(self, config: Fields) -> None:
        self._settings = BrokerSettings.of(config)
        self.metrics = BrokerMetrics()

    def perform(self, op: str, arguments: Fields) -> list[Any]:
        """Run `op`. Raises InvalidArgument for one that the kind does not have."""
        if op == "metrics":
            return [{"out": "metrics", "values": self.metrics.values()}]
        if op == "advance":
            return self._advance(arguments["at"]) if is_time(arguments["at"]) else [self._refused(arguments["at"])]
        if op not in INPUTS:
            raise InvalidArgument(f"op: got {op!r}, allowed are {', '.join([*INPUTS, 'advance', 'metrics'])}")
        return self._feed(op, arguments)

    def _refused(self, at_ms: Any) -> dict[str, Any]:
        self.metrics.rejected(BadInput.BAD_TIME)
        return _written(None, Rejected(at_ms, BadInput.BAD_TIME))

    @abstractmethod
    def _advance(self, at_ms: int) -> list[Any]:
        """All connections to a time."""

    @abstractmethod
    def _feed(self, op: str, given: Fields) -> list[Any]:
        """An input to a connection."""


class BrokerAdapter(BrokerOperations):
    """On the core."""

    def __init__(self, config: Fields) -> None:
        super().__init__(config)
        self.connections = dict[str, Connection]()

    def _advance(self, at_ms: int) -> list[Any]:
        return [
            _written(name, output)
            for name, connection in sorted(self.connections.items())
            for output in connection.advance(at_ms)
        ]

    def _feed(self, op: str, given: Fields) -> list[Any]:
        name, fed = given["conn"], INPUTS[op](given)
        connection, emitted = step(self.connections.get(name), fed, self._settings, self.metrics)
        if connection is None:
            self.connections.pop(name, None)
        else:
            self.connections[name] = connection
        written = [_written(name, output) for output in emitted]
        if op == PROBE and connection is not None and is_time(fed.at_ms):
            written.append({"out": PROBE, "at": connection.now_ms, "conn": name, **connection.view()})
        return written


def _trips(given: Fields) -> list[Trip]:
    return [Trip(trip.get("reason"), trip.get("n"), trip.get("buckets")) for trip in given.get("trips") or ()]


def _input(kind: Callable[..., Input], *fields: str) -> Callable[[Fields], Input]:
    return lambda given: kind(*(given.get(field) for field in ("at", *fields)))


def _mark(given: Fields) -> inputs.Mark:
    return inputs.Mark(given["at"], given["producer"], _trips(given), trigger=given.get("trigger") is not False)


INPUTS: dict[str, Callable[[Fields], Input]] = {
    "connect": _input(inputs.Connect, "supports"),
    "open": _input(inputs.Open, "producer", "topic"),
    "publish": _input(inputs.Publish, "producer"),
    "mark": _mark,
    "receipt": _input(inputs.Receipt, "req"),
    "quote": _input(inputs.Quote, "producer", "reason", "buckets"),
    "condition_set": _input(inputs.ConditionSet, "reason", "n", "producer"),
    "unmark": _input(inputs.Unmark, "producer", "reason", "n"),
    "condition_clear": _input(inputs.ConditionClear, "reason", "n"),
    "close_producer": _input(inputs.CloseProducer, "producer"),
    "close": _input(inputs.Close),
    PROBE: _input(inputs.Probe),
}


def _written(name: str | None, output: Output) -> dict[str, Any]:
    """An output as JSON."""
    about = {"at": output.at_ms, "conn": name}
    match output:
        case Command():
            return {
                "out": "command",
                **about,
                "req": output.request_id,
                "producer": output.producer,
                "reason": int(output.reason),
                "pause_ms": output.pause_ms,
                "kind": output.kind,
            }
        case ReadsPaused():
            told = {"cause": output.cause, "reason": int(output.reason), "producer": output.producer}
            return {"out": "pause", **about, **told}
        case ReadsResumed():
            return {"out": "resume", **about, "off_ms": output.off_ms}
        case Rejected():
            return {"out": "rejected", **about, "error": output.error}
