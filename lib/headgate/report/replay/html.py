"""The report of a replay: one HTML file that needs nothing else, for people who decide about limits."""

import base64
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from html import escape

from headgate.conf import Conf
from headgate.errors import TableError
from headgate.folders import folder_at
from headgate.replay.plan import Plan
from headgate.replay.run import Trace
from headgate.replay.tables import ReplayTables
from headgate.report.replay import words
from headgate.report.replay.pictures import MOST_BROKERS, group_over_time, left_out, outcome_bars
from headgate.report.replay.screen import GROUPS
from headgate.report.replay.series import Steps, courses
from headgate.store_errors import said
from headgate.stores import joined

REPORT = "report.html"
MOST_GROUPS = 12
MOST_LISTED = 40
NO_BREAK = "\N{NO-BREAK SPACE}"
_BESIDE_NUMBER = re.compile(r"(?<=\d) |(?<=\w) (?=\d)")
_TENANTS = 'SELECT * FROM replay_tenants ORDER BY failed_msgs DESC, delayed_msgs DESC, tenant, "group", conf'
_STYLE = """
body { font: 15px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; color: #22262c; background: #fff;
  max-width: 1180px; margin: 2.2rem auto; padding: 0 1.4rem; }
h1 { font-size: 1.55rem; margin: 0 0 .2rem; } h2 { font-size: 1.2rem; margin: 2.4rem 0 .5rem; }
h3 { font-size: 1.02rem; margin: 1.7rem 0 .2rem; } p { margin: .35rem 0; } .quiet { color: #626a75; }
ul { margin: .3rem 0 .6rem; padding-left: 1.3rem; } .lead { border-left: 4px solid #3B7EA1; padding: .4rem 1rem;
  background: #f4f7fa; margin: 1.2rem 0; } img { width: 100%; height: auto; display: block; margin: .6rem 0; }
table { border-collapse: collapse; width: 100%; font-size: .88rem; font-variant-numeric: tabular-nums; }
th { text-align: right; border-bottom: 2px solid #c9ced6; padding: .3rem .5rem; font-weight: 600;
  vertical-align: bottom; }
td { text-align: right; border-bottom: 1px solid #e8ebef; padding: .28rem .5rem; white-space: nowrap; }
th.name, td.name { text-align: left; } td.name { white-space: normal; } tr.first td { border-top: 1px solid #aab1bb; }
td.bad { color: #a8321f; font-weight: 600; }
"""


def write_report(tables: ReplayTables, confs: Mapping[str, Conf], plans: Sequence[Plan], trace: Trace) -> str:
    """Write the report into the output folder; return its path. The same tables give the same file."""
    rows = tables.query(GROUPS).to_pylist()
    body = "\n".join(_body(tables, confs, plans, trace, rows))
    title = "Replay: " + " and ".join(confs) if len(confs) < 3 else f"Replay of {len(confs)} confs"
    return written(tables.output, REPORT, html_page(title, body))


def written(output: str, name: str, page: str) -> str:
    """Where the page is, once it is in the output folder. Raises TableError where it cannot be written."""
    try:
        folder = folder_at(output)
        folder.make()
        folder.write(name, page.encode())
    except OSError as error:
        raise TableError(
            f"the report {name} cannot be written to {output}: {said(error)}; the tables are there"
        ) from error
    return joined(output, name)


def html_page(title: str, body: str) -> str:
    """A page with the look of all reports. body: HTML."""
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style></head><body>\n{body}\n</body></html>\n"
    )


def name_cell(text: str) -> str:
    """A cell of words, which may wrap, but not between a number and its unit or name."""
    return f'<td class="name">{escape(_BESIDE_NUMBER.sub(NO_BREAK, text))}</td>'


