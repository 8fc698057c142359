"""Usage for people: rows in, lines out. First who is throttled, by which limit, and who is only a victim."""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

from headgate.quota.usage.excess import OWN
from headgate.quota.usage.query import Found
from headgate.quota.usage.series import Series, total_of
from headgate.quota.usage.topic_view import Consumer
from headgate.quota.usage.view import Broker, Cell, Part
from headgate.report.bars import bar, sparkline
from headgate.report.columns import aligned
from headgate.report.screen import counted, plain
from headgate.report.usage import words

Courses = Mapping[tuple[int, int, int, int], Series]
"""Admitted rates epoch by epoch, by broker, group, class and dimension."""
SPARK_WIDTH = 40
BAR_WIDTH = 10
_NS = 1e9
_AT_FAULT, _VICTIMS, _OWN, _NOBODYS = _FAULTS = (
    *("AT FAULT", "VICTIMS", "THROTTLED BY LIMITS OF THEIR TOPICS", "THROTTLED BY NOBODY'S FAULT"),
)
_CELL_HEADING = ("QUOTA AND LIMITS", "/S", "SHARE", "ADMITTED/S", "DEMAND/S", "USED", "THROTTLED", "AGE")
_BROKER_HEADING = ("BROKER", "STATE", "AGE", "GROUPS", "TOPICS", "MSG/S", "BYTES/S", "CONFIG", "THROTTLED")
_TEXT = "<"
_NUMBER = ">"


def group_lines(found: Found, cells: Sequence[Cell], courses: Courses, epochs: int, top: int) -> Iterator[str]:
    """A line a quota and a line a broker that uses it; the first lines name those that throttle.

    courses: of the first `top` cells. epochs: how many each course has.
    """
    yield heading(found)
    throttled = [cell for cell in cells if cell.throttled]
    yield ""
    if not cells:
        yield "No group is limited or used."
        return
    if throttled:
        when = "NOW" if found.at_ms is None else "THEN"
        more = "(whose fault, and limits of brokers and topics: --by tenant)"
        yield f"THROTTLED {when}: {len(throttled)} of {len(cells)} quotas {more}"
        for cell in throttled[:top]:
            yield from words.cell_lines(cell)
    else:
        yield _calm(found, len(cells))
    yield ""
    rows: list[Sequence[str]] = [(*_CELL_HEADING, f"LAST {epochs} EPOCHS", "WHY")]
    for cell in cells[:top]:
        series = [courses.get(_place(part, cell), [None] * epochs) for part in cell.parts]
        rows.append(_cell_row(cell, sparkline(total_of(series), SPARK_WIDTH, cell.quota or 0) if series else ""))
        rows += [
            _part_row(part, cell, sparkline(course, SPARK_WIDTH, part.limit or 0))
            for part, course in zip(cell.parts, series, strict=True)
        ]
    yield from aligned(rows, _TEXT + _NUMBER * 4 + _TEXT * 2 + _NUMBER + _TEXT * 2)
    yield from _more(len(cells), top)


def _calm(found: Found, quotas: int) -> str:
    """No quota throttles anybody, as far as it is known."""
    of = counted(quotas, "quota")
    when = "now" if found.at_ms is None else "then"
    up = [broker for broker in found.brokers.values() if broker.counts]
    unheard = [broker.name for broker in up if words.broker_state(broker)]
    if not up:
        last = words.instant(found.epoch * found.epoch_ms)
        return f"No broker is up, so nothing is used ({of}). --at TIME tells of a time before {last}."
    if unheard:
        return f"No quota is known to throttle anybody {when} ({of}): {words.named(unheard)} may be throttled."
    return f"No quota throttles anybody {when} ({of}). --by tenant has the limits of brokers and topics, too."


def broker_lines(found: Found, cells: Sequence[Cell], top: int) -> Iterator[str]:
    """A line a broker: whether it is heard of, what it admits, and where it is throttled; those first."""
    yield heading(found)
    yield ""
    brokers = sorted(found.brokers.values(), key=lambda one: (-len(_throttled_at(one, cells)), one.name))
    rows = [_BROKER_HEADING, *(_broker_row(broker, found, cells) for broker in brokers[:top])]
    yield from aligned(rows, _TEXT * 2 + _NUMBER * 6 + _TEXT)
    yield from _more(len(brokers), top)


def consumer_lines(heading_line: str, by: str, consumers: Sequence[Consumer], seconds: int, top: int) -> Iterator[str]:
    """A line for each tenant or topic and group that it is charged to; rates are means over the seconds."""
    yield heading_line
    yield ""
    throttled = [one for one in consumers if one.is_held]
    lines_of = Counter(one.name for one in consumers)
    if throttled:
        yield from _fault_lines(by, throttled, lines_of)
    else:
        yield f"Nothing was throttled in the last {seconds} s."
    yield ""
    most = max((one.admitted_messages for one in consumers), default=0)
    rows: list[Sequence[str]] = [
        (
            *(by.upper(), "GROUP", "MSG/S", "", "BYTES/S", "ARRIVED MSG/S", "ARRIVED BYTES/S"),
            *("THROTTLED", "HELD FOR"),
            *("BY", "WHAT OF IT"),
        )
    ]
    rows += [_consumer_row(one, seconds, most, lines_of) for one in consumers[:top]]
    yield from aligned(rows, _TEXT * 2 + _NUMBER + _TEXT + _NUMBER * 5 + _TEXT * 2)
    yield from _more(len(consumers), top)


