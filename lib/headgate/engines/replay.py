"""A replay in this process and a few beside it, without Spark: for traces that fit into memory."""

from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.blocks import decode, encode
from headgate.conf import InputSettings
from headgate.engines.processes import outcomes
from headgate.engines.sizes import here
from headgate.replay.asked import ReplayJob
from headgate.replay.job import BrokerRows, Heard, Replayed, write_replay
from headgate.replay.plan import Plan
from headgate.replay.run import Trace
from headgate.replay.stream import KEYED, ROUTED, replay, route
from headgate.rows.files import input_files, whole_files
from headgate.rows.kinds import INPUT
from headgate.rows.traffic import parse_traffic
from headgate.throttle.key_operator import form_of
from headgate.throttle.schemas import EVENTS

_SORTED = [("key", "ascending"), ("event_time_us", "ascending")]


def run_replay(job: ReplayJob, plans: Sequence[Plan], settings: InputSettings, heard: Heard) -> Replayed:
    """As `replay.job.write_replay`. settings: how the input is read, for all plans.

    Raises InputError for an input that cannot be read, or that is too large for one machine's memory, too.
    """
    with here(job.input, job.format, "jobs/replay.py") as path:
        files = input_files(path, job.format, job.input)
        parsed, lost = whole_files(files, job.format, INPUT, partial(parse_traffic, settings=settings))
    rows = pa.Table.from_batches(list(route(plans, parsed)), ROUTED)
    return write_replay(job, plans, _LocalRouted(rows, lost), heard)


class _Key(NamedTuple):
    """A key under one plan, by its number. rows: of KEYED, in the order of time, as a block."""

    conf: int
    rows: bytes


class _LocalRouted:
    """Routed rows in memory (replay.job.Routed)."""

    def __init__(self, rows: pa.Table, lost: pa.Table) -> None:
        self._rows, self.lost = rows, lost

    def counted(self) -> Iterator[BrokerRows]:
        is_other = pc.equal(pc.list_value_length(self._rows["keys"]), 0)
        places = pa.table({**{name: self._rows[name] for name in ("broker", "event_time_us")}, "kind": is_other})
        wanted = [("event_time_us", "min"), ("event_time_us", "max"), ([], "count_all")]
        found = places.group_by(["broker", "kind"]).aggregate(wanted)
        names = ("broker", "kind", "event_time_us_min", "event_time_us_max", "count_all")
        return map(BrokerRows._make, zip(*(found[name].to_pylist() for name in names), strict=True))

    def letters(self) -> Iterator[str]:
        return iter(self._rows["letter"].drop_null().to_pylist())

    def results(self, plans: Sequence[Plan], trace: Trace) -> Iterator[tuple[int, str, pa.Table]]:
        """A process takes a key at a time, those with most rows first."""
        keys = sorted((key for conf in range(len(plans)) for key in self._keys(conf)), key=lambda key: -len(key.rows))
        for number, blocks in outcomes(partial(_replayed, plans, trace), keys):
            for kind, block in blocks:
                yield keys[number].conf, kind, decode(block)

    @cached_property
    def _publishes(self) -> pa.Table:
        return self._rows.filter(pc.greater(pc.list_value_length(self._rows["keys"]), 0)).combine_chunks()

    def _keys(self, conf: int) -> Iterator[_Key]:
        """The keys of a plan."""
        columns = {name: self._publishes[name] for name in EVENTS.names}
        columns["conf"] = pa.repeat(pa.scalar(conf, pa.int32()), len(self._publishes))
        columns["key"] = pc.list_element(self._publishes["keys"], conf)
        rows = pa.table([columns[name] for name in KEYED.names], schema=KEYED).sort_by(_SORTED)
        for key in pc.unique(rows["key"]):
            yield _Key(conf, encode(rows.filter(pc.equal(rows["key"], key))))


def _replayed(plans: Sequence[Plan], trace: Trace, key: _Key) -> list[tuple[str, bytes]]:
    """In a process of its own: one key through the rules, kinds and blocks of what comes out."""
    out = replay(plans, trace, form_of, decode(key.rows).combine_chunks().to_batches())
    return [(kind, block) for batch in out for _, kind, block in zip(*batch.to_pydict().values(), strict=True)]
