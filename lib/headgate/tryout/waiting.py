"""How long the publishes of a trace wait under a conf: the rules run over them, as offered traffic."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.schemas import DEAD_LETTERS
from headgate.conf import Conf, LimitRow, ResourceGroups
from headgate.engines.local_throttle import LocalThrottle
from headgate.engines.tables import SummedTables
from headgate.replay.delays import Delays, TimedForm
from headgate.rows.kinds import PUBLISH
from headgate.rows.traffic import Parsed
from headgate.tables.sums import Sums
from headgate.throttle.ordering import order
from headgate.throttle.state import DomainState
from headgate.tryout.batches import MOST_AT_ONCE, MOST_KEPT, Trace, shares_quotas
from headgate.tryout.bound import Bound

_MS_NS = 1_000_000
_ADMITTED = Sums("topic_usage", ("topic",), ("publishes", "admitted_publishes"))
_COLUMNS = ("event_time_us", "seq", "broker", "kind", "topic", "producer", "connection", "messages", "bytes")
_AMOUNTS = ("publishes", "messages", "bytes")
_SUMMED = pa.schema([("topic", pa.string()), *((name, pa.int64()) for name in ("second", *_AMOUNTS))])


@dataclass(frozen=True)
class Waited:
    """Publishes, those that waited longer than the bound's time, those of them that failed, and the longest wait."""

    publishes: int = 0
    slow: int = 0
    failed: int = 0
    longest_ns: int = 0

    def keeps(self, bound: Bound) -> bool:
        """Whether the bound is kept."""
        return not self.failed and self.slow * 100 <= bound.most_percent * self.publishes

    def is_worse_than(self, other: "Waited") -> bool:
        """Whether more publishes fail or are slow."""
        return self.failed > other.failed or self.slow > other.slow

    def __add__(self, other: "Waited") -> "Waited":
        counts = (self.publishes + other.publishes, self.slow + other.slow, self.failed + other.failed)
        return Waited(*counts, max(self.longest_ns, other.longest_ns))

    @property
    def slow_percent(self) -> float:
        """The share of the slow ones."""
        return 100 * self.slow / max(self.publishes, 1)


class Switch(NamedTuple):
    """Another limit from event time `at_us` on, while the trace runs.

    groups: how all groups stand from the end of the batch that reaches that time, where brokers share quotas.
    """

    at_us: int
    limits: tuple[LimitRow, ...] = ()
    groups: ResourceGroups | None = None


class Publishes:
    """The publishes of a trace, in batches as `Trace` cuts them for `conf`; every call of `batches` gives the same.

    They stand in the order in which they act, each with a `seq` of its own that grows (TimedForm). Rows of other
    kinds are left out. rows: how many there are, once they were read.
    """

    def __init__(self, trace: Trace, conf: Conf) -> None:
        self._trace, self._conf = trace, conf
        self._kept: list[pa.Table] | None = None
        self.rows = 0

    def batches(self, *, whole: bool) -> Iterator[pa.Table]:
        """whole: as they are cut; else whatever is quick, for limits that do not depend on it."""
        return self._read() if whole else _together(self._read())

    def by_second(self) -> pa.Table:
        """What was published, by topic and second."""
        parts = [_SUMMED.empty_table(), *(_by_second(rows) for rows in self._read() if len(rows))]
        return _summed(pa.concat_tables(parts))

    def _read(self) -> Iterator[pa.Table]:
        if self._kept is not None:
            yield from self._kept
            return
        kept: list[pa.Table] = []
        rows = 0
        for batch in self._trace.batches(self._conf):
            publishes = _publishes(batch, rows)
            rows += len(publishes)
            if rows <= MOST_KEPT:
                kept.append(publishes)
            yield publishes
        self.rows = rows
        if rows <= MOST_KEPT:
            self._kept = kept


def _publishes(batch: Iterable[Parsed], before: int) -> pa.Table:
    """before: how many came before them."""
    parts = [parsed.rows for parsed in batch if "producer" in parsed.rows.column_names]
    if not parts:
        return pa.table({"event_time_us": pa.array([], pa.int64())})
    rows = pa.concat_tables(part.filter(pc.equal(part["kind"], PUBLISH.name)).select(_COLUMNS) for part in parts)
    rows = rows.take(pa.array(order(rows))).combine_chunks()
    return rows.set_column(1, "seq", pa.array(np.arange(before, before + len(rows))))


