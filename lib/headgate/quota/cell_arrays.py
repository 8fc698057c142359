"""Many cells of a usage map as arrays, stepped at once: profile max_min, dimensions not coupled (resource-groups 13.5).

The readable form is a view (`MembersInView.view`) and `step`; tests hold both equal, outcome by outcome.
"""

from collections.abc import Collection, Iterable, Mapping
from functools import cache
from typing import NamedTuple

import numpy as np

from headgate.core.kernels.quota_allocation import NONE, REASONS, Cells, Cluster, Reports, Steps, step_many
from headgate.core.quota.evaluation.assessment import is_silent
from headgate.core.quota.evaluation.cell_view import demand_of
from headgate.core.quota.evaluation.step_parameters import CellLimit, Reason, StepParameters
from headgate.core.quota.evaluation.view import active_row
from headgate.core.quota.groups import Dimension, RatePair, UsageKey
from headgate.core.quota.rates import capped
from headgate.core.quota.usage.broker_usage import BrokerUsage
from headgate.core.quota.usage.usage_history import AcceptedRow
from headgate.quota.limit_book import NEVER_LIMITED, Cell, Decided, LimitBook
from headgate.quota.members_in_view import MembersInView

_INDEX: Mapping[Reason, int] = {reason: index for index, reason in enumerate(REASONS)}
_ANOTHER_REASON = -1


class ActiveRow(NamedTuple):
    """A member of M, and its row; or one that is awaited, without any."""

    broker_id: int
    broker: BrokerUsage
    row: AcceptedRow | None
    idle: bool
    silent: bool


class ActiveRows(NamedTuple):
    """M of a group and class and who is awaited, by id; how many of C are silent for it; the age of the oldest report.

    members: M alone.
    """

    rows: list[ActiveRow]
    members: frozenset[int]
    silent: int
    report_age: int


NOBODY = ActiveRows([], frozenset(), 0, 0)


def active_rows(in_view: MembersInView, key: UsageKey, silent_rounds: int) -> ActiveRows:
    """M as of the epoch of the members in view, and who is awaited. Source: resource-groups 7.3, 9.2."""
    epoch, linger_rounds = in_view.epoch, in_view.usage_map.parameters.linger_rounds
    ages = {id_: epoch - broker.newest_covered(key, epoch) for id_, broker in in_view.members if id_ in in_view.behind}
    silent = {id_ for id_, age in ages.items() if is_silent(age, silent_rounds)}
    rows = []
    for id_, broker in in_view.members:
        entry = active_row(broker, key, epoch, linger_rounds)
        if entry is not None:
            rows.append(ActiveRow(id_, broker, entry.row, entry.row.usage.idle, id_ in silent))
        elif id_ in in_view.unheard and broker.as_of(key, epoch) is None:
            rows.append(ActiveRow(id_, broker, None, idle=False, silent=False))
    members = frozenset(row.broker_id for row in rows if row.row is not None)
    return ActiveRows(rows, members, len(silent), max((0, *ages.values())))


class CellArrays:
    """Cells put in one by one and stepped together. Cells of which as many members are silent share arrays.

    own: the brokers whose outcomes are wanted.
    """

    def __init__(
        self, parameters: StepParameters, in_view: MembersInView, own: Collection[int], book: LimitBook
    ) -> None:
        self._parameters = parameters
        self._in_view = in_view
        self._own = own
        self._book = book
        self._cluster_shares = cache(in_view.cluster_shares)
        self._by_silent: dict[int, _Columns] = {}

    def put(self, key: UsageKey, quotas: RatePair, active: ActiveRows) -> None:
        """Both cells of a group and class, those whose quota is neither None nor 0. M is not empty."""
        columns = self._by_silent.setdefault(active.silent, _Columns(self._own, self._book))
        for dimension in Dimension:
            quota = quotas[dimension]
            if quota:
                cell = (*key, int(dimension))
                shares = self._cluster_shares(capped(quota)) if len(active.members) < len(active.rows) else {}
                columns.put(cell, quota, active, self._in_view.epoch, shares)

    def decided(self) -> Iterable[Decided]:
        """The outcomes of own brokers that differ, in limit or reason, from what the book holds."""
        for silent, columns in self._by_silent.items():
            cluster = Cluster(
                self._in_view.size(),
                self._in_view.total_weight(),
                silent,
                len(self._in_view.missing),
                self._in_view.raises_gated,
            )
            steps = step_many(self._parameters, *columns.arrays(self._in_view.missing), cluster)
            yield from columns.changed(steps, cluster)


