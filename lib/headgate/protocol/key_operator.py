"""What the stateful operator does with one key: its blocks and its state in, blocks for the tables out. No engine."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.blocks import encode, gather
from headgate.core.numbers import MAX
from headgate.keyed.operator import Block, StateCodec
from headgate.protocol.schemas import INPUTS, PROGRESS, TIME
from headgate.protocol.state import NOT_YET, VERSION, SlotState, decode_state, encode_state
from headgate.protocol.step import Arrived, Form, ProtocolRules, StepOutput, advance
from headgate.throttle.schemas import MARKS


@dataclass(frozen=True)
class ProtocolOperator:
    """The operator of the protocol's job (keyed.operator.KeyOperator). kernel: the form of the rules."""

    rules: ProtocolRules
    kernel: str = "numba"
    codec = StateCodec(VERSION, SlotState, decode_state, encode_state)

    def load(self) -> None:
        """See KeyOperator."""
        form_of(self.kernel)

    def step(self, key: str, state: SlotState, blocks: Iterable[Block]) -> list[Block]:
        """See `step_key`."""
        return step_key(key, state, blocks, self.rules, form_of(self.kernel))


@cache
def form_of(kernel: str) -> Form:
    """The form of that name; `numba` loads the compiler, and compiles what is not compiled yet."""
    if kernel == "python":
        from headgate.protocol.readable_form import run_readable  # noqa: PLC0415

        return run_readable
    from headgate.protocol.array_form import run_arrays, warm_up  # noqa: PLC0415

    warm_up()
    return run_arrays


def step_key(key: str, state: SlotState, blocks: Iterable[Block], rules: ProtocolRules, form: Form) -> list[Block]:
    """Blocks of inputs, marks, time and dead letters in; of decisions, counts, dead letters and progress out."""
    by_kind: dict[str, list[bytes]] = defaultdict(list)
    for block in blocks:
        by_kind[block.kind].append(block.block)
    inputs, marks = gather(INPUTS, by_kind["inputs"]), gather(MARKS, by_kind["marks"])
    told, late = advance(state, _arrived(inputs, marks, gather(TIME, by_kind["time"])), rules, form)
    out = list(_blocks(key, state, told, len(inputs) + len(marks), late))
    return out + [Block("dead_letters", 0, block) for block in by_kind["dead_letters"]]


def _arrived(inputs: pa.Table, marks: pa.Table, time: pa.Table) -> Arrived:
    """A finish counts where nothing is above its time."""
    everywhere = time["source"].is_null()
    inputs_ms, marks_ms = (
        _highest(time.filter(pc.or_(everywhere, pc.equal(time["source"], source).fill_null(False))))
        for source in ("inputs", "marks")
    )
    finish = _highest(time.filter(time["finish"])) == max(inputs_ms, marks_ms) != NOT_YET
    return Arrived(inputs, marks, inputs_ms, marks_ms, finish)


def _highest(time: pa.Table) -> int:
    highest = pc.max(time["at_ms"]).as_py()
    return NOT_YET if highest is None else highest


def _blocks(key: str, state: SlotState, told: StepOutput, rows: int, late: int) -> Iterator[Block]:
    for kind in ("decisions", "counts", "dead_letters"):
        table = getattr(told, kind)
        if len(table):
            yield Block(kind, len(table), encode(table))
    due_ms = int(state.due_ms.min(initial=MAX))
    waits = (len(state.kept), None if due_ms == MAX else due_ms)
    row = (key, rows, late, state.high_ms, state.done_ms, *waits)
    yield Block("progress", 1, encode(pa.Table.from_pylist([dict(zip(PROGRESS.names, row, strict=True))], PROGRESS)))