def _fault_lines(by: str, throttled: Sequence[Consumer], lines_of: Mapping[str, int]) -> Iterator[str]:
    """Who is at fault, largest part first, also if nothing throttles it; who is a victim; and the others."""
    sharers = {name for one in throttled for shared in one.shared for name in shared.sharers}
    by_fault: dict[str, list[Consumer]] = {heading: [] for heading in _FAULTS}
    for one in throttled:
        by_fault[_fault(one, sharers)].append(one)
    by_fault[_AT_FAULT].sort(key=lambda one: -max((shared.part(one.tenant) for shared in one.shared), default=0))
    named = {heading: [words.consumer_name(one, lines_of) for one in found] for heading, found in by_fault.items()}
    if by == "topic":
        named[_AT_FAULT] = [f"topics of {one}" for one in dict.fromkeys(one.tenant for one in by_fault[_AT_FAULT])]
    elsewhere = sorted(sharers - {one.tenant for one in throttled})
    named[_AT_FAULT] += [f"{name} (not throttled itself)" for name in elsewhere]
    yield from (f"{heading}: {words.named(names)}" for heading, names in named.items() if names)


def _fault(one: Consumer, sharers: Container[str]) -> str:
    """Under which of _FAULTS it is listed. sharers: at fault for anybody, as who is throttled by a limit of its own may
    be.
    """
    if one.also_at_fault:
        return _AT_FAULT
    if one.is_victim:
        return _VICTIMS
    if any(one.tenant in each.sharers for each in one.shared) if one.shared else one.tenant in sharers:
        return _AT_FAULT
    return _OWN if one.limiter == OWN else _NOBODYS


def heading(found: Found) -> str:
    """As of when, and whether everybody was heard of."""
    brokers = found.brokers.values()
    up = [broker for broker in brokers if broker.counts]
    parts = [f"{words.instant(found.epoch * found.epoch_ms)}, epoch {found.epoch} of {found.epoch_ms:,} ms"]
    parts.append(f"{counted(len(up), 'broker')} {'up' if found.states_known else 'that reported'}")
    wrong = [
        f"{plain(broker.name)} {words.broker_state(broker)}"
        for broker in brokers
        if words.broker_state(broker) and broker.state != "left"
    ]
    return "; ".join([*parts, *wrong])


def course_key(part: Part, cell: Cell) -> tuple[int, int, int]:
    """Broker, group and class: whose rows tell a course."""
    return part.broker.broker_id, cell.group_id, cell.traffic_class


def _place(part: Part, cell: Cell) -> tuple[int, int, int, int]:
    return *course_key(part, cell), cell.dimension


def _cell_row(cell: Cell, course: str) -> tuple[str, ...]:
    ages = [part.broker.age for part in cell.parts if part.broker.age is not None]
    return (
        words.cell_name(cell),
        words.rate(cell.quota),
        "",
        f"{cell.admitted:,}",
        words.demand(cell),
        _used(cell.used),
        f"{len(cell.throttled)} of {len(cell.parts)}" if cell.throttled else "",
        f"{max(ages)}" if ages else "",
        course,
        words.cell_verdict(cell),
    )


def _part_row(part: Part, cell: Cell, course: str) -> tuple[str, ...]:
    share = "" if part.limit is None or not cell.quota else f"{part.limit / cell.quota:.0%}"
    return (
        f"  {plain(part.broker.name)}",
        words.rate(part.limit),
        share,
        f"{part.admitted:,}",
        words.demand(part),
        _used(part.admitted / part.limit if part.limit else None),
        "yes" if part.throttled else "",
        "" if part.broker.age is None else f"{part.broker.age}",
        course,
        words.part_verdict(part, cell.quota),
    )


def _broker_row(broker: Broker, found: Found, cells: Sequence[Cell]) -> tuple[str, ...]:
    own = [report for report in found.reports if report.broker_id == broker.broker_id]
    behind = None if broker.config_version is None else found.config.version - broker.config_version
    totals = [sum(report.usage.admitted[dimension] for report in own) for dimension in (0, 1)]
    return (
        plain(broker.name),
        plain(broker.state or "-"),
        words.rate(broker.age),
        f"{len({report.group_id for report in own}):,}",
        f"{sum(report.topics for report in own):,}",
        *(f"{total:,}" for total in totals),
        "-" if behind is None else f"{-behind:,}" if behind else "newest",
        words.named(_throttled_at(broker, cells)),
    )


def _throttled_at(broker: Broker, cells: Iterable[Cell]) -> list[str]:
    return [
        words.cell_name(cell)
        for cell in cells
        if any(part.broker.broker_id == broker.broker_id for part in cell.throttled)
    ]


def _consumer_row(one: Consumer, seconds: int, most: int, lines_of: Mapping[str, int]) -> tuple[str, ...]:
    return (
        plain(one.name),
        plain(one.group or "-"),
        f"{one.admitted_messages / seconds:,.0f}",
        bar(one.admitted_messages / most if most else 0, BAR_WIDTH),
        f"{one.admitted_bytes / seconds:,.0f}",
        f"{one.messages / seconds:,.0f}",
        f"{one.bytes / seconds:,.0f}",
        f"{one.held / one.settled:.1%}" if one.held else "all waits" if one.throttled_ns and not one.settled else "",
        f"{one.throttled_ns / _NS:,.1f} s" if one.throttled_ns else "",
        words.limiter_name(one),
        words.consumer_verdict(one, lines_of),
    )


def _used(part: float | None) -> str:
    return "" if part is None else f"{bar(part, BAR_WIDTH)} {part:4.0%}"


def _more(count: int, top: int) -> Iterator[str]:
    if count > top:
        yield f"{count - top:,} more: --top {count}, --group NAME, or --json"
