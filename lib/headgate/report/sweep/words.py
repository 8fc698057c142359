"""A sweep in words: what to set on the brokers, what it brings, and why."""

import json
from collections.abc import Iterator, Mapping

from headgate.sizing.advice import Advice, RowOfSweep, memory_of, miss_ratio, saved

KIB_BYTES, MIB_BYTES, GIB_BYTES, TIB_BYTES = 1 << 10, 1 << 20, 1 << 30, 1 << 40
_UNITS = ((TIB_BYTES, "TiB"), (GIB_BYTES, "GiB"), (MIB_BYTES, "MiB"), (KIB_BYTES, "KiB"))
MOST_DIGITS = 1000
SMALL = 0.005
RANGE_HITS = "headgate.cache.rangeHits"
_REASONS = {
    "expired": "had expired: older than the time threshold, and not expected any longer or out of extensions",
    "evicted": "had been evicted for size",
    "dropped": "had been dropped as finished, or with the last cursor",
    "invalidated": "had gone with their ledger or topic",
    "cold": "were never in the cache, as far as it remembers (a backlog, or before the trace)",
    "partial": "were cached, but others of their read were not (headgate.cache.rangeHits = whole)",
    "not_admitted": "were not wanted by the policy when they came",
    "refused": "had no room",
}


def size(size_bytes: float) -> str:
    """Bytes in the largest unit of which they are one or more; halves and smaller parts of MiB stay in it."""
    for unit, name in _UNITS:
        if size_bytes >= unit / (8 if unit == MIB_BYTES else 1):
            shown = size_bytes / unit
            return f"{shown:,.0f} {name}" if shown >= MOST_DIGITS else f"{shown:,.4g} {name}"
    return f"{size_bytes:,.0f} bytes"


def percent(part: float) -> str:
    """A part of 1 in percent, a decimal where it is small."""
    shown = 100 * part
    return f"{shown:.0f} %" if abs(shown) >= 10 or shown == 0 else f"{shown:.1f} %"


def changes(row: RowOfSweep) -> Mapping[str, object]:
    """The keys that a combination has otherwise than now."""
    found: dict[str, object] = json.loads(row["changed"])
    return found


def settings(row: RowOfSweep) -> str:
    """The keys that a combination has otherwise than now, as broker.conf writes them."""
    return ", ".join(f"{key}={written(value)}" for key, value in changes(row).items()) or "keys as now"


