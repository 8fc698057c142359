"""Kinds client and partitioned (throttle-protocol 19): operations as vectors write them, and outputs as JSON."""

from collections.abc import Callable, Mapping
from typing import Any

from headgate.conformance.emitted import EmittingAdapter
from headgate.core.protocol.client.client import ClientMachine
from headgate.core.protocol.client.client_outputs import (
    Done,
    Failed,
    Output,
    PartitionsProbe,
    Probe,
    Receipt,
    Rejected,
    Write,
)
from headgate.core.protocol.client.commands import ThrottleCommand
from headgate.core.protocol.client.partitioned import PartitionedProducer
from headgate.core.protocol.reasons import Reason
from headgate.core.protocol.settings import ClientSettings, PartitionedSettings
from headgate.errors import InvalidArgument

Operation = Callable[["Arguments"], list[Output]]


class Arguments(dict[str, Any]):
    """An operation's fields; one that is missing is None, which the machine refuses by itself."""

    def __missing__(self, name: str) -> None:
        return None


def client(config: Mapping[str, Any]) -> EmittingAdapter:
    """The machine of one connection. Raises ValueError for a wrong config."""
    machine = ClientMachine(ClientSettings.of(config))
    return ClientOperations(machine, _of_machine(machine))


def partitioned(config: Mapping[str, Any]) -> EmittingAdapter:
    """One producer with partitions. Raises ValueError for a wrong config."""
    producer = PartitionedProducer(PartitionedSettings.of(config))
    of_machine = _of_machine(producer.client)

    def probe(given: Arguments) -> list[Output]:
        return of_machine["probe"](given) if "producer" in given else producer.probe(given["at"])

    def send(given: Arguments) -> list[Output]:
        return producer.send(given["id"], given["at"], given["partition"])

    return ClientOperations(producer.client, {**of_machine, "send": send, "probe": probe})


def _of_machine(machine: ClientMachine) -> dict[str, Operation]:
    return {
        "advance": lambda given: machine.advance(given["at"]),
        "throttle": lambda given: machine.throttle(_command(given), given["at"]),
        "send": lambda given: machine.send(given["producer"], given["id"], given["at"]),
        "ack": lambda given: machine.ack(given["producer"], given["id"], given["at"]),
        "nack": lambda given: machine.nack(given["producer"], given["id"], given["at"]),
        "disconnect": lambda given: machine.disconnect(given["at"]),
        "reconnect": lambda given: machine.reconnect(given["at"]),
        "close": lambda given: machine.close(given["producer"], given["at"]),
        "probe": lambda given: machine.probe(given["producer"], given["at"]),
    }


class ClientOperations:
    """The operations of a machine by name, and `metrics`."""

    def __init__(self, machine: ClientMachine, operations: Mapping[str, Operation]) -> None:
        self._machine = machine
        self._operations = operations

    def perform(self, op: str, arguments: Mapping[str, Any]) -> list[Any]:
        """Run `op`. Raises InvalidArgument for one that the kind does not have."""
        if op == "metrics":
            return [{"out": "metrics", "values": self._machine.metrics()}]
        if op not in self._operations:
            raise InvalidArgument(f"op: got {op!r}, allowed are {', '.join(self._operations)}, metrics")
        return [_json(output) for output in self._operations[op](Arguments(arguments))]


def _command(given: Arguments) -> ThrottleCommand:
    return ThrottleCommand(
        request_id=given["req"],
        producer_id=given["producer"],
        reason=given["reason"],
        pause_ms=given["pause_ms"],
        issued_at_ms=given["issued_at"],
    )


def _json(output: Output) -> dict[str, Any]:
    name, fields = _fields(output)
    return {"out": name, "at": output.at_ms, **fields}


def _fields(output: Output) -> tuple[str, dict[str, Any]]:
    match output:
        case Write():
            return "write", {"producer": output.producer_id, "id": output.message_id}
        case Done():
            return "done", {"producer": output.producer_id, "id": output.message_id}
        case Failed():
            return "fail", {"producer": output.producer_id, "id": output.message_id, **_failure(output)}
        case Receipt():
            return "receipt", {"req": output.request_id}
        case Rejected():
            return "rejected", {"error": output.error}
        case Probe():
            return "probe", {"producer": output.producer_id, **_probed(output)}
        case PartitionsProbe():
            return "probe", {"is_throttled": bool(output.throttled), "throttled": output.throttled}


def _failure(failed: Failed) -> dict[str, Any]:
    if failed.detail is None:
        return {"error": failed.error}
    return {
        "error": failed.error,
        "reason": _code(failed.detail.reason),
        "throttled_ms": failed.detail.throttled_ms,
        "timeout_ms": failed.detail.timeout_ms,
        "remaining_ms": failed.detail.remaining_ms,
        "immediate": failed.detail.immediate,
    }


def _probed(probe: Probe) -> dict[str, Any]:
    return {
        "is_throttled": probe.window is not None,
        "reason": None if probe.window is None else _code(probe.window.reason),
        "until": None if probe.window is None else probe.window.end_ms,
        "blocked": probe.blocked,
        "pending": probe.pending,
        "theta_ms": probe.theta_ms,
    }


def _code(reason: Reason | None) -> int | None:
    return None if reason is None else int(reason)
