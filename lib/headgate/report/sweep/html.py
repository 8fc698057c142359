"""The report of a sweep: one HTML file that needs nothing else, for people who run brokers."""

from collections.abc import Iterator, Sequence
from html import escape

from headgate.report.replay.html import html_page, image, name_cell, written
from headgate.report.sweep import words
from headgate.report.sweep.pictures import memory, miss_ratio_curves, savings
from headgate.sizing.advice import Advice, RowOfSweep, advise, miss_ratio, saved

REPORT = "report.html"
MOST_BROKERS = 6
MOST_LISTED = 200
_NOTES = (
    "Misses are entries that came from storage, of all that were read.",
    "Saved are bytes from storage, against the conf of now.",
    "Each broker has a cache of the size shown; counts and bytes are of all brokers together.",
    "belady knows the whole future. Where all entries are of one size no policy has more hits.",
    "Where sizes differ belady is a yardstick, which a policy may pass: it treats entries as if they were of one size.",
    "belady hits entry by entry, whatever headgate.cache.rangeHits says for the others.",
    "pip430, size_proportional and by_mark_delete are rules of Pulsar's releases.",
    "The other policies are in no broker: they show what a better rule would bring, and are not recommended.",
    "Dashed: the best of the key values that were tried, size by size.",
    "Memory kept is an estimate: entries that are slices of receive buffers keep them whole.",
)


def write_report(rows: Sequence[RowOfSweep], output: str, about: str) -> str:
    """Write the report into the output folder; return its path. rows: of cache_sweep. about: what the trace is."""
    return written(output, REPORT, html_page("Entry caches: sizes, policies, conf", "\n".join(_body(rows, about))))


def _body(rows: Sequence[RowOfSweep], about: str) -> Iterator[str]:
    together = [row for row in rows if row["broker"] is None]
    advice = advise(together)
    brokers = _by_traffic(rows)
    yield "<h1>What other caches would have done with this traffic</h1>"
    yield f'<p class="quiet">{escape(about)}</p>'
    yield f'<div class="lead">{_lead(advice)}</div>'
    yield "<h2>Misses by size of the cache</h2>"
    name = "all brokers together" if len(brokers) > 1 else ""
    yield image(miss_ratio_curves(together, name), "Miss ratio by cache size, a line for each policy")
    for broker in brokers[:MOST_BROKERS] if len(brokers) > 1 else []:
        of_one = [row for row in rows if row["broker"] == broker]
        yield image(miss_ratio_curves(of_one, f"broker {broker}"), f"Miss ratio by cache size on broker {broker}")
    if len(brokers) > MOST_BROKERS:
        more = len(brokers) - MOST_BROKERS
        yield f'<p class="quiet">{more} brokers with fewer reads are not drawn; cache_sweep has them.</p>'
    yield "<h2>Bytes from storage</h2>"
    yield image(savings(together, advice.present), "Bytes from storage saved against the present conf, by cache size")
    yield "<h2>Memory</h2>"
    yield image(memory(together), "Memory that cached entries keep, by cache size")
    yield "<h2>All that was tried</h2>"
    yield _table(together, advice.present)
    if len(together) > MOST_LISTED:
        yield f'<p class="quiet">{len(together) - MOST_LISTED} more are in cache_sweep.</p>'
    yield _notes(together)


def _lead(advice: Advice) -> str:
    told = "".join(f"<p><b>{escape(line)}</b></p>" for line in words.recommendation(advice))
    reasons = "".join(f"<li>{escape(line)}</li>" for line in words.why(advice))
    others = "".join(f"<li>{escape(line)}</li>" for line in words.at_other_sizes(advice))
    return f"{told}<ul>{reasons}</ul>" + (
        f"<p>With the policy of now, in other sizes:</p><ul>{others}</ul>" * bool(others)
    )


def _by_traffic(rows: Sequence[RowOfSweep]) -> list[str]:
    """Brokers, those first that read most."""
    asked = {
        row["broker"]: row["hits"] + row["misses"] for row in rows if row["is_present"] and row["broker"] is not None
    }
    return sorted(asked, key=lambda broker: (-asked[broker], broker))


def _table(rows: Sequence[RowOfSweep], present: RowOfSweep) -> str:
    heads = ("misses", "from storage", "saved", "storage reads", "mean cached", "peak", "mean memory kept")
    head = "".join(f'<th class="name">{one}</th>' for one in ("cache", "policy", "keys"))
    head += "".join(f"<th>{one}</th>" for one in heads)
    lines = []
    ordered = sorted(rows, key=lambda row: (row["max_bytes"], row["storage_bytes"], row["combination"]))
    before = None
    for row in ordered[:MOST_LISTED]:
        first = ' class="first"' if row["max_bytes"] != before else ""
        before = row["max_bytes"]
        names = (
            words.size(row["max_bytes"]),
            row["policy"],
            "as now: this is it" if row["is_present"] else words.settings(row),
        )
        cells = "".join(map(name_cell, names))
        lines.append(f"<tr{first}>{cells}{''.join(f'<td>{one}</td>' for one in _numbers(row, present))}</tr>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def _numbers(row: RowOfSweep, present: RowOfSweep) -> Iterator[str]:
    yield words.percent(miss_ratio(row))
    yield words.size(row["storage_bytes"])
    yield words.percent(saved(row, present))
    yield "-" if row["storage_reads"] is None else f"{row['storage_reads']:,}"
    for name in ("mean_bytes", "peak_bytes", "mean_pinned_bytes"):
        yield "-" if row[name] is None else words.size(row[name])


def _notes(rows: Sequence[RowOfSweep]) -> str:
    notes = [*_NOTES, *words.of_sample(next(row for row in rows if row["is_present"]))]
    return f"<h2>How to read this</h2><ul>{''.join(f'<li>{escape(note)}</li>' for note in notes)}</ul>"
