"""Array form of quota allocation: max_min and the step of an epoch over many cells (resource-groups 8.2, 9.2, 13.5).

The readable forms are `max_min` of `headgate.core.quota.allocation.share_out` and `step` of
`headgate.core.quota.evaluation.step`; tests hold them equal to the unit. One flat column a property in the order of
cells, and the offsets of cells: cell c has the rows offsets[c] to offsets[c + 1]. Columns are int64 or bool; -1 stands
for None (quota and limit: not limited, demand: unbounded), and nothing turns it into 0.

With at most 1000 rows a cell, weights to 1000 and rates to 2^53 - 1 every sum and every product of a rate and a weight
fits 64 bits; a product of two rates is taken in 128.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy import int64, uint64
from numpy.typing import NDArray

from headgate.core.kernels.compiled import kernel
from headgate.core.kernels.int128 import multiply_divide
from headgate.core.quota.allocation.allocation import Profile
from headgate.core.quota.evaluation.step_parameters import Mode, Reason, StepParameters
from headgate.core.quota.rates import BROKERS_MAX, RATE_MAX, WEIGHT_MAX
from headgate.errors import InvalidArgument

Column = NDArray[np.int64]
Flags = NDArray[np.bool_]

NONE = -1
# A reason column holds indexes of this tuple.
REASONS = (
    Reason.UNSET,
    Reason.BLOCKED,
    Reason.TARGET,
    Reason.GATED,
    Reason.DEAD_BAND,
    Reason.FENCED,
    Reason.FLOOR,
)
_UNSET, _BLOCKED, _TARGET, _GATED, _DEAD_BAND, _FENCED, _FLOOR = range(7)


@dataclass(frozen=True, slots=True)
class Cells:
    """The rows of M of many cells, by cell and there by ascending broker id.

    quotas: of each cell. offsets: one more than cells, from 0 to the number of rows.
    ids, weights (1 to 1000), demands: of each row. Raises InvalidArgument for anything else.
    """

    quotas: Column
    offsets: Column
    ids: Column
    weights: Column
    demands: Column

    def __post_init__(self) -> None:
        rows = self.ids.size
        sizes = np.diff(self.offsets)
        _require(self.offsets.size == self.quotas.size + 1, "offsets: allowed is one more than quotas")
        _require(self.offsets[0] == 0 and self.offsets[-1] == rows, "offsets: allowed is from 0 to the number of rows")
        _require(sizes.min(initial=0) >= 0, "offsets: allowed are ascending ones")
        _require(sizes.max(initial=0) <= BROKERS_MAX, f"offsets: allowed are up to {BROKERS_MAX} rows a cell")
        _require(self.weights.size == rows and self.demands.size == rows, "columns: allowed is one value a row")
        _require(_within(self.weights, 1, WEIGHT_MAX), f"weights: allowed are 1 to {WEIGHT_MAX}")
        _require(self.quotas.min(initial=0) >= NONE, "quotas: allowed are -1 for None, 0 and above")
        _require(self.demands.min(initial=0) >= NONE, "demands: allowed are -1 for unbounded, 0 and above")
        first_rows = np.zeros(rows + 1, np.bool_)
        first_rows[self.offsets] = True
        _require(
            bool((first_rows[1:rows] | (np.diff(self.ids) > 0)).all()), "ids: allowed are ascending ones in a cell"
        )


@dataclass(frozen=True, slots=True)
class Reports:
    """What the view says of each row of `Cells`, beside demand, and where the broker stands.

    limits: in the row at e. idle_before: the row is idle and older than e. silent, missing: of the row's broker.
    present: the broker's limit now. Limits are -1 for None, 0 to RATE_MAX.
    """

    limits: Column
    idle_before: Flags
    silent: Flags
    missing: Flags
    present: Column


@dataclass(frozen=True, slots=True)
class Cluster:
    """C, the same for all cells: how many members, their weight, how many are silent and missing as of e."""

    members: int
    total_weight: int
    silent: int
    missing: int
    raises_gated: bool = False


@dataclass(frozen=True, slots=True)
class Steps:
    """Of each row: limit, target and safe share, -1 for None, and the index of the reason in REASONS."""

    limits: Column
    targets: Column
    safe_shares: Column
    reasons: NDArray[np.int8]


def max_min_many(cells: Cells, *, headroom: bool = True) -> Column:
    """The target of every row, as `share_out.max_min` gives it for its cell; -1 where the quota is None."""
    targets = np.empty(cells.ids.size, np.int64)
    _max_min_cells(_capped(cells.quotas), cells.offsets, cells.demands, cells.weights, headroom, targets)
    return targets


def step_many(parameters: StepParameters, cells: Cells, reports: Reports, cluster: Cluster) -> Steps:
    """The step of every row, as `step.step` gives it for profile max_min and a broker of M.

    Members outside M enter by the rule for them, which needs no array. Raises InvalidArgument for another profile, for
    columns of other lengths and limits outside -1 to RATE_MAX. Source: resource-groups 9.2.
    """
    _require(parameters.profile is Profile.MAX_MIN, f"profile: got {parameters.profile}, allowed is max_min")
    rows = cells.ids.size
    columns = (reports.limits, reports.idle_before, reports.silent, reports.missing, reports.present)
    _require(all(column.size == rows for column in columns), "reports: allowed is one value a row")
    for limits in (reports.limits, reports.present):
        _require(_within(limits, NONE, RATE_MAX), f"limits: allowed are -1 for None, 0 to {RATE_MAX}")
    _require(cluster.total_weight > 0 or rows == 0, "total_weight: allowed is 1 and above")
    made = Steps(np.empty(rows, np.int64), np.empty(rows, np.int64), np.empty(rows, np.int64), np.empty(rows, np.int8))
    percents = (
        parameters.overshoot_percent,
        parameters.floor_percent,
        parameters.missing_claim_percent,
        parameters.dead_band_percent,
    )
    raises_gated = cluster.raises_gated or parameters.mode is Mode.STRICT
    fenced = 2 * (cluster.members - cluster.silent) < cluster.members
    _step_cells(
        percents,
        (raises_gated, fenced, cluster.missing, cluster.total_weight),
        (_capped(cells.quotas), cells.offsets, cells.weights, cells.demands),
        columns,
        (made.limits, made.targets, made.safe_shares, made.reasons),
    )
    return made


@kernel
def _spread(
    amount: int64, start: int64, stop: int64, weights: Any, unmet: Any, total: int64, rest: Any, out: Any
) -> None:
    """Add share_out(amount) over the unmet rows of a cell to `out` (8.1); `total` is their weight, `rest` is scratch.

    The left-over units go to the remainders above the highest level that as many rows reach, then to those at it in
    the order of ids.
    """
    left_over = amount
    for row in range(start, stop):
        rest[row - start] = -1
        if unmet[row - start]:
            product = amount * weights[row]
            share = product // total
            rest[row - start] = product - share * total
            out[row] += share
            left_over -= share
    if left_over == 0:
        return
    level, beyond = int64(0), total
    while beyond - level > 1:
        middle = (level + beyond) // 2
        reached = 0
        for row in range(start, stop):
            reached += rest[row - start] >= middle
        if reached >= left_over:
            level = middle
        else:
            beyond = middle
    for row in range(start, stop):
        if rest[row - start] > level:
            out[row] += 1
            left_over -= 1
    for row in range(start, stop):
        if left_over > 0 and rest[row - start] == level:
            out[row] += 1
            left_over -= 1


@kernel
def _fill(
    quota: int64, start: int64, stop: int64, weights: Any, headroom: Any, unmet: Any, rest: Any, out: Any
) -> None:
    """Turn the demands of a cell in `out`, none above the quota, into its targets (8.2)."""
    demand, weight = int64(0), int64(0)
    for row in range(start, stop):
        unmet[row - start] = True
        demand += out[row]
        weight += weights[row]
    if demand <= quota:
        if headroom:
            _spread(quota - demand, start, stop, weights, unmet, weight, rest, out)
        return
    remaining, met = quota, True
    while met:
        met, demand_met, weight_met = False, int64(0), int64(0)
        for row in range(start, stop):
            if unmet[row - start] and out[row] <= remaining * weights[row] // weight:
                unmet[row - start] = False
                met = True
                demand_met += out[row]
                weight_met += weights[row]
        remaining -= demand_met
        weight -= weight_met
    for row in range(start, stop):
        if unmet[row - start]:
            out[row] = 0
    _spread(remaining, start, stop, weights, unmet, weight, rest, out)


@kernel
def _largest(offsets: Any) -> int64:
    most = int64(0)
    for cell in range(offsets.size - 1):
        most = max(most, offsets[cell + 1] - offsets[cell])
    return most


@kernel
def _max_min_cells(quotas: Any, offsets: Any, demands: Any, weights: Any, headroom: Any, out: Any) -> None:
    most = _largest(offsets)
    unmet, rest = np.empty(most, np.bool_), np.empty(most, np.int64)
    for cell in range(quotas.size):
        start, stop, quota = offsets[cell], offsets[cell + 1], quotas[cell]
        for row in range(start, stop):
            out[row] = quota if demands[row] < 0 or quota < 0 else min(demands[row], quota)
        if quota >= 0 and start < stop:
            _fill(quota, start, stop, weights, headroom, unmet, rest, out)


@kernel
def _step_cells(percents: Any, cluster: Any, cells: Any, reports: Any, made: Any) -> None:
    """The step of every row; arguments are the fields of `step_many`'s in their order."""
    quotas, offsets, weights, demands = cells
    limits, idle_before, silent, _, _ = reports
    out, targets, safe, reasons = made
    most = _largest(offsets)
    unmet, rest, reported = np.empty(most, np.bool_), np.empty(most, np.int64), np.empty(most, np.int64)
    for cell in range(quotas.size):
        start, stop, quota = offsets[cell], offsets[cell + 1], quotas[cell]
        for row in range(start, stop):
            out[row] = targets[row] = safe[row] = min(quota, int64(0))
            reasons[row] = _UNSET if quota < 0 else _BLOCKED
            unmet[row - start] = True
        if quota <= 0 or start == stop:
            continue
        _spread(quota, start, stop, weights, unmet, weights[start:stop].sum(), rest, safe)
        for row in range(start, stop):
            demand = safe[row] if silent[row] else demands[row]
            targets[row] = quota if demand < 0 else min(demand, quota)
        _fill(quota, start, stop, weights, True, unmet, rest, targets)
        for row in range(start, stop):
            shown = targets[row] if limits[row] < 0 else limits[row]
            if idle_before[row]:
                shown = max(shown, targets[row])
            reported[row - start] = safe[row] if silent[row] else shown
        for row in range(start, stop):
            _bound(row, start, stop, quota, percents, cluster, weights, reports, reported, made)