class _Columns:
    """Rows of cells, column by column, in the order in which cells are put in."""

    def __init__(self, own: Collection[int], book: LimitBook) -> None:
        self._own_ids = own
        self._book = book
        self._cells: list[Cell] = []
        self._ages: list[int] = []
        self._quotas: list[int] = []
        self._offsets: list[int] = [0]
        self._ids: list[int] = []
        self._weights: list[int] = []
        self._demands: list[int] = []
        self._limits: list[int] = []
        self._idle_before: list[bool] = []
        self._silent: list[bool] = []
        self._present: list[int] = []
        self._reasons: list[int] = []
        self._own: list[bool] = []

    def put(self, cell: Cell, quota: int, active: ActiveRows, epoch: int, cluster_shares: Mapping[int, int]) -> None:
        """cluster_shares: of who is awaited, by id: it counts as wanting, and having, just that."""
        dimension, known = cell[2], self._book.of(cell)
        self._cells.append(cell)
        self._ages.append(active.report_age)
        self._quotas.append(quota)
        rows = active.rows
        ids = [row.broker_id for row in rows]
        present = [known.get(id_, NEVER_LIMITED) for id_ in ids]
        self._ids += ids
        self._weights += [row.broker.weight for row in rows]
        for id_, _, row, idle, _ in rows:
            if row is None:
                demand, limit = cluster_shares[id_], cluster_shares[id_]
            else:
                usage = row.usage
                demand = _of_none(
                    demand_of(
                        idle=idle,
                        admitted=usage.admitted[dimension],
                        offered=usage.offered[dimension],
                        throttled=usage.throttled[dimension],
                    )
                )
                limit = _of_none(usage.limit[dimension])
            self._demands.append(demand)
            self._limits.append(limit)
            self._idle_before.append(idle and row is not None and row.epoch < epoch)
        self._silent += [row.silent for row in rows]
        self._present += [_of_none(limit) for limit, _ in present]
        self._reasons += [_INDEX.get(reason, _ANOTHER_REASON) for _, reason in present]
        self._own += [id_ in self._own_ids and id_ in active.members for id_ in ids]
        self._offsets.append(len(self._ids))

    def arrays(self, missing: Collection[int]) -> tuple[Cells, Reports]:
        def column(values: list[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
            return np.array(values, np.int64)

        def flags(values: list[bool]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
            return np.array(values, np.bool_)

        cells = Cells(*map(column, (self._quotas, self._offsets, self._ids, self._weights, self._demands)))
        return cells, Reports(
            column(self._limits),
            flags(self._idle_before),
            flags(self._silent),
            flags([id_ in missing for id_ in self._ids]) if missing else np.zeros(len(self._ids), np.bool_),
            column(self._present),
        )

    def changed(self, steps: Steps, cluster: Cluster) -> Iterable[Decided]:
        differs = (steps.limits != np.array(self._present, np.int64)) | (steps.reasons != np.array(self._reasons))
        rows = np.flatnonzero(differs & np.array(self._own, np.bool_))
        cells = np.searchsorted(np.array(self._offsets), rows, side="right") - 1
        of_rows = (column[rows].tolist() for column in (steps.limits, steps.targets, steps.safe_shares, steps.reasons))
        for row, cell, limit, target, safe, reason in zip(rows.tolist(), cells.tolist(), *of_rows, strict=True):
            demand = safe if self._silent[row] else _to_none(self._demands[row])
            counts = (cluster.missing, cluster.silent, self._ages[cell])
            outcome = CellLimit(limit, target, safe, demand, *counts, REASONS[reason])
            yield Decided(self._ids[row], self._cells[cell], outcome)


def _of_none(rate: int | None) -> int:
    return NONE if rate is None else rate


def _to_none(rate: int) -> int | None:
    return None if rate == NONE else rate


@cache
def warm_up() -> None:
    """Compile the kernel of shared quotas, or load it from disk, before the first evaluation needs it."""
    numbers, flags = np.ones(1, np.int64), np.zeros(1, np.bool_)
    cells = Cells(numbers, np.array([0, 1], np.int64), numbers, numbers, numbers)
    step_many(StepParameters(), cells, Reports(numbers, flags, flags, flags, numbers), Cluster(1, 1, 0, 0))
