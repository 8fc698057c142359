"""A report as text: counts per file and kind, the first mismatches, the totals in the last line."""

from collections import Counter
from collections.abc import Iterator

from headgate.conformance.report import Outcome, Report, VectorResult
from headgate.conformance.vector_file import shortened

FAILURES_SHOWN = 10


def report_lines(report: Report) -> Iterator[str]:
    """The lines of a report; the last one is `N passed, N failed, N skipped`."""
    yield from _count_lines(report)
    yield from _skip_lines(report)
    for result in report.failed[:FAILURES_SHOWN]:
        yield from _failure_lines(result)
    hidden = len(report.failed) - FAILURES_SHOWN
    if hidden > 0:
        yield f"... and {hidden} failed vectors more"
    yield ", ".join(f"{report.count(outcome)} {outcome}" for outcome in Outcome)


def _count_lines(report: Report) -> Iterator[str]:
    file_above = None
    for (file, kind), results in report.by_file_and_kind().items():
        if file != file_above:
            yield str(file)
            file_above = file
        counts = Counter(result.outcome for result in results)
        yield f"  {kind:<24}" + ", ".join(f"{counts[outcome]:>5} {outcome}" for outcome in Outcome)


def _skip_lines(report: Report) -> Iterator[str]:
    reasons = Counter(
        (result.kind, result.skip_reason) for result in report.results if result.outcome is Outcome.SKIPPED
    )
    for (kind, reason), count in reasons.items():
        yield f"skipped {count} of {kind}: {reason}"


def _failure_lines(result: VectorResult) -> Iterator[str]:
    for mismatch in result.mismatches:
        yield f"FAILED {result.vector_id} ({result.kind}) at {mismatch.path}, {mismatch.op}"
        yield f"  expected {shortened(mismatch.expected)}"
        yield f"  got      {shortened(mismatch.got)}"