def _body(
    tables: ReplayTables, confs: Mapping[str, Conf], plans: Sequence[Plan], trace: Trace, rows: list[words.Row]
) -> Iterator[str]:
    names = list(confs)
    offered = any(plan.rules.offered for plan in plans)
    first, last = (datetime.fromtimestamp(at / 1e6, UTC) for at in (trace.first_us, trace.last_us))
    yield f"<h1>What {_named(names)} would do to this traffic</h1>"
    kind = "what clients offered" if offered else "what brokers had admitted"
    yield (
        f'<p class="quiet">{first:%Y-%m-%d %H:%M:%S} to {last:%Y-%m-%d %H:%M:%S} UTC, {len(trace.brokers)} brokers; '
        f"rows taken as {kind}.</p>"
    )
    yield f'<div class="lead">{"".join(_lead(confs, rows, offered=offered))}</div>'
    yield "<h2>By group</h2>"
    groups = most_affected(rows, offered=offered)
    listed = [row for row in rows if row["group"] in groups[:MOST_LISTED]]
    if offered:
        yield image(outcome_bars(listed, names), "Messages admitted at once, delayed and failed, by group and conf")
    yield _table(listed, names, "group", offered=offered)
    yield from _more(len(groups), "groups", "replay_groups")
    yield "<h2>Over time</h2>"
    yield from _over_time(tables, plans, trace, rows)
    yield "<h2>By tenant</h2>"
    tenants = tables.query(_TENANTS).to_pylist()
    by_place: dict[tuple[str | None, str], list[words.Row]] = {}
    for row in tenants:
        by_place.setdefault((row["group"], row["tenant"]), []).append(row)
    chosen = [row for place in list(by_place)[:MOST_LISTED] for row in by_place[place]]
    yield _table(chosen, names, "tenant", offered=offered)
    yield from _more(len(by_place), "tenants", "replay_tenants")
    yield from _notes(plans, offered=offered)


def _lead(confs: Mapping[str, Conf], rows: Sequence[words.Row], *, offered: bool) -> Iterator[str]:
    """What differs, and what that changed."""
    (first, leading), *others = confs.items()
    if not others:
        yield f"<p>{_sentence(rows, offered=offered)}</p>"
    for name, conf in others:
        told = words.differences(leading, conf)
        changed = "; ".join(told) if told else "nothing that limits publishes"
        before, after = ([row for row in rows if row["conf"] == one] for one in (first, name))
        effects = words.effects(before, after, offered=offered)
        yield f"<p><b>{escape(first)} \N{RIGHTWARDS ARROW} {escape(name)}.</b> Changed: {escape(changed)}.</p>"
        if effects:
            yield "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in effects) + "</ul>"
        else:
            yield "<p>No group is delayed, failed or throttled differently.</p>"


def _sentence(rows: Sequence[words.Row], *, offered: bool) -> str:
    column, of, what = (
        ("failed_msgs", "offered_msgs", "fails")
        if offered
        else ("throttled_publishes", "offered_publishes", "is throttled")
    )
    hit = sorted((row for row in rows if row[column]), key=lambda row: -words.part(row, column, of))
    if not hit:
        return "Nothing fails." if offered else "Nothing is throttled."
    worst = "; ".join(f"{escape(words.group_name(row))} {words.percent(words.part(row, column, of))}" for row in hit)
    return f"Of what was offered {what}: {worst}."


def _over_time(tables: ReplayTables, plans: Sequence[Plan], trace: Trace, rows: Sequence[words.Row]) -> Iterator[str]:
    steps = Steps.of(trace)
    names = [plan.name for plan in plans]
    hit: dict[str | None, float] = {}
    for row in rows:
        harm = words.part(row, "failed_msgs") * 1000 + words.part(row, "throttled_publishes", "offered_publishes")
        hit[row["group"]] = max(hit.get(row["group"], 0.0), harm)
    order = sorted(hit, key=lambda name: (name is None, -hit[name], name or ""))
    for group in order[:MOST_GROUPS]:
        quotas = {plan.name: plan.quotas().get(group or "", (None, None)) for plan in plans}
        unit = "msgs" if group is None or any(pair[0] is not None for pair in quotas.values()) else "bytes"
        found = courses(tables, steps, group, unit)
        of_unit = {name: pair[unit == "bytes"] for name, pair in quotas.items()}
        name = f"Group {group}" if group else "Topics without a group"
        yield f"<h3>{escape(name)}</h3>"
        if others := left_out(found):
            yield f'<p class="quiet">The {MOST_BROKERS} brokers with the most traffic; {others} more are not drawn.</p>'
        yield image(group_over_time(found, names, of_unit, steps, unit), f"{name}: offered, admitted, limits over time")
    if len(order) > MOST_GROUPS:
        yield f'<p class="quiet">{len(order) - MOST_GROUPS} more groups are in replay_seconds and replay_limits.</p>'
    if steps.step_s > 1:
        yield f'<p class="quiet">Each step is the mean of {steps.step_s} s.</p>'


