"""What a topic or a tenant publishes: its busiest second, its mean, and a first guess at the limit that it needs."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.topic_names import tenants_of
from headgate.core.kernels.columns import Ints
from headgate.core.topic_names import without_partition
from headgate.tryout.bound import Bound
from headgate.tryout.notches import notch_from, rate_at

DIMENSIONS = ("messages", "bytes")
HEADROOM = 1.1
"""Of the mean: the least that a limit leaves."""


@dataclass(frozen=True)
class Load:
    """Publishes in all; by dimension the busiest second and where it begins (s), the mean over the trace, the guess.

    Of a topic with partitions rates are those of the partition with most: its limit holds for each of them.
    """

    publishes: int
    busiest: tuple[int, int]
    busiest_s: tuple[int, int]
    mean: tuple[float, float]
    guess: tuple[int, int]

    @property
    def least(self) -> tuple[float, float]:
        """With less a backlog would shrink slowly or never."""
        return self.mean[0] * HEADROOM, self.mean[1] * HEADROOM

    def with_lag(self) -> "Load":
        """A guess for a quota that follows demand from broker to broker only after a while: it needs more room."""
        return replace(self, guess=_pair(notch_from(busiest) for busiest in self.busiest))

    def with_partition(self, other: "Load") -> "Load":
        """Two partitions of a topic."""
        larger = [self.busiest[i] >= other.busiest[i] for i in range(2)]
        return Load(
            self.publishes + other.publishes,
            _larger(self.busiest, other.busiest),
            _pair((self if larger[i] else other).busiest_s[i] for i in range(2)),
            _larger(self.mean, other.mean),
            _larger(self.guess, other.guess),
        )


def topic_loads(by_second: pa.Table, bound: Bound) -> dict[str, Load]:
    """By topic, without partitions. by_second: Publishes.by_second."""
    loads: dict[str, Load] = {}
    for name, load in _loads(by_second, by_second["topic"], bound):
        topic = without_partition(name)
        loads[topic] = load.with_partition(loads[topic]) if topic in loads else load
    return loads


def tenant_loads(by_second: pa.Table, bound: Bound) -> dict[str, Load]:
    """By tenant."""
    return dict(_loads(by_second, tenants_of(by_second["topic"]), bound))


def _loads(by_second: pa.Table, names: Any, bound: Bound) -> Iterator[tuple[str, Load]]:
    if not len(by_second):
        return
    seconds = pc.max(by_second["second"]).as_py() - pc.min(by_second["second"]).as_py() + 1
    table = pa.table({"name": names, **{name: by_second[name] for name in ("second", "publishes", *DIMENSIONS)}})
    sums = [(name, "sum") for name in ("publishes", *DIMENSIONS)]
    table = table.group_by(["name", "second"], use_threads=False).aggregate(sums)
    table = table.sort_by([("name", "ascending"), ("second", "ascending")])
    codes = table["name"].combine_chunks().dictionary_encode()
    starts = np.flatnonzero(np.diff(codes.indices.to_numpy(), prepend=-1))
    columns = [table[name].to_numpy() for name in table.column_names[1:]]
    for name, start, end in zip(codes.dictionary.to_pylist(), starts, [*starts[1:], len(table)], strict=True):
        at_s, publishes, *amounts = (column[start:end] for column in columns)
        peaks = [int(amount.argmax()) for amount in amounts]
        yield (
            name,
            Load(
                int(publishes.sum()),
                _pair(int(amount.max()) for amount in amounts),
                _pair(int(at_s[peak]) for peak in peaks),
                _pair(float(amount.sum()) / seconds for amount in amounts),
                _pair(_needed(at_s, publishes, amount, bound) for amount in amounts),
            ),
        )


def _needed(at_s: Ints, publishes: Ints, amounts: Ints, bound: Bound) -> int:
    """The notch that a token bucket would need if all of a second came evenly: where the rules begin to be tried."""
    low, high = -1, notch_from(int(amounts.max()))
    allowed = bound.most_percent / 100 * publishes.sum()
    spans = np.diff(at_s, prepend=at_s[0] - 1)
    while high - low > 1:
        middle = (low + high) // 2
        rate = rate_at(middle)
        surplus = np.cumsum(amounts - rate * spans)
        owed = surplus - np.minimum(np.minimum.accumulate(surplus), 0) - rate
        is_enough = publishes[owed > rate * bound.wait_ms / 1000].sum() <= allowed
        low, high = (low, middle) if is_enough else (middle, high)
    return max(high, 0)


def _pair(values: Iterator[Any]) -> Any:
    return tuple(values)


def _larger(some: tuple[Any, Any], others: tuple[Any, Any]) -> Any:
    return max(some[0], others[0]), max(some[1], others[1])