def _together(batches: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Few large batches."""
    waiting: list[pa.Table] = []
    rows = 0
    for batch in batches:
        if rows + len(batch) > MOST_AT_ONCE and waiting:
            yield pa.concat_tables(waiting)
            waiting, rows = [], 0
        if len(batch):
            waiting.append(batch)
            rows += len(batch)
    if waiting:
        yield pa.concat_tables(waiting)


def _by_second(rows: pa.Table) -> pa.Table:
    seconds = pc.divide(rows["event_time_us"], 1_000_000)
    ones = pa.array(np.ones(len(rows), np.int64))
    columns = {"topic": rows["topic"], "second": seconds, "publishes": ones}
    return _summed(pa.table(columns | {name: rows[name] for name in ("messages", "bytes")}))


def _summed(rows: pa.Table) -> pa.Table:
    by = ["topic", "second"]
    sums = rows.group_by(by, use_threads=False).aggregate([(name, "sum") for name in _AMOUNTS])
    return sums.rename_columns([*by, *_AMOUNTS]).select(_SUMMED.names).cast(_SUMMED)


def waits(conf: Conf, publishes: Publishes, bound: Bound, switches: Iterable[Switch] = ()) -> dict[str, Waited]:
    """How the publishes of each topic (or partition) wait under a conf, whatever it says of traffic.

    Time goes on after the trace until all are let in or failed. Late rows act as they come (hold_back_ms counts as 0).
    """
    conf = _offered(conf)
    tables, slow = SummedTables([_ADMITTED]), _Slow(bound.wait_ms * _MS_NS)
    local = LocalThrottle(conf, tables, _unheard, around=lambda engine: TimedForm(engine, slow.hear))
    ahead = sorted(switches, key=lambda switch: switch.at_us)
    for switch in ahead:
        if switch.limits:
            local.change(switch.limits, switch.at_us)
    of_groups = [(switch.at_us, switch.groups) for switch in ahead if switch.groups is not None]
    for rows in publishes.batches(whole=shares_quotas(conf)):
        result = local.take([Parsed(rows, DEAD_LETTERS.empty_table())] if len(rows) else [])
        while of_groups and (result.event_time_us or 0) >= of_groups[0][0]:
            local.set_groups(of_groups.pop(0)[1])
    local.end(after_ms=conf.settings.operator.send_timeout_ms + 1)
    found: dict[str, Waited] = {}
    for topic, count, admitted, _ in zip(*tables.totals(_ADMITTED).to_pydict().values(), strict=True):
        late, longest_ns = slow.of(topic)
        failed = count - admitted
        if failed:
            longest_ns = max(longest_ns, conf.settings.operator.send_timeout_ms * _MS_NS)
        found[topic] = Waited(count, late + failed, failed, longest_ns)
    return found


def _unheard(_: object) -> None:
    pass


def by_name(waited: Mapping[str, Waited], name_of: Callable[[str], str]) -> dict[str, Waited]:
    """Those of several topics together, by what `name_of` makes of their names."""
    found: dict[str, Waited] = {}
    for topic, one in waited.items():
        name = name_of(topic)
        found[name] = found.get(name, Waited()) + one
    return found


def _offered(conf: Conf) -> Conf:
    settings = conf.settings
    operator = settings.operator.model_copy(update={"traffic": "offered", "state_key": "auto"})
    input_ = settings.input.model_copy(update={"hold_back_ms": 0})
    return replace(conf, settings=settings.model_copy(update={"operator": operator, "input": input_}))


class _Slow:
    """Counts, of publishes that were let in late, those that waited longer than `wait_ns`."""

    def __init__(self, wait_ns: int) -> None:
        self._wait_ns = wait_ns
        self._found: dict[str, tuple[int, int]] = {}

    def hear(self, domain: DomainState, delays: Delays) -> None:
        """Take the delays of a step in."""
        topics, of_row = np.unique(delays.topic, return_inverse=True)
        late = np.bincount(of_row, weights=delays.delay_ns > self._wait_ns, minlength=len(topics)).astype(np.int64)
        longest = np.zeros(len(topics), np.int64)
        np.maximum.at(longest, of_row, delays.delay_ns)
        for name, count, delay_ns in zip(
            domain.keys.take(pa.array(topics)).to_pylist(), late.tolist(), longest.tolist(), strict=True
        ):
            before = self.of(name)
            self._found[name] = before[0] + count, max(before[1], delay_ns)

    def of(self, topic: str) -> tuple[int, int]:
        """How many, and the longest wait of all."""
        return self._found.get(topic, (0, 0))
