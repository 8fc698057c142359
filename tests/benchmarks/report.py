"""Makes docs/benchmarks.md of the kept results (results/*.jsonl).

python tests/benchmarks/report.py            writes the page
python tests/benchmarks/report.py --check    changes nothing; status 1 if the page is not what the results say
"""

import argparse
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from _bench import RESULTS, Record, bound_of, number, was_quiet

PAGE = Path(__file__).parents[2] / "docs" / "benchmarks.md"
HEAD = """# Benchmarks

Made by `python tests/benchmarks/report.py` of the runs kept in `tests/benchmarks/results`; not edited by hand.
A value is the median of the repetitions. Sides that are compared take turns within one run, and a ratio is the median
of the rounds' ratios. `load` is the mean number of running processes in the minute before: 0.0 is a quiet machine.
"""


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """The lines of a table, followed by an empty one."""
    yield "| " + " | ".join(columns) + " |"
    yield "|" + "---|" * len(columns)
    for row in rows:
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"
    yield ""


def of_kind(records: Sequence[Record], kind: str) -> list[Record]:
    """The records of one kind, in the order of the run."""
    return [record for record in records if record["record"] == kind]


def spread(record: Record) -> str:
    """Smallest and largest value."""
    return f"{number(record['min'])} to {number(record['max'])}"


def targets(title: str, records: Sequence[Record]) -> Iterator[Sequence[str]]:
    """A row for each target of a benchmark."""
    for record in of_kind(records, "target"):
        met = "met" if record["met"] else "**not met**"
        yield title, record["name"], bound_of(record), number(record["median"]), spread(record), met


def section(records: Sequence[Record]) -> Iterator[str]:
    """What one benchmark measured, on what, and what held."""
    benchmark = records[0]
    yield f"## {benchmark['title']}"
    yield ""
    if benchmark["about"]:
        yield benchmark["about"]
        yield ""
    yield f"Run on {benchmark['date']}; again with `python tests/benchmarks/{benchmark['name']}.py --save`."
    yield "; ".join(f"{name}: {value}" for name, value in benchmark["machine"].items()) + "."
    yield from [] if was_quiet(benchmark) else ["**The machine was busy: these numbers are rough.**"]
    yield ""
    rows = [
        (record["name"], record["unit"], number(record["median"]), spread(record), str(record["repetitions"]))
        for record in of_kind(records, "measurement")
    ]
    if rows:
        yield from table(("measured", "unit", "median", "min to max", "repetitions"), rows)
    for record in of_kind(records, "table"):
        yield record["title"]
        yield ""
        yield from table(record["columns"], record["rows"])
    for record in of_kind(records, "check"):
        yield f"* {record['name']}: {'yes' if record['passed'] else '**no**'}"
    yield from [""] if of_kind(records, "check") else []
    for record in of_kind(records, "note"):
        yield record["text"]
        yield ""


def page(runs: Sequence[Sequence[Record]]) -> str:
    """The whole page: all targets first, then a section for each benchmark."""
    lines = [HEAD]
    rows = [row for records in runs for row in targets(records[0]["title"], records)]
    lines += table(("benchmark", "what", "target", "measured", "min to max", "met"), rows)
    for records in runs:
        lines += section(records)
    return "\n".join(lines).rstrip() + "\n"


def main() -> int:
    """0, or 1 where `--check` finds another page."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--check", action="store_true", help="compare instead of writing")
    arguments = options.parse_args()
    files = sorted(RESULTS.glob("*.jsonl"))
    text = page([[json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] for file in files])
    if not arguments.check:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == text:
        return 0
    print(f"docs/{PAGE.name} is not what the results say; run python tests/benchmarks/report.py")
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
