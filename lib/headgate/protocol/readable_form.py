"""The readable form: one object a machine, for inspection and as the measure of the array form."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from headgate.arrow.schemas import DEAD_LETTERS, table_of
from headgate.core.kernels.columns import Ints
from headgate.core.numbers import MAX
from headgate.core.protocol.broker.inputs import Connect, Input
from headgate.core.protocol.broker.outputs import BadInput, Command, Output, ReadsPaused, ReadsResumed, Rejected
from headgate.protocol.feeding import KINDS, Row, in_order, input_of, together
from headgate.protocol.machines import Machine, Machines, answers, opening
from headgate.protocol.schemas import COUNTS, DECISIONS
from headgate.protocol.silence import Silence
from headgate.protocol.state import SlotState
from headgate.protocol.step import ProtocolRules, StepOutput
from headgate.protocol.telling import dead_letter, unknown_kind


def run_readable(state: SlotState, rows: pa.Table, fed: Ints, rules: ProtocolRules, silence: Silence) -> StepOutput:
    """See `step.Form`."""
    step = _Step(state, rules, silence)
    step.run(rows.take(pa.array(fed)).to_pylist())
    return step.told()


class _Step:
    def __init__(self, state: SlotState, rules: ProtocolRules, silence: Silence) -> None:
        self._rules = rules
        self._until_ms = state.done_ms
        self._machines = Machines(state, silence)
        self._decisions: list[dict[str, Any]] = []
        self._counts: list[tuple[Any, ...]] = []
        self._letters: list[Row] = []

    def run(self, rows: list[Row]) -> None:
        by_connection: dict[str, list[Row]] = defaultdict(list)
        for row in rows:
            if row["connection"] is None:
                self._letters.append(dead_letter(row, str(BadInput.UNKNOWN_CONNECTION)))
            else:
                by_connection[row["connection"]].append(row)
        for name, machine in self._machines.load(sorted(by_connection)):
            for some in together(in_order(by_connection[name])):
                self._feed(name, machine, some)
            self._wait(name, machine)
        for name, machine in self._machines.load(sorted(self._machines.due(self._until_ms))):
            self._wait(name, machine)
        self._machines.store()

    def told(self) -> StepOutput:
        letters = pa.Table.from_pylist(self._letters, DEAD_LETTERS)
        return StepOutput(pa.Table.from_pylist(self._decisions, DECISIONS), table_of(self._counts, COUNTS), letters)

    def _feed(self, name: str, machine: Machine, rows: list[Row]) -> None:
        row = rows[0]
        if row["by_marks"] and not self._rules.obedient and row["kind"] in {"connect", "close"}:
            return  # the inputs say when connections open and close
        if row["kind"] in KINDS:
            machine.begin_anew(row["at_ms"])
        if self._rules.obedient:
            if row["kind"] == "close" and machine.connection is None:
                return  # nothing is open
            if row["at_ms"] > machine.now_ms:
                self._emit(name, machine, self._waited(machine, row["at_ms"] - 1))
            for given in self._made_up(machine, row):
                self._emit(name, machine, machine.feed(given, self._rules.settings))
        if row["kind"] == "open" and machine.connection is not None and machine.is_over(row["at_ms"]):
            return
        made = input_of(rows, machine.numbering)
        if made is None:
            self._letters.append(dead_letter(row, unknown_kind(row)))
            return
        emitted = self._answered(machine, machine.feed(made, self._rules.settings))
        refused = [output for output in emitted if isinstance(output, Rejected)]
        self._letters += [dead_letter(row, str(output.error)) for output in refused]
        self._emit(name, machine, emitted)
        machine.hear(row["at_ms"])

    def _made_up(self, machine: Machine, row: Row) -> Iterator[Input]:
        """What comes before a row of `marks` where nobody says what clients there are."""
        if machine.connection is None and row["kind"] not in {"connect", "close"}:
            yield Connect(row["at_ms"], supports=True)
        yield from opening(row, machine)

    def _wait(self, name: str, machine: Machine) -> None:
        self._emit(name, machine, self._waited(machine, self._until_ms))
        self._counts += [(name, made.name, made.labels, made.value) for made in machine.metrics.taken()]

    def _waited(self, machine: Machine, until_ms: int) -> list[Output]:
        """What is emitted up to the end of `until_ms`; an obedient client answers in between."""
        emitted: list[Output] = []
        if until_ms < 0:
            return emitted
        while self._rules.obedient and machine.due_ms <= until_ms:
            emitted += self._answered(machine, machine.advance(machine.due_ms))
        return emitted + machine.advance(until_ms)

    def _answered(self, machine: Machine, emitted: list[Output]) -> list[Output]:
        if self._rules.obedient:
            for receipt in answers(emitted):
                emitted = emitted + machine.feed(receipt, self._rules.settings)
        return emitted

    def _emit(self, name: str, machine: Machine, emitted: list[Output]) -> None:
        for output in emitted:
            if not isinstance(output, Rejected):
                machine.seq += 1
                self._decisions.append({"connection": name, "seq": machine.seq} | _decision(output))


def _decision(output: Command | ReadsPaused | ReadsResumed) -> dict[str, Any]:
    """What DECISIONS says of it from `kind` on; what is left out is null."""
    match output:
        case Command():
            return {
                "kind": "command",
                "at_ms": output.at_ms,
                "request_id": output.request_id,
                "producer_id": output.producer,
                "topic": output.topic,
                "reason": int(output.reason),
                "pause_for_millis": output.pause_ms,
                "until_ms": min(output.at_ms + output.pause_ms, MAX) if output.pause_ms else None,
                "command_kind": str(output.kind),
            }
        case ReadsPaused():
            place = {"producer_id": output.producer, "topic": output.topic}
            why = {"reason": int(output.reason), "cause": str(output.cause)}
            return {"kind": "pause", "at_ms": output.at_ms} | place | why
        case ReadsResumed():
            return {"kind": "resume", "at_ms": output.at_ms, "off_ms": output.off_ms}
