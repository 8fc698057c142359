"""One step of a key: inputs, marks and time in; decisions, counts and dead letters out. No clock, no engine."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow import table_of
from headgate.core.numbers import MAX
from headgate.core.protocol.inputs import Connect, Input
from headgate.core.protocol.outputs import Command, Output, ReadsPaused, ReadsResumed, Rejected
from headgate.core.protocol.settings import BrokerSettings
from headgate.protocol.feeding import KINDS, Row, in_order, input_of, together
from headgate.protocol.machines import Machine, Machines, answers, opening
from headgate.protocol.marks import rows_of_marks
from headgate.protocol.routing import written
from headgate.protocol.schemas import COUNTS, DECISIONS, ROWS
from headgate.protocol.state import NEVER, SlotState
from headgate.throttle.schemas import DEAD_LETTERS


@dataclass(frozen=True)
class ProtocolRules:
    """What every key goes by.

    settings: of connections that open from now on. delay_ms: how far rows of a source may be behind its highest time,
    from 1. sources: inputs, marks or both; each holds the others back until it has come as far.
    obedient: nobody says what clients there are or do: each connection of `marks` opens with its first row, and its
    client sends a receipt for every command at once.
    """

    settings: BrokerSettings = field(default_factory=BrokerSettings)
    delay_ms: int = 1
    sources: frozenset[str] = frozenset({"inputs", "marks"})
    obedient: bool = False


class Arrived(NamedTuple):
    """What came for a key in a batch, with the highest times of each source (state.NEVER: none).

    finish: nothing more comes up to the highest time.
    """

    inputs: pa.Table
    marks: pa.Table
    inputs_ms: int
    marks_ms: int
    finish: bool = False


class Told(NamedTuple):
    """Rows for the tables. late: rows that came behind the watermark."""

    decisions: pa.Table
    counts: pa.Table
    dead_letters: pa.Table
    late: int


def advance(state: SlotState, arrived: Arrived, rules: ProtocolRules) -> Told:
    """Feed every connection what the watermark has reached, in order, and let its time come there.

    The watermark is `delay_ms` below the highest time of the source that is least far, or with a finish at it, and
    never goes back. What is above it waits in the state; what comes behind it is late, and acts at its machine's
    clock. `state` is changed in place.
    Source: throttle-protocol 7.1
    """
    rows = pa.concat_tables([state.kept, _inputs(arrived.inputs), rows_of_marks(arrived.marks)])
    before_ms = state.done_ms
    state.inputs_ms, state.marks_ms = max(state.inputs_ms, arrived.inputs_ms), max(state.marks_ms, arrived.marks_ms)
    reached_ms = min({"inputs": state.inputs_ms, "marks": state.marks_ms}[source] for source in rules.sources)
    if reached_ms != NEVER:
        state.done_ms = max(before_ms, reached_ms - (0 if arrived.finish else rules.delay_ms))
    waits = pc.fill_null(pc.greater(rows["at_ms"], state.done_ms), False)
    state.kept = rows.filter(waits).combine_chunks()
    fed = rows.filter(pc.invert(waits))
    late = pc.sum(pc.less_equal(fed["at_ms"], before_ms)).as_py() or 0
    step = _Step(state, rules)
    step.run(fed.to_pylist())
    return step.told(late)


def _inputs(rows: pa.Table) -> pa.Table:
    return rows.append_column(ROWS.field("by_marks"), pa.repeat(pa.scalar(False), len(rows)))


class _Step:
    def __init__(self, state: SlotState, rules: ProtocolRules) -> None:
        self._rules = rules
        self._until_ms = state.done_ms
        self._machines = Machines(state)
        self._decisions: list[tuple[Any, ...]] = []
        self._counts: list[tuple[Any, ...]] = []
        self._letters: list[dict[str, Any]] = []

    def run(self, rows: list[Row]) -> None:
        by_connection: dict[str, list[Row]] = defaultdict(list)
        for row in rows:
            if row["connection"] is None:
                self._refuse(row, "unknown_connection")
            else:
                by_connection[row["connection"]].append(row)
        for name, machine in self._machines.load(sorted(by_connection)):
            for some in together(in_order(by_connection[name])):
                self._feed(name, machine, some)
            self._wait(name, machine)
        for name, machine in self._machines.load(sorted(self._machines.due(self._until_ms))):
            self._wait(name, machine)
        self._machines.store()

    def told(self, late: int) -> Told:
        letters = pa.Table.from_pylist(self._letters, DEAD_LETTERS)
        return Told(table_of(self._decisions, DECISIONS), table_of(self._counts, COUNTS), letters, late)

    def _feed(self, name: str, machine: Machine, rows: list[Row]) -> None:
        row = rows[0]
        if row["by_marks"] and not self._rules.obedient and row["kind"] in {"connect", "close"}:
            return  # the inputs say when connections open and close
        if self._rules.obedient:
            self._emit(name, machine, self._waited(machine, row["at_ms"] - 1))
            for given in self._made_up(machine, row):
                self._emit(name, machine, machine.feed(given, self._rules.settings))
        made = input_of(rows, machine.numbering)
        if made is None:
            self._refuse(row, f"unknown_kind: got {row['kind']!r}, allowed are {', '.join(KINDS)}")
            return
        emitted = self._answered(machine, machine.feed(made, self._rules.settings))
        for output in emitted:
            if isinstance(output, Rejected):
                self._refuse(row, str(output.error))
        self._emit(name, machine, emitted)

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
                self._decisions.append((name, machine.seq, *_decision(output)))

    def _refuse(self, row: Row, reason: str) -> None:
        source = "marks" if row["by_marks"] else "inputs"
        self._letters.append({"reason": reason, "raw": written(row), "source": source})


def _decision(output: Command | ReadsPaused | ReadsResumed) -> tuple[Any, ...]:
    """DECISIONS from `kind` on."""
    match output:
        case Command(at_ms, request_id, producer, topic, reason, pause_ms, kind):
            until_ms = min(at_ms + pause_ms, MAX) if pause_ms else None
            said = (at_ms, request_id, producer, topic, int(reason), pause_ms, until_ms, str(kind))
            return ("command", *said, None, None)
        case ReadsPaused(at_ms, cause, reason, producer, topic):
            return ("pause", at_ms, None, producer, topic, int(reason), None, None, None, str(cause), None)
        case ReadsResumed(at_ms, off_ms):
            return ("resume", at_ms, *(None,) * 8, off_ms)
