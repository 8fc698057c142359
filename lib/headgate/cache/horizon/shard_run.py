"""What one shard of a broker makes of its part of the line, up to the end of a round: there it waits for the others."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headgate.cache.apply_events import RowsOneByOne, eviction_row
from headgate.cache.events.dead_letters import letters_of
from headgate.cache.horizon.schemas import ITEMS, Mark
from headgate.cache.schemas import EVICTIONS
from headgate.cache.seconds import SECOND_US, opened, told
from headgate.cache.stored.state import OpenSecond
from headgate.core.cache.horizon.keyed_queue import Horizon
from headgate.core.cache.horizon.rounds import BUSY_SHARE
from headgate.core.cache.horizon.shard import Shard
from headgate.core.cache.rows import Removed
from headgate.errors import StateError


@dataclass
class Met:
    """What came of the rounds so far, of all shards but for left_bytes: what this one kept after the last horizon.

    busy_rounds: those that inserted more than BUSY_SHARE of the limit. size_passes: horizons that were applied.
    goal_bytes, limit_bytes: of the last one.
    """

    rounds: int = 0
    busy_rounds: int = 0
    size_passes: int = 0
    inflow_share: float = 0.0
    peak_bytes: int = 0
    overshoot_bytes: int = 0
    goal_bytes: int | None = None
    limit_bytes: int = 0
    left_bytes: int = 0


@dataclass
class ShardState:
    """A shard between batches.

    awaits: the round whose horizon it needs to go on, and the time of that round's last row; None: it can go on.
    kept: ITEMS after that round.
    """

    broker: str
    number: int
    cache: Shard
    awaits: tuple[int, int] | None = None
    met: Met = field(default_factory=Met)
    second: OpenSecond | None = None
    kept: pa.Table = field(default_factory=ITEMS.empty_table)


class ShardRun:
    """All shards of a broker go through the same marks, and wait at the same ones.

    Arguments: `state`, changed in place; `evictions`, whether those are told.
    Attributes: `parts`, `letters`, `reports`, rows of PARTS, DEAD_LETTERS and REPORTS; `evictions`, tables of them.
    """

    def __init__(self, state: ShardState, *, evictions: bool) -> None:
        self._state = state
        self._cache = state.cache
        self.parts: list[dict[str, Any]] = []
        self._are_told = evictions
        self.evictions: list[pa.Table] = []
        self.letters: list[dict[str, Any]] = []
        self.reports: list[dict[str, Any]] = []

    def meet(self, horizon: Mapping[str, Any]) -> None:
        """Free what lies before a row of HORIZONS, and go on. Raises StateError for one of another round."""
        state, met = self._state, self._state.met
        if state.awaits is None or state.awaits[0] != horizon["round"]:
            raise StateError(
                f"shard {state.number} of broker {state.broker} awaits the round {state.awaits}, got the horizon of "
                f"the round {horizon['round']}: start with a new --checkpoint and --output"
            )
        met.rounds += 1
        met.inflow_share = horizon["inserted_bytes"] / max(1, horizon["limit_bytes"])
        met.busy_rounds += met.inflow_share > BUSY_SHARE
        if horizon["used_bytes"] > met.peak_bytes:
            met.peak_bytes = horizon["used_bytes"]
            met.overshoot_bytes = max(0, met.peak_bytes - horizon["limit_bytes"])
        if horizon["goal_bytes"] is not None:
            place = Horizon(horizon["laps"], tuple(horizon["key"]))
            self._note(self._cache.apply(place, state.awaits[1]).removed)
            met.size_passes += 1
            met.goal_bytes, met.limit_bytes = horizon["goal_bytes"], horizon["limit_bytes"]
            met.left_bytes = self._cache.store.limit.current_bytes
        state.awaits = None

    def play(self, items: pa.Table) -> None:
        """Take ITEMS, which come after those that are kept, as far as the round goes."""
        items = pa.concat_tables([self._state.kept, items.sort_by("place")]).combine_chunks()
        played = 0 if self._state.awaits is not None else self._play(items)
        self._state.kept = items.slice(played)

    def _play(self, items: pa.Table) -> int:
        """How many items were taken: those up to the first end of a round."""
        start: int = 0
        at: int
        for at in pc.indices_nonzero(items["mark"].is_valid()).to_pylist():
            self._feed(items.slice(start, at - start))
            start = at + 1
            (item,) = items.slice(at, 1).to_pylist()
            self._pass(item)
            if item["mark"] == Mark.END:
                return start
        self._feed(items.slice(start))
        return len(items)

    def _feed(self, items: pa.Table) -> None:
        """Rows of the open second."""
        if not len(items):
            return
        rows = RowsOneByOne(self._cache, self._state.broker, items, is_told=self._are_told)
        fed = rows.feed(0, len(items))
        self.letters += letters_of(items, rows.row, fed.dead, self._cache.settings)
        self.evictions.append(fed.evictions)
        assert self._state.second is not None  # noqa: S101  a mark opens it
        self._state.second.topics.update(fed.topics)

    def _pass(self, item: Mapping[str, Any]) -> None:
        """A mark."""
        state, at_us, mark = self._state, item["at_us"], Mark(item["mark"])
        values = json.loads(item["values"] or "{}")
        if mark is Mark.OPEN:
            state.second = opened(self._cache, at_us // SECOND_US)
        elif mark is Mark.CHANGE:
            self._note(self._cache.change(values, at_us).removed)
        elif mark is Mark.END:
            self._end(item["round"], at_us, values["rows"])
        else:
            self._note(self._cache.advance(at_us - 1 if mark is Mark.SECOND else at_us).removed)
            self._tell(item["place"], at_us, values["dead_letters"])
            state.second = None if mark is Mark.SECOND else state.second

    def _end(self, number: int, at_us: int, rows: int) -> None:
        state, settings = self._state, self._cache.settings
        self._note(self._cache.advance(at_us).removed)
        report = self._cache.report()
        self.reports.append(
            {
                "broker": state.broker,
                "round": number,
                "shard": state.number,
                "at_us": at_us,
                "rows": rows,
                "current_bytes": report.current_bytes,
                "inserted_bytes": report.inserted_bytes,
                "limit_bytes": settings.max_bytes,
                "watermark": settings.watermark,
                "laps": [line.laps for line in report.lines],
                "keys": [list(line.key) for line in report.lines],
                "sizes": [line.size_bytes for line in report.lines],
            }
        )
        state.awaits = (number, at_us)

    def _tell(self, place: int, until_us: int, refused: Mapping[str, int]) -> None:
        """The broker's row, of what is this shard's, and those of its topics. Shard 0 tells of what no shard has."""
        state, met = self._state, self._state.met
        assert state.second is not None  # noqa: S101  a mark opens it
        of_broker, *of_topics = told(state.broker, self._cache, state.second, until_us)
        letters = Counter(dict(of_broker["dead_letters"])) + Counter(refused if state.number == 0 else {})
        of_all = {
            "dead_letters": sorted(letters.items()),
            "size_passes": met.size_passes,
            "peak_bytes": met.peak_bytes,
            "overshoot_bytes": met.overshoot_bytes,
            "horizon_rounds": met.rounds,
            "horizon_busy_rounds": met.busy_rounds,
            "horizon_inflow_share": met.inflow_share,
            "place": place,
            "shard": state.number,
            "left_bytes": met.left_bytes,
            "goal_bytes": met.goal_bytes,
            "limit_bytes": met.limit_bytes,
        }
        self.parts += [of_broker | of_all, *(row | {"place": place} for row in of_topics)]

    def _note(self, removed: Iterable[Removed]) -> None:
        """Entries left with no row."""
        gone = list(removed)
        if self._are_told and gone:
            rows = [eviction_row(self._state.broker, one, self._cache.now_us, None) for one in gone]
            self.evictions.append(pa.Table.from_pylist(rows, EVICTIONS))
        if self._state.second is not None:
            self._state.second.topics.update(one.topic for one in gone)
