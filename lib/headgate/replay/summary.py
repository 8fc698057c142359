"""What all keys of a plan said, as the tables of tenants and of groups."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from headgate.arrow.schemas import table_of
from headgate.core.quota.groups import UNLIMITED, RatePair
from headgate.replay.fair_shares import jain
from headgate.replay.histogram import percentile_ms
from headgate.replay.schemas import REPLAY_GROUPS, REPLAY_TENANTS, SUMS

_MS_NS = 1_000_000
_UNITS = ("msgs", "bytes")


@dataclass
class _Sums:
    """Sums of one group or tenant: SUMS, delays of messages by bucket, the longest delay."""

    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(SUMS, 0))
    delays: Counter[int] = field(default_factory=Counter)
    max_delay_ns: int = 0
    brokers: set[str] = field(default_factory=set)
    tenants: set[str] = field(default_factory=set)

    def add(self, row: Mapping[str, Any]) -> None:
        """Add a row of TENANT_SUMS."""
        for name in SUMS:
            self.counts[name] += row[name]
        self.max_delay_ns = max(self.max_delay_ns, row["max_delay_ns"])
        self.brokers.add(row["broker"])
        self.tenants.add(row["tenant"])

    def columns(self) -> tuple[Any, ...]:
        """SUMS, then what is said of delays, then what still waits at the end."""
        longest_ms = self.max_delay_ns / _MS_NS if self.max_delay_ns else None
        percentiles = [percentile_ms(self.delays, percent) for percent in (50, 99)]
        bounded = [None if one is None or longest_ms is None else min(one, longest_ms) for one in percentiles]
        waiting = self.counts["offered_msgs"] - self.counts["admitted_msgs"] - self.counts["failed_msgs"]
        return *self.counts.values(), self.delays.total(), *bounded, longest_ms, waiting


@dataclass
class Summary:
    """What was said of one plan. name: of its folder. quotas: of its groups, messages and bytes a second."""

    name: str
    quotas: Mapping[str, RatePair]
    _groups: dict[str | None, _Sums] = field(default_factory=lambda: defaultdict(_Sums))
    _tenants: dict[tuple[str | None, str], _Sums] = field(default_factory=lambda: defaultdict(_Sums))
    _shares: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))

    def add(self, kind: str, rows: pa.Table) -> None:
        """Add what one key said: rows of the kinds tenants, delays, shares (run.Emit)."""
        for row in rows.to_pylist():
            if kind == "shares":
                self._shares[row["group"]].append(row)
                continue
            for sums in (self._groups[row["group"]], self._tenants[row["group"], row["tenant"]]):
                if kind == "tenants":
                    sums.add(row)
                else:
                    sums.delays[row["bucket"]] += row["messages"]

    def tenants(self) -> pa.Table:
        """Rows of REPLAY_TENANTS, by group and tenant; those without a group last."""
        rows = [
            (self.name, group, tenant, *sums.columns())
            for (group, tenant), sums in sorted(self._tenants.items(), key=lambda one: (_last(one[0][0]), one[0][1]))
        ]
        return table_of(rows, REPLAY_TENANTS)

    def groups(self) -> pa.Table:
        """Rows of REPLAY_GROUPS, by name; what has no group last."""
        rows = []
        for group, sums in sorted(self._groups.items(), key=lambda one: _last(one[0])):
            quotas = self.quotas.get(group or "", UNLIMITED)
            counts = (len(sums.brokers), len(sums.tenants))
            judged = judgement(quotas, self._shares.get(group or "", ()))
            rows.append((self.name, group, *quotas, *counts, *sums.columns(), *judged))
        return table_of(rows, REPLAY_GROUPS)


def _last(name: str | None) -> tuple[bool, str]:
    return name is None, name or ""


def judgement(quotas: RatePair, shares: Iterable[Mapping[str, Any]]) -> tuple[float | None, float | None, float | None]:
    """Overshoot in percent of the quota, over the whole time and in the worst second; fairness.

    shares: rows of GROUP_SHARES of one group. Overshoot: of the dimension that has more. Fairness: Jain's index of what
    each broker was let have over what the max-min split would have given it, in the dimension that is nearer to its
    quota. None where the group has no quota, or one of 0.
    """
    rows = list(shares)
    limited = [(unit, quota) for unit, quota in zip(_UNITS, quotas, strict=True) if quota]
    if not limited or not rows:
        return None, None, None

    def above(amount: float, quota: float) -> float:
        return max(0.0, (amount / quota - 1) * 100)

    seconds = rows[0]["seconds"]
    overall = max(above(sum(row[f"admitted_{unit}"] for row in rows), quota * seconds) for unit, quota in limited)
    worst = max(above(rows[0][f"worst_{unit}"], quota) for unit, quota in limited)
    unit = max(limited, key=lambda one: sum(row[f"fair_{one[0]}"] for row in rows) / one[1])[0]
    ratios = [row[f"admitted_{unit}"] / row[f"fair_{unit}"] for row in rows if row[f"fair_{unit}"] > 0]
    return overall, worst, jain(ratios)