def _table(rows: Iterable[words.Row], confs: Sequence[str], by: str, *, offered: bool) -> str:
    """A line for each conf, those of one group or tenant together."""
    names = ["group"] if by == "group" else ["tenant", "group"]
    results = ["admitted", "delayed", "delay p50", "p99", "longest", "failed"] if offered else ["throttled"]
    judged = ["overshoot", "worst second", "fairness"] if by == "group" else []
    heads = [*names, *(["conf"] if len(confs) > 1 else []), *(["quota"] if by == "group" else [])]
    head = "".join(f'<th class="name">{one}</th>' for one in heads)
    head += "".join(f"<th>{one}</th>" for one in ["offered msgs", *results, *judged])
    lines = []
    before: object = None
    for row in sorted_by_conf(rows, confs, by):
        place = (row["group"], row.get("tenant"))
        cells = [words.group_name(row)] if by == "group" else [row["tenant"], words.group_name(row)]
        cells = cells if place != before else [""] * len(cells)
        cells += [row["conf"]] if len(confs) > 1 else []
        cells += [words.quota_of(row) if row["group"] else ""] if by == "group" else []
        numbers = "".join(_numbers(row, by, offered=offered))
        named = "".join(map(name_cell, cells))
        first = ' class="first"' if place != before else ""
        lines.append(f"<tr{first}>{named}{numbers}{name_cell(words.limiters_of(row))}</tr>")
        before = place
    head += '<th class="name">throttled by</th>'
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def most_affected(rows: Iterable[words.Row], *, offered: bool) -> list[str | None]:
    """Groups, those first of which most failed, or was throttled, under any conf; then those with most traffic."""
    column, of = ("failed_msgs", "offered_msgs") if offered else ("throttled_publishes", "offered_publishes")
    worst: dict[str | None, tuple[int, int]] = {}
    for row in rows:
        worst[row["group"]] = max(worst.get(row["group"], (0, 0)), (row[column], row[of]))
    return sorted(worst, key=lambda group: (*(-count for count in worst[group]), group or ""))


def _more(count: int, of: str, table: str) -> Iterator[str]:
    if count > MOST_LISTED:
        yield f'<p class="quiet">{count - MOST_LISTED:,} more {of} are in {table}.</p>'


def sorted_by_conf(rows: Iterable[words.Row], confs: Sequence[str], by: str) -> list[words.Row]:
    """Rows of one group, or tenant in a group, together and in the order of the confs; places as they come first."""
    listed = list(rows)
    places = {(row["group"], row.get("tenant")): number for number, row in reversed(list(enumerate(listed)))}
    number = {name: place for place, name in enumerate(confs)}
    return sorted(listed, key=lambda row: (places[row["group"], row.get("tenant")], number[row["conf"]], by))


def _numbers(row: words.Row, by: str, *, offered: bool) -> Iterator[str]:
    def cell(text: str, *, bad: bool = False) -> str:
        return f'<td class="bad">{text}</td>' if bad else f"<td>{text}</td>"

    yield cell(f"{row['offered_msgs']:,}")
    if offered:
        yield cell(words.percent(words.part(row, "admitted_msgs")))
        yield cell(words.percent(words.part(row, "delayed_msgs")))
        for name in ("p50", "p99", "max"):
            yield cell(words.duration(row[f"delay_{name}_ms"]))
        yield cell(words.percent(words.part(row, "failed_msgs")), bad=row["failed_msgs"] > 0)
    else:
        yield cell(words.percent(words.part(row, "throttled_publishes", "offered_publishes")))
    if by == "group":
        yield cell(words.percent(row["overshoot_percent"]))
        yield cell(words.percent(row["overshoot_max_percent"]))
        yield cell("-" if row["fairness"] is None else f"{row['fairness']:.3f}")


def _notes(plans: Sequence[Plan], *, offered: bool) -> Iterator[str]:
    delays = ", ".join(f"{plan.name} {plan.delay_ms} ms" for plan in plans if plan.shares)
    yield "<h2>How to read this</h2><ul>"
    if offered:
        timeout = ", ".join(sorted({words.duration(plan.rules.send_timeout_ms) for plan in plans}))
        yield (
            "<li>Percent are of the messages offered. Failed: waited longer than the client's send time-out "
            f"({timeout}).</li>"
        )
    yield (
        "<li>Overshoot: admitted above the quota, over the whole time and in the worst second. A token bucket lets a "
        "second's worth through at once after a pause, so a worst second of up to 100 % is no fault.</li>"
        "<li>Fairness: 1 where all brokers got the same part of their max-min share of the quota (Jain's index).</li>"
    )
    if delays:
        yield f"<li>New shares hold so long after the end of the epoch that they follow from: {escape(delays)}.</li>"
    yield "</ul>"


def image(svg: str, alt: str) -> str:
    """A picture inside of the page."""
    data = base64.b64encode(svg.encode()).decode()
    return f'<img alt="{escape(alt)}" src="data:image/svg+xml;base64,{data}">'


def _named(names: Sequence[str]) -> str:
    shown = [f"“{escape(name)}”" for name in names]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
