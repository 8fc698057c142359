"""An answer of `why` for people: lines, the most important first."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from headgate.core.reasons import HeldReason
from headgate.report.bars import sparkline
from headgate.report.columns import aligned
from headgate.report.screen import counted, plain, zulu
from headgate.why.answer import Balance, HeldBy, Level, Verdict, Why, Window

_SHOWN_LIMITERS, _SHOWN_NAMES, _SPARK_WIDTH = 10, 5, 60
_TEXT, _NUMBER = "<", ">"
VERDICTS = {
    "own_limit": "ITS OWN LIMIT",
    "cause": "CAUSE",
    "shared": "SHARED FAULT",
    "victim": "VICTIM",
    "nobody": "NOBODY'S FAULT",
    "unknown": "NOT KNOWN",
}


def lines(found: Why) -> Iterator[str]:
    """Held or not and how long, by what, the limits, who filled it, whose fault, what would have helped."""
    yield f"{plain(found.topic)}, {span_of(found.window)}"
    yield from _heading(found)
    yield from (f"note: {note}" for note in found.notes)
    if found.held_by:
        yield from titled("HELD BY", held_by(found.held_by))
    if found.chain:
        at = "" if found.chain_at is None else f" at {zulu(found.chain_at)}"
        yield from titled(f"LIMITS IN FORCE{at} (* held it)", _chain(found.chain))
    if found.balances and found.held_by:
        yield from titled("BALANCE when producers began to be held; below 0 is debt", _balances(found))
    if found.filled is not None:
        yield from _filled(found)
    if found.producers:
        rows = [("PRODUCER", "BROKER", "CONNECTION", "TIMES HELD", "HELD FOR")]
        rows += [
            (plain(one.name), plain(one.broker), plain(one.connection), f"{one.marks:,}", f"{one.held_s:,.1f} s")
            for one in found.producers[:_SHOWN_NAMES]
        ]
        yield from titled("ITS PRODUCERS", aligned(rows, _TEXT * 3 + _NUMBER * 2))
    if found.verdict is not None:
        excess = ", ".join(f"{plain(name)} {part:.0%}" for name, part in found.verdict.excess[:_SHOWN_NAMES])
        of = f" of {excess} of the excess" if excess else ""
        yield ""
        window = "" if found.filled is None else f", {span_of(found.filled.window)}"
        yield f"VERDICT: {VERDICTS[found.verdict.kind]}{of}{window}"
        yield f"  {found.verdict.rule}"
    if found.remedies:
        of = (
            ""
            if found.filled is None
            else f" in {found.filled.window.seconds} s from {zulu(found.filled.window.first)} on"
        )
        title = f"WHAT WOULD HAVE HELPED{of}, found by running the rules over the recorded traffic"
        yield from titled(title, (f"- {plain(one.words)}" for one in found.remedies))
    yield from meaning(found.reason)


def meaning(reason: HeldReason) -> Iterator[str]:
    """Where it is explained; nothing where nothing was held."""
    if reason is not HeldReason.NOT_HELD:
        yield ""
        yield f"What {reason} means and what to do: docs/reasons.md#{reason.lower()}"


def _heading(found: Why) -> Iterator[str]:
    traffic = found.traffic
    if found.is_held_at is not None and found.window.at is not None:
        yield f"{'HELD' if found.is_held_at else 'NOT HELD'} at {zulu(found.window.at)}"
    if not found.is_held:
        yield HeldReason.NOT_HELD
    elif not found.held_by:
        yield f"HELD: {found.reason}"
    else:
        where = f"{found.held_s:,.1f} s of {counted(found.looked_at.seconds, 'second')}"
        yield f"HELD for {where}: {found.reason}{_in_short(found.verdict)}"
    if found.looked_at != found.window:
        yield (
            f"of the whole time, with a producer waiting: {traffic.throttled_s:,.1f} s; what is said below is of the "
            f"clock hour with most of it, {span_of(found.looked_at)}"
        )
    late = f", {traffic.delayed_publishes:,} of them late" if traffic.delayed_publishes else ""
    late += f" by {traffic.mean_delay_s:,.1f} s in the mean" if traffic.mean_delay_s is not None else ""
    yield (
        f"{traffic.publishes:,} publishes of {traffic.messages:,} messages and {traffic.bytes:,} bytes came; "
        f"{traffic.admitted_messages:,} messages and {traffic.admitted_bytes:,} bytes were let in{late}; "
        f"{traffic.throttled_publishes:,} throttled, {traffic.failed_publishes:,} failed"
    )


def _in_short(verdict: Verdict | None) -> str:
    """What is said at length at the end."""
    if verdict is None:
        return ""
    of = f" of {plain(verdict.excess[0][0])}" if verdict.kind == "victim" else ""
    return f"; {VERDICTS[verdict.kind]}{of}"


def titled(title: str, rows: Iterator[str]) -> Iterator[str]:
    yield ""
    yield title
    yield from rows


def held_by(found: Sequence[HeldBy]) -> Iterator[str]:
    rows = [("REASON", "LIMITER", "BROKER", "HELD FOR", "TIMES", "WHEN")]
    for one in found[:_SHOWN_LIMITERS]:
        spans = ", ".join(
            f"{'before ' if span.since_before else ''}{_time(span.first)} to {_time(span.last)}"
            for span in one.spans[:_SHOWN_NAMES]
        )
        more = len(one.spans) - _SHOWN_NAMES + one.more_spans
        when = f"{spans} and {more:,} more" if more > 0 else spans
        limiter = f"{one.scope} {plain(one.limiter)}"
        rows.append((one.reason, limiter, plain(one.broker), f"{one.held_s:,.1f} s", f"{one.marks:,}", when))
    yield from aligned(rows, _TEXT * 3 + _NUMBER * 2 + _TEXT)


def _chain(chain: Sequence[Level]) -> Iterator[str]:
    rows = [("", "LIMIT", "BROKER", "MESSAGES/S", "BYTES/S", "SET IN", "SINCE", "BEFORE THAT")]
    for one in chain:
        name = plain(f"{one.level} {one.name}".strip())
        unused = "" if one.is_in_force else " (does not apply: a narrower one does)"
        since = "the beginning" if one.since is None else zulu(one.since)
        was = "" if one.was is None else f"{_rate(one.was[0])} messages/s, {_rate(one.was[1])} bytes/s"
        row = ("*" if one.is_binding else "", f"{name}{unused}", plain(one.broker or "all"))
        rows.append((*row, _rate(one.messages_per_s), _rate(one.bytes_per_s), plain(one.set_in), since, was))
    yield from aligned(rows, _TEXT * 3 + _NUMBER * 2 + _TEXT * 3)


def _balances(found: Why) -> Iterator[str]:
    held = found.held_by[0]
    of_limiter = [
        one for one in found.balances if (one.scope, one.limiter, one.broker) == (held.scope, held.limiter, held.broker)
    ]
    for unit in ("messages", "bytes"):
        values = [value for one in of_limiter if (value := _balance(one, unit)) is not None]
        debts = [max(-value, 0) for value in values]
        if any(debts):
            line = (
                f"debt in {unit}: {sparkline(debts, _SPARK_WIDTH)}  most {max(debts):,}, lowest balance {min(values):,}"
            )
            yield line


def _balance(one: Balance, unit: str) -> int | None:
    return one.messages if unit == "messages" else one.bytes


def _filled(found: Why) -> Iterator[str]:
    filled = found.filled
    if filled is None:
        return
    limiter = f"{filled.scope} {plain(filled.limiter)}"
    rows = [("", "CAME", "LET IN", "PART OF WHAT WAS LET IN")]
    for what, fillers in (("tenant", filled.tenants), ("topic", filled.topics)):
        rows += [
            (f"{what} {plain(one.name)}", f"{one.came:,}", f"{one.let_in:,}", f"{one.part:.1%}")
            for one in fillers[:_SHOWN_NAMES]
        ]
    more = max(len(filled.topics) - _SHOWN_NAMES, 0) + filled.others
    rate = "" if filled.rate is None else f" of {filled.rate:,}"
    used = f"{filled.let_in_per_s:,.0f}/s{rate} let in"
    title = f"WHO FILLED {limiter}, in {filled.unit}, {span_of(filled.window)}: {used}"
    yield from titled(title, aligned(rows, _TEXT + _NUMBER * 3))
    if more:
        yield f"and {counted(more, 'more')} topics"


def _rate(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _time(at: datetime) -> str:
    return f"{at:%H:%M:%S}.{at.microsecond // 1000:03}"


def span_of(window: Window) -> str:
    return f"{zulu(window.first)} to {zulu(window.last)}"
