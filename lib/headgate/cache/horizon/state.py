"""What is kept behind a key in mode horizon, and its codec: the lines and the shards of brokers, as bytes until they
are asked for.
"""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa

from headgate.arrow.blocks import decode_all, encode_all
from headgate.cache.horizon.line import LineState
from headgate.cache.horizon.schemas import ITEMS
from headgate.cache.horizon.shard_run import Met, ShardState
from headgate.cache.stored.state import Change, OpenSecond
from headgate.cache.stored.stored import shard_from, tables_of
from headgate.core.cache.horizon.rounds import Round
from headgate.core.cache.settings import CacheSettings
from headgate.errors import StateError

VERSION = 1
_PLAIN = ("high_us", "done_us", "changes", "untold_us", "now_us", "seq", "number", "place", "second")
_HEAD = pa.schema([("at_us", pa.int64()), ("change", pa.string())])
_LINES = pa.schema([("broker", pa.string()), ("is_open", pa.bool_()), ("head", pa.string()), ("kept", pa.binary())])
_SHARDS = pa.schema(
    [
        *(("broker", pa.string()), ("number", pa.int32()), ("awaits", pa.bool_())),
        *(("kept", pa.binary()), ("blocks", pa.binary())),
    ]
)


@dataclass(frozen=True)
class StoredLine:
    """A line as bytes. is_open: whether rows wait in it, or a second is not told of."""

    is_open: bool
    head: str
    kept: bytes


@dataclass(frozen=True)
class StoredShard:
    """A shard as bytes. awaits: whether it needs a horizon; kept: ITEMS that came since, block by block."""

    awaits: bool
    kept: bytes
    blocks: bytes

    def with_items(self, items: pa.Table) -> "StoredShard":
        """The shard with more that waits."""
        return StoredShard(self.awaits, self.kept + encode_all([items]), self.blocks)


@dataclass
class SlotState:
    """The state behind one key, and changes of conf files in the order of their times."""

    changes: list[Change] = field(default_factory=list)
    lines: dict[str, StoredLine] = field(default_factory=dict)
    shards: dict[tuple[str, int], StoredShard] = field(default_factory=dict)


def encode_line(state: LineState) -> StoredLine:
    """The line as bytes; `decode_line` gives one back that behaves as it."""
    head = {name: getattr(state, name) for name in _PLAIN}
    head |= {"settings": state.settings.values(), "refused": state.refused}
    head["round"] = [state.round.rows, state.round.size_bytes, state.round.last_us]
    is_open = len(state.kept) > 0 or state.untold_us != LineState.untold_us
    return StoredLine(is_open, json.dumps(head), encode_all([state.kept]))


def decode_line(name: str, stored: StoredLine) -> LineState:
    """The line that was encoded, of the broker of that name."""
    head = json.loads(stored.head)
    (kept,) = decode_all(stored.kept)
    line = LineState(name, CacheSettings.of(head.pop("settings")), kept=kept)
    line.refused, line.round = Counter(head.pop("refused")), Round(*head.pop("round"))
    for field_, value in head.items():
        setattr(line, field_, value)
    return line


def encode_shard(state: ShardState) -> StoredShard:
    """The shard as bytes; `decode_shard` gives one back that behaves as it."""
    second = state.second
    opened = None if second is None else [second.number, second.before, sorted(second.topics)]
    head = pa.table({"head": [json.dumps({"awaits": state.awaits, "met": asdict(state.met), "second": opened})]})
    kept = encode_all([state.kept]) if len(state.kept) else b""
    return StoredShard(state.awaits is not None, kept, encode_all([head, *tables_of(state.cache)]))


def decode_shard(broker: str, number: int, stored: StoredShard) -> ShardState:
    """The shard that was encoded, of that broker and number."""
    tables = decode_all(stored.blocks)
    head = json.loads(next(tables)["head"][0].as_py())
    return ShardState(
        broker,
        number,
        shard_from(tables),
        awaits=None if head["awaits"] is None else (head["awaits"][0], head["awaits"][1]),
        met=Met(**head["met"]),
        second=None if head["second"] is None else OpenSecond.of(*head["second"]),
        kept=pa.concat_tables([ITEMS.empty_table(), *decode_all(stored.kept)]),
    )


def encode_state(state: SlotState) -> bytes:
    """The state as blocks; `decode_state` gives an equal one back."""
    changes = [{"at_us": change.at_us, "change": json.dumps(change.values)} for change in state.changes]
    lines = [{"broker": broker, **vars(stored)} for broker, stored in state.lines.items()]
    return encode_all(
        [
            pa.Table.from_pylist(changes, _HEAD),
            pa.Table.from_pylist(lines, _LINES),
            pa.Table.from_pylist(list(_shard_rows(state)), _SHARDS),
        ]
    )


def _shard_rows(state: SlotState) -> Iterator[dict[str, Any]]:
    for (broker, number), stored in state.shards.items():
        yield {"broker": broker, "number": number, **vars(stored)}


def is_of_shards(blocks: bytes) -> bool:
    """Whether a state value is of this job in mode horizon, whatever its version."""
    names: list[str] = next(decode_all(blocks)).column_names
    return names == list(map(str, _HEAD.names))


def decode_state(version: int, blocks: bytes) -> SlotState:
    """The state that was encoded. Raises StateError for another version."""
    if version != VERSION:
        raise StateError(
            f"the checkpoint's state has version {version}, this headgate reads version {VERSION}: start with a new "
            "--checkpoint and --output, or go back to the headgate that wrote it"
        )
    changes, lines, shards = decode_all(blocks)
    return SlotState(
        [Change(row["at_us"], json.loads(row["change"])) for row in changes.to_pylist()],
        {row.pop("broker"): StoredLine(**row) for row in lines.to_pylist()},
        {(row.pop("broker"), row.pop("number")): StoredShard(**row) for row in shards.to_pylist()},
    )
