"""A replay in words: how conf folders differ, and what that changed for the traffic."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any

from headgate.conf import Conf, group_attachments, publish_limits

Row = Mapping[str, Any]
"""A row of replay_groups or replay_tenants."""
NO_GROUP = "no group"
LIMITERS = {"throttled_by_topic": "topic", "throttled_by_broker": "broker", "throttled_by_group": "group"}
_UNITS = ("msg/s", "B/s")
_PLACES = {"default": "every topic", "broker": "every broker", "group": "group"}
_TOLD_POINTS = 0.1
"""A change of less than so many percentage points is none."""


def group_name(row: Row) -> str:
    """The group, or what stands for none."""
    return row["group"] or NO_GROUP


def part(row: Row, amount: str, of: str = "offered_msgs") -> float:
    """Percent of what was offered."""
    return 100 * row[amount] / row[of] if row[of] else 0.0


def percent(value: float | None) -> str:
    """With one decimal where that says something."""
    if value is None:
        return "-"
    if value == 0:
        return "0 %"
    if 0 < value < _TOLD_POINTS:
        return "<0.1 %"
    return f"{value:,.1f} %" if value < 10 or value != round(value) else f"{value:,.0f} %"


def duration(milliseconds: float | None) -> str:
    """In the unit that fits."""
    if milliseconds is None:
        return "-"
    return f"{milliseconds:,.0f} ms" if milliseconds < 1000 else f"{milliseconds / 1000:,.1f} s"


def quota_of(row: Row) -> str:
    """The quotas of a group."""
    pairs = zip((row["quota_msgs"], row["quota_bytes"]), _UNITS, strict=True)
    return ", ".join(f"{amount:,} {unit}" for amount, unit in pairs if amount is not None) or "not limited"


def limiters_of(row: Row) -> str:
    """Which limiters throttled how many publishes, the most active first."""
    counts = sorted(((row[column], name) for column, name in LIMITERS.items() if row[column]), reverse=True)
    return ", ".join(f"{name} {count:,}" for count, name in counts) or "none"


def differences(before: Conf, after: Conf) -> list[str]:
    """What the second folder says differently, a line each, as far as a replay goes by it."""
    return [*_limits(before, after), *_attachments(before, after), *_settings(before, after)]


def effects(before: Iterable[Row], after: Iterable[Row], *, offered: bool) -> list[str]:
    """What changed for each group from one conf to the other, the most affected first."""
    of_before = {row["group"]: row for row in before}
    told: list[tuple[float, str]] = []
    measures = {"failed": "failed_msgs", "delayed": "delayed_msgs"}
    for row in after:
        other = of_before.get(row["group"])
        if other is None:
            continue
        pairs = (
            {what: (part(other, column), part(row, column)) for what, column in measures.items()}
            if offered
            else {"throttled": tuple(part(one, "throttled_publishes", "offered_publishes") for one in (other, row))}
        )
        moved = {what: pair for what, pair in pairs.items() if abs(pair[1] - pair[0]) >= _TOLD_POINTS}
        if moved:
            words = ", ".join(
                f"{what} {percent(was)} \N{RIGHTWARDS ARROW} {percent(now)}" for what, (was, now) in moved.items()
            )
            size = max(abs(now - was) for was, now in moved.values())
            told.append((-size, f"{group_name(row)}: {words}"))
    return [words for _, words in sorted(told)]


def _limits(before: Conf, after: Conf) -> Iterator[str]:
    old, new = ({(row.scope, row.name): row for row in publish_limits(conf)} for conf in (before, after))
    for place in sorted({*old, *new}):
        rates = [
            None if place not in rows else (rows[place].messages_per_s, rows[place].bytes_per_s) for rows in (old, new)
        ]
        if rates[0] == rates[1]:
            continue
        yield f"{_PLACES.get(place[0], place[0])} {place[1]}".strip() + f": {_change(place[0], *rates)}"


def _change(scope: str, was: tuple[int | None, int | None] | None, now: tuple[int | None, int | None] | None) -> str:
    if was is None or now is None:
        return f"{_shown(scope, was)} \N{RIGHTWARDS ARROW} {_shown(scope, now)}"
    moved = [
        f"{_rate(scope, old)} \N{RIGHTWARDS ARROW} {_rate(scope, new)} {unit}"
        for old, new, unit in zip(was, now, _UNITS, strict=True)
        if old != new
    ]
    return ", ".join(moved)


def _shown(scope: str, rates: tuple[int | None, int | None] | None) -> str:
    if rates is None:
        return "none"
    return ", ".join(f"{_rate(scope, rate)} {unit}" for rate, unit in zip(rates, _UNITS, strict=True))


def _rate(scope: str, rate: int | None) -> str:
    is_off = rate is None or (rate == 0 and scope != "group")
    return "unlimited" if is_off else f"{rate:,}"


def _attachments(before: Conf, after: Conf) -> Iterator[str]:
    old, new = ({(row.scope, row.name): row.group for row in group_attachments(conf)} for conf in (before, after))
    for place in sorted({*old, *new}):
        if old.get(place) != new.get(place):
            was, now = (held.get(place, NO_GROUP) for held in (old, new))
            yield f"{place[0]} {place[1]}: {was} \N{RIGHTWARDS ARROW} {now}"


def _settings(before: Conf, after: Conf) -> Iterator[str]:
    for one in fields(before.quota):
        was, now = getattr(before.quota, one.name), getattr(after.quota, one.name)
        if was != now and "tokens" not in one.name and not one.name.endswith("_table"):
            yield f"{one.metadata['setting'].key}: {was} \N{RIGHTWARDS ARROW} {now}"
    for name in ("max_debt_ms", "release_quantum_producers"):
        was, now = getattr(before.broker, name), getattr(after.broker, name)
        if was != now:
            yield f"{name.replace('_', ' ')}: {was} \N{RIGHTWARDS ARROW} {now}"
    for section, name in (("operator", "group_limits"), ("operator", "send_timeout_ms"), ("trigger", "interval_ms")):
        was, now = (getattr(getattr(conf.settings, section), name) for conf in (before, after))
        if was != now:
            yield f"{section}.{name}: {was} \N{RIGHTWARDS ARROW} {now}"
