"""What follows from a sweep for the conf that brokers have now: what to set, what it brings, and why."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headgate.core.cache.settings import PolicyName
from headgate.sizing.measure import REASONS

RowOfSweep = Mapping[str, Any]
"""Of cache_sweep, of all brokers together."""
DEPLOYABLE = (PolicyName.PIP430, PolicyName.SIZE_PROPORTIONAL, PolicyName.BY_MARK_DELETE)
"""What a broker's own keys can choose; the other policies are yardsticks."""
WORTH = 0.01
"""Smaller changes of what is read from storage are not advised, and of changes so close to the best the smallest is."""
ENOUGH = 0.02
"""How much more of what was asked for may come from storage in a smaller cache that is called enough."""


@dataclass(frozen=True)
class Advice:
    """What to do, each part None where nothing is worth it; all rows are of `cache_sweep`.

    present: the conf of now. keys: the best change of keys at the present size, under the policy of now. size: the best
    larger size, with the keys that are advised at it. largest_bytes: the largest size that was tried.
    smaller: the smallest size that reads hardly more than now.
    by_size: for each size that was tried, what the keys of now do there, and the best change of them.
    policy: the best other policy that brokers have, at the present size, where it does better than the advised keys.
    yardstick: the best policy that brokers do not have, at the present size. bound: belady there. reasons: parts of
    what is missed now, largest first.
    """

    present: RowOfSweep
    keys: RowOfSweep | None
    size: RowOfSweep | None
    largest_bytes: int
    smaller: RowOfSweep | None
    by_size: Sequence[tuple[RowOfSweep, RowOfSweep]]
    policy: RowOfSweep | None
    yardstick: RowOfSweep | None
    bound: RowOfSweep | None
    reasons: Sequence[tuple[str, float]]


def advise(rows: Sequence[RowOfSweep]) -> Advice:
    """What the rows of all brokers together say. rows: those with the present conf among them."""
    present = next(row for row in rows if row["is_present"])
    same_policy = [row for row in rows if row["policy"] == present["policy"]]
    here = [row for row in rows if row["max_bytes"] == present["max_bytes"]]
    keys = _best([row for row in same_policy if row["max_bytes"] == present["max_bytes"]], present)
    larger = [row for row in same_policy if row["max_bytes"] > present["max_bytes"]]
    others = [row for row in here if row["policy"] not in (PolicyName.BELADY, present["policy"])]
    bounds = [row for row in here if row["policy"] == PolicyName.BELADY]
    return Advice(
        present,
        keys,
        _best(larger, keys or present),
        max(row["max_bytes"] for row in rows),
        _enough([row for row in same_policy if not _changes(row)], present),
        list(_by_size(same_policy)),
        _best([row for row in others if row["policy"] in DEPLOYABLE], keys or present),
        _best([row for row in others if row["policy"] not in DEPLOYABLE], keys or present),
        bounds[0] if bounds else None,
        _reasons(present),
    )


def saved(row: RowOfSweep, before: RowOfSweep) -> float:
    """The part of the bytes that were read from storage before which is not any longer; below 0: more is read."""
    read_before: int = before["storage_bytes"]
    return (read_before - row["storage_bytes"]) / read_before if read_before else 0.0


def miss_ratio(row: RowOfSweep) -> float:
    """Entries that came from storage, of those that were asked for."""
    asked: int = row["hits"] + row["misses"]
    return row["misses"] / asked if asked else 0.0


def _changes(row: RowOfSweep) -> str:
    """The keys that are otherwise than now, empty where none is."""
    return "" if row["changed"] in {"", "{}"} else str(row["changed"])


def _best(rows: Sequence[RowOfSweep], before: RowOfSweep) -> RowOfSweep | None:
    """Of those that read hardly more than the best, the smallest cache, then the fewest keys, then the least memory."""
    worth = [row for row in rows if saved(row, before) >= WORTH]
    if not worth:
        return None
    least = min(row["storage_bytes"] for row in worth)
    close = [row for row in worth if row["storage_bytes"] <= least + WORTH * before["storage_bytes"]]
    return min(close, key=lambda row: (row["max_bytes"], _changes(row).count(":"), memory_of(row), row["combination"]))


def memory_of(row: RowOfSweep) -> int:
    """What cached entries keep on average, with the receive buffers that they hold; of a sample their bytes alone."""
    kept: int | None = row["mean_pinned_bytes"]
    of_entries: int = row["mean_bytes"]
    return of_entries if kept is None else kept


def _by_size(rows: Sequence[RowOfSweep]) -> Iterator[tuple[RowOfSweep, RowOfSweep]]:
    """Sizes at which a change of keys is worth it."""
    for now in sorted((row for row in rows if not _changes(row)), key=lambda row: row["max_bytes"]):
        best = _best([row for row in rows if row["max_bytes"] == now["max_bytes"]], now)
        if best is not None:
            yield now, best


def _enough(rows: Sequence[RowOfSweep], present: RowOfSweep) -> RowOfSweep | None:
    smaller = [row for row in rows if row["max_bytes"] < present["max_bytes"]]
    enough = [row for row in smaller if miss_ratio(row) <= miss_ratio(present) + ENOUGH]
    return min(enough, key=lambda row: row["max_bytes"]) if enough else None


def _reasons(row: RowOfSweep) -> list[tuple[str, float]]:
    counts = {reason: row[f"missed_{reason}"] for reason in REASONS}
    missed = sum(counts.values())
    found = [(reason, count / missed) for reason, count in counts.items() if count]
    return sorted(found, key=lambda pair: -pair[1])
