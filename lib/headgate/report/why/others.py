"""The answers about subscriptions, connections and the entry cache, for people."""

from collections.abc import Iterator

from headgate.core.reasons import HeldReason
from headgate.report.columns import aligned
from headgate.report.screen import plain
from headgate.report.why.screen import held_by, meaning, span_of, titled
from headgate.why.cached import CacheWhy
from headgate.why.connections import ConnectionWhy
from headgate.why.subscriptions import SubscriptionWhy

_SHOWN = 10


def subscription_lines(found: SubscriptionWhy) -> Iterator[str]:
    """Throttling or slow consumers, and the figures that say so."""
    yield f"subscription {plain(found.subscription)} of {plain(found.topic)}, {span_of(found.window)}"
    yield f"{found.reason}: {found.rule}"
    yield from (f"note: {note}" for note in found.notes)
    yield (
        f"{found.published:,} messages were published, {found.asked:,} asked for, {found.dispatched:,} dispatched; of "
        f"{found.reads:,} reads {found.waiting:,} were not let go by the end"
    )
    if found.mean_delay_s is not None:
        yield f"reads that waited did so for {found.mean_delay_s:,.1f} s in the mean"
    if found.held:
        rows = [("REASON", "READS WITHOUT A PERMIT"), *((reason, f"{count:,}") for reason, count in found.held)]
        yield from titled("HELD BY", aligned(rows, "<>"))
    yield from meaning(found.reason)


def connection_lines(found: ConnectionWhy) -> Iterator[str]:
    """What held it, and which topics are on it."""
    yield f"connection {plain(found.connection)} of {plain(found.broker)}, {span_of(found.window)}"
    held = found.reason is not HeldReason.NOT_HELD
    yield f"HELD for {found.held_s:,.1f} s of {found.window.seconds:,} s: {found.reason}" if held else found.reason
    yield from (f"note: {note}" for note in found.notes)
    if found.pauses is not None:
        yield f"its reads were paused {found.pauses:,} times, for {found.paused_s or 0:,.1f} s"
    if found.held_by:
        yield from titled("HELD BY", held_by(found.held_by))
    if found.topics:
        rows = [("TOPIC", "TIMES HELD", "HELD FOR", "REASON")]
        for one in found.topics[:_SHOWN]:
            others = ": held because of the others" if one.reason is HeldReason.SHARED_CONNECTION else ""
            rows.append((plain(one.topic), f"{one.marked:,}", f"{one.held_s:,.1f} s", f"{one.reason}{others}"))
        yield from titled("TOPICS ON IT", aligned(rows, "<>><"))
        if len(found.topics) > _SHOWN:
            yield f"and {len(found.topics) - _SHOWN:,} more topics"
    yield from meaning(found.reason)


def cache_lines(found: CacheWhy) -> Iterator[str]:
    """Why entries left, and which topics took the room."""
    yield f"{plain(found.topic)} in the entry cache, {span_of(found.window)}"
    yield found.reason
    yield from (f"note: {note}" for note in found.notes)
    entries = found.hits + found.misses
    part = f", {found.hits / entries:.1%} hits" if entries else ""
    yield f"{entries:,} entries were asked for{part}"
    if found.left is not None:
        left = ", ".join(f"{count:,} {cause}" for cause, count in found.left) or "none"
        yield f"entries that left: {left}"
    rows = [("TOPIC", "BYTES IN THE CACHE", "GROWN BY")]
    rows += [(plain(one.topic), f"{one.used_bytes:,}", f"{one.grown_bytes:+,}") for one in found.room[:_SHOWN]]
    yield from titled("WHO TOOK THE ROOM", aligned(rows, "<>>"))
    yield from meaning(found.reason)