def written(value: object) -> str:
    """A value as broker.conf has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def recommendation(advice: Advice) -> Iterator[str]:
    """What to do, one sentence each, the most useful first."""
    now = advice.present
    if not _asked(now):
        yield "No entry was read in this trace, so it says nothing of caches: take one with reads."
        return
    if advice.keys is not None:
        yield f"At {size(now['max_bytes'])}, {_told(advice.keys, now)}: {_effect(advice.keys, now)}."
    else:
        yield f"At {size(now['max_bytes'])} no value of a key that was tried saves 1 % of the bytes from storage."
    if advice.policy is not None:
        yield _better(f"Policy {advice.policy['policy']}, one of Pulsar's own", advice.policy, advice)
    if advice.size is not None:
        larger = advice.size
        keys = f", with {settings(larger)}" if changes(larger) else ""
        edge = ", the largest that was tried" if larger["max_bytes"] == advice.largest_bytes else ""
        sizes = f"from {size(now['max_bytes'])} to {size(larger['max_bytes'])}{edge}"
        yield f"Raise the cache {sizes}{keys}: {_effect(larger, now)}."
    elif advice.smaller is not None:
        more = miss_ratio(advice.smaller) - miss_ratio(now)
        yield (
            f"{size(advice.smaller['max_bytes'])} would do instead of {size(now['max_bytes'])}: "
            f"{max(0.0, 100 * more):.1f} points more of what is read would come from storage, and entries would keep "
            f"{size(memory_of(advice.smaller))} of memory on average (now {size(memory_of(now))})."
        )
    else:
        yield "No larger size that was tried saves 1 % of the bytes from storage: leave the size."


def at_other_sizes(advice: Advice) -> Iterator[str]:
    """What keys to change in caches of other sizes, against the keys of now at the same size."""
    for now, best in advice.by_size:
        if now["max_bytes"] != advice.present["max_bytes"]:
            yield f"At {size(now['max_bytes'])}, {_told(best, now)}: {_effect(best, now, 'with the keys of now')}."


def why(advice: Advice) -> Iterator[str]:
    """What the recommendation rests on."""
    now = advice.present
    yield (
        f"Now (policy {now['policy']}, {size(now['max_bytes'])}) {percent(miss_ratio(now))} of the {_asked(now):,} "
        f"entries that are read come from storage, {size(now['storage_bytes'])} in all."
    )
    parts = [f"{percent(part)} {_REASONS[reason]}" for reason, part in advice.reasons if part >= SMALL]
    if parts:
        yield f"Of what is missed now: {'; '.join(parts)}."
    if advice.bound is not None:
        least = percent(miss_ratio(advice.bound))
        yield f"With the whole future known (belady) {least} would be missed at this size."
    if advice.yardstick is not None:
        yield _better(f"A rule that brokers do not have, {advice.yardstick['policy']}", advice.yardstick, advice)
    if now["mean_pinned_bytes"] is not None and now["mean_bytes"]:
        yield (
            f"The caches of all brokers hold {size(now['mean_bytes'])} on average, which keep "
            f"{size(now['mean_pinned_bytes'])} of memory: {now['mean_pinned_bytes'] / now['mean_bytes']:.2f} times as "
            "much."
        )


def of_sample(now: RowOfSweep) -> Iterator[str]:
    """How far what a sample says can be trusted; nothing of a sweep that took all entries. now: the present conf."""
    if now["sample"] == 1:
        return
    yield (
        f"These are estimates of a sample: one entry in {now['sample']}, in caches {now['sample']} times smaller. "
        "Storage reads and memory kept cannot be told from it. docs/sizing.md says how far it is off, and where it "
        "fails."
    )
    if json.loads(now["conf"]).get(RANGE_HITS) == "whole":
        yield (
            f"With {RANGE_HITS}=whole a sample misses up to some points too little in small caches: sweep the sizes "
            "that matter once more without --sample."
        )


def _asked(row: RowOfSweep) -> int:
    """Entries that reads asked for."""
    asked: int = row["hits"] + row["misses"]
    return asked


def _better(what: str, row: RowOfSweep, advice: Advice) -> str:
    keys = f", with {settings(row)}" if changes(row) else ""
    fewer = percent(saved(row, advice.keys or advice.present))
    than = " than the advised keys" if advice.keys is not None else ""
    return f"{what}{keys}, would read {fewer} fewer bytes from storage at this size{than}."


def _told(row: RowOfSweep, now: RowOfSweep) -> str:
    conf = json.loads(now["conf"])
    return "set " + " and ".join(
        f"{key} to {written(value)} (now {written(conf.get(key, 'unset'))})" for key, value in changes(row).items()
    )


def _effect(row: RowOfSweep, now: RowOfSweep, before: str = "now") -> str:
    reads = f"{percent(saved(row, now))} fewer bytes from storage"
    if row["storage_reads"] is not None and now["storage_reads"]:
        fewer = 1 - row["storage_reads"] / now["storage_reads"]
        reads += f" and {percent(abs(fewer))} {'fewer' if fewer >= 0 else 'more'} storage reads"
    memory = f"; the cache then holds {size(row['mean_bytes'])} on average ({before} {size(now['mean_bytes'])})"
    if row["mean_pinned_bytes"] is not None:
        memory = (
            f"; its entries keep {size(row['mean_pinned_bytes'])} of memory on average and "
            f"{size(row['peak_pinned_bytes'])} at most ({before} {size(now['mean_pinned_bytes'])} and "
            f"{size(now['peak_pinned_bytes'])})"
        )
    return f"{reads}, misses {percent(miss_ratio(now))} to {percent(miss_ratio(row))}{memory}"