@kernel
def _bound(
    row: int64,
    start: int64,
    stop: int64,
    quota: int64,
    percents: Any,
    cluster: Any,
    weights: Any,
    reports: Any,
    reported: Any,
    made: Any,
) -> None:
    """Target or gate, then dead band, fence and floor of one row (9.2)."""
    overshoot_percent, floor_percent, missing_claim_percent, dead_band_percent = percents
    raises_gated, fenced, missing_members, total_weight = cluster
    missing, present = reports[3], reports[4][row]
    out, targets, safe, reasons = made
    target = targets[row]
    complete = missing_members - missing[row] == 0
    limit, reason = target, _TARGET
    if 0 <= present < target and (raises_gated or not complete):
        free = quota * (100 + overshoot_percent) // 100
        limit = _gated(row, start, stop, free, missing_claim_percent, missing, targets, reported)
        reason = _GATED
    if present >= 0 and limit > present and (limit - present) * 100 < dead_band_percent * safe[row]:
        limit, reason = present, _DEAD_BAND
    if fenced and safe[row] < limit:
        limit, reason = safe[row], _FENCED
    floor = quota * weights[row] // total_weight * floor_percent // 100
    if limit < floor:
        limit, reason = floor, _FLOOR
    out[row] = limit
    reasons[row] = reason


@kernel
def _gated(
    row: int64, start: int64, stop: int64, free: int64, percent: int64, missing: Any, targets: Any, reported: Any
) -> int64:
    """The reported limit and a part of what `free`, the quota with its overshoot, leaves beside all of them (9.2)."""
    own = max(int64(0), targets[row] - reported[row - start])
    assumed, claimed = own * percent // 100, int64(0)
    for other in range(start, stop):
        claim = max(int64(0), targets[other] - reported[other - start])
        if missing[other] and other != row:
            claim = max(claim, assumed)
        claimed += claim
        free -= reported[other - start]
    free = max(int64(0), free)
    grant = own
    if claimed > free:
        quotient, _ = multiply_divide(uint64(own), uint64(free), uint64(claimed))
        grant = int64(quotient)
    return reported[row - start] + grant


def _capped(rates: Column) -> Column:
    return np.minimum(rates, RATE_MAX)


def _within(column: Column, least: int, most: int) -> bool:
    return column.size == 0 or bool(column.min() >= least and column.max() <= most)


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise InvalidArgument(otherwise)
