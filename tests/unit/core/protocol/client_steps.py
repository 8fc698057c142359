"""Step tables of client machines: inputs with their time, and what they emit, written as short texts."""

import re

from headgate.core.protocol.client.client import ClientMachine
from headgate.core.protocol.client.client_outputs import Done, Failed, PartitionsProbe, Probe, Receipt, Rejected, Write
from headgate.core.protocol.client.commands import ThrottleCommand
from headgate.core.protocol.settings import ClientSettings

COMMAND_COUNT = re.compile(r"throttle\.command\.count\{outcome=(.*),reason=(.*),topic=(.*)\}")
TWO = {1: "t1", 2: "t2"}


def machine_of(**settings):
    """A client of the producers 1 and 2; `settings` by their keys."""
    return ClientMachine(ClientSettings.of({"producers": TWO, **settings}))


def frame(request_id, producer_id, pause_ms, reason=0):
    """A command on the connection itself."""
    return ThrottleCommand(request_id, producer_id, reason, pause_ms)


def row(request_id, producer_id, pause_ms, issued_at_ms, reason=0):
    """A command as a row of the table."""
    return ThrottleCommand(request_id, producer_id, reason, pause_ms, issued_at_ms)


def play(machine, *steps):
    """Perform steps (at_ms, method, *arguments, expected texts), each of them checked."""
    for at_ms, method, *arguments, expected in steps:
        assert expected == said(getattr(machine, method)(*arguments, at_ms)), (at_ms, method, *arguments)


def said(outputs):
    return [_text(output) for output in outputs]


def counted(machine):
    """Totals by written name, without the prefixes of names."""
    return {name.rpartition(".client.producer.")[2]: total for name, total in machine.metrics().items()}


def outcomes(machine):
    """How often each outcome of a command was counted, by (outcome, reason, topic)."""
    found = {COMMAND_COUNT.search(name): total for name, total in machine.metrics().items()}
    return {match.groups(): total for match, total in found.items() if match}


def _text(output):
    match output:
        case Write(at_ms, producer_id, message_id):
            return f"{at_ms} write {producer_id} {message_id}"
        case Done(at_ms, producer_id, message_id):
            return f"{at_ms} done {producer_id} {message_id}"
        case Failed(at_ms, producer_id, message_id, error, detail):
            return f"{at_ms} fail {producer_id} {message_id} {error}{_detail(detail)}"
        case Receipt(at_ms, request_id):
            return f"{at_ms} receipt {request_id}"
        case Rejected(at_ms, error):
            return f"{at_ms} rejected {error}"
        case Probe(at_ms, producer_id, window, blocked, pending, theta_ms):
            held = "free" if window is None else f"until {window.end_ms} by {int(window.reason)}"
            return f"{at_ms} probe {producer_id} {held} blocked {blocked} pending {pending} theta {theta_ms}"
        case PartitionsProbe(at_ms, throttled):
            return f"{at_ms} throttled {list(throttled)}"


def _detail(detail):
    if detail is None:
        return ""
    reason = None if detail.reason is None else int(detail.reason)
    at_once = " at once" if detail.immediate else ""
    return f" by {reason}: {detail.throttled_ms}/{detail.timeout_ms}, left {detail.remaining_ms}{at_once}"
