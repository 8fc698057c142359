"""What a batch of the protocol's job brought, and its way into the tables: the same under every engine."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.schemas import DEAD_LETTERS
from headgate.conf import Conf, protocol_settings
from headgate.core.numbers import HOUR_MS
from headgate.engines.batches import Appends
from headgate.protocol.clock import Clock
from headgate.protocol.key_operator import ProtocolOperator
from headgate.protocol.schemas import COUNTS, DECISIONS, METRICS, PROGRESS, TICKS, WRITTEN
from headgate.protocol.step import ProtocolRules

KINDS = {"decisions": DECISIONS, "counts": COUNTS, "dead_letters": DEAD_LETTERS, "progress": PROGRESS}


@dataclass(frozen=True)
class ProtocolResult:
    """What one batch brought."""

    batch_id: int
    rows: int
    late: int
    commands: int
    pauses: int
    dead_letters: int


def operator_of(conf: Conf, *, has_inputs: bool, follows_marks: bool) -> ProtocolOperator:
    """The operator of a job, by what it takes in. Without inputs clients are taken for obedient."""
    has = {"inputs": has_inputs, "marks": follows_marks}
    sources = frozenset(source for source, is_there in has.items() if is_there)
    rules = ProtocolRules(
        protocol_settings(conf),
        conf.settings.protocol.watermark_delay_ms,
        sources,
        obedient=not has_inputs,
        fan_out=fans_out(conf),
        silent_ms=conf.settings.state.silent_hours * HOUR_MS,
    )
    return ProtocolOperator(rules, conf.settings.operator.kernel)


def fans_out(conf: Conf) -> bool:
    """Whether a broker's connections need one key, as a topic's decision goes to all of them."""
    return conf.settings.protocol.fan_out == "topic"


def until_ms(conf: Conf) -> int:
    """The first time that inputs may not have."""
    return int(conf.settings.input.event_time_until.timestamp() * 1000)


def ticks(at_ms: int, *, finish: bool = False) -> pa.Table:
    """A row of `protocol_ticks`: the time to which all sources have come. finish: nothing more comes of it."""
    return pa.Table.from_pylist([{"at_ms": at_ms, "finish": finish, "written_at": datetime.now(UTC)}], TICKS)


class ProtocolWriter:
    """Exactly once in the tables: each takes a batch in one transaction (application, batch id).

    clock: how far time has come.
    """

    def __init__(self, tables: Appends) -> None:
        self._tables = tables
        self.clock = Clock()

    def write(self, rows: Mapping[str, pa.Table], application: str, batch_id: int) -> ProtocolResult:
        """Write the rows of a batch by kind (KINDS)."""
        counts = rows["counts"].add_column(0, METRICS.field("batch_id"), pa.repeat(batch_id, len(rows["counts"])))
        of_tables = (rows["decisions"], counts, rows["dead_letters"])
        for name, of_table in zip(WRITTEN, of_tables, strict=True):
            self._tables.append(name, of_table, application, batch_id)
        self.clock.take(rows["progress"])
        kinds = rows["decisions"]["kind"]
        taken, late = (pc.sum(rows["progress"][name]).as_py() or 0 for name in ("rows", "late"))
        commands, pauses = (pc.sum(pc.equal(kinds, kind)).as_py() or 0 for kind in ("command", "pause"))
        return ProtocolResult(batch_id, taken, late, commands, pauses, len(rows["dead_letters"]))
