"""How the brokers of a group did: what each was let have, and what the exact max-min split would have given it."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.schemas import GROUP_USAGE, table_of
from headgate.core.quota.allocation.exact_split import exact_split
from headgate.core.quota.groups import Dimension, IntPair, RatePair
from headgate.replay.schemas import GROUP_SHARES
from headgate.replay.sums import summed

_SECOND_MS = 1000
_PLACE = ("second", "group", "broker")
_AMOUNTS = ("admitted_msgs", "admitted_bytes", "offered_msgs", "offered_bytes")


class _Row(NamedTuple):
    second: int
    group: str
    broker: str
    admitted: IntPair
    offered: IntPair


class _Shares:
    """Of one group: amounts by broker and dimension, the worst second, the first and the last with traffic."""

    def __init__(self, first_s: int) -> None:
        self.admitted: dict[str, list[int]] = {}
        self.fair: dict[str, list[float]] = {}
        self.worst = [0, 0]
        self.first_s = self.last_s = first_s


class FairShares:
    """Seconds are judged one after the other, each once, so that sums do not depend on how they came.

    The split of a second is the weighted max-min of what arrived in it (exact_split), all weights alike.
    quotas: of the groups, messages and bytes a second.
    """

    def __init__(self, quotas: Mapping[str, RatePair]) -> None:
        self._quotas = quotas
        self._groups: dict[str, _Shares] = {}
        self._open: pa.Table = _by_second(GROUP_USAGE.empty_table())

    def take(self, usage: pa.Table, until_s: int | None) -> None:
        """Count rows of GROUP_USAGE and judge the seconds before `until_s`, all without one."""
        if len(usage):
            merged = pa.concat_tables([self._open, _by_second(usage)])
            self._open = summed(merged, _PLACE, _AMOUNTS)
        over = self._open
        if until_s is not None:
            is_over = pc.less(self._open["second"], until_s)
            over, self._open = self._open.filter(is_over), self._open.filter(pc.invert(is_over))
        else:
            self._open = self._open.slice(0, 0)
        rows = over.sort_by([("second", "ascending"), ("group", "ascending"), ("broker", "ascending")])
        for (_, group), of_second in groupby(_plain(rows), key=lambda row: (row.second, row.group)):
            self._judge(group, of_second)

    def rows(self) -> pa.Table:
        """Rows of GROUP_SHARES."""
        rows = [
            (
                *(group, broker, *shares.admitted[broker], *shares.fair[broker], *shares.worst),
                shares.last_s - shares.first_s + 1,
            )
            for group, shares in sorted(self._groups.items())
            for broker in sorted(shares.admitted)
        ]
        return table_of(rows, GROUP_SHARES)

    def _judge(self, group: str, of_second: Iterable[_Row]) -> None:
        rows = list(of_second)
        if group not in self._groups:
            self._groups[group] = _Shares(rows[0].second)
        shares = self._groups[group]
        shares.last_s = rows[0].second
        quotas = self._quotas.get(group, (None, None))
        for dimension in Dimension:
            admitted = [row.admitted[dimension] for row in rows]
            offered = [row.offered[dimension] for row in rows]
            split = exact_split(quotas[dimension], offered, [1] * len(rows), [True] * len(rows))
            shares.worst[dimension] = max(shares.worst[dimension], sum(admitted))
            for row, amount, part in zip(rows, admitted, split.parts, strict=True):
                shares.admitted.setdefault(row.broker, [0, 0])[dimension] += amount
                shares.fair.setdefault(row.broker, [0.0, 0.0])[dimension] += part / split.scale


def _by_second(usage: pa.Table) -> pa.Table:
    second = pc.divide(usage["at_ms"], _SECOND_MS)
    columns = {"second": second, "group": usage["group"], "broker": usage["broker"]}
    return summed(pa.table(columns | {name: usage[name] for name in _AMOUNTS}), _PLACE, _AMOUNTS)


def _plain(rows: pa.Table) -> Iterator[_Row]:
    for second, group, broker, *amounts in zip(*(column.to_pylist() for column in rows.columns), strict=True):
        yield _Row(second, group, broker, (amounts[0], amounts[1]), (amounts[2], amounts[3]))


def jain(ratios: Iterable[float]) -> float | None:
    """Jain's index: 1 where all are alike, 1/n where one has everything; None without any."""
    values = np.array(list(ratios), np.float64)
    squares = float((values * values).sum())
    if not len(values):
        return None
    return float(values.sum()) ** 2 / (len(values) * squares) if squares > 0 else 0.0
