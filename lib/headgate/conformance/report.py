"""What a replay found: one result per vector, counted per file and kind, and as text."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from headgate.conformance.vector_file import shortened

FAILURES_SHOWN = 10


class VectorOutcome(StrEnum):
    """How one vector ended."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One result that is not the expected one; `path` leads to its operation, through repeats."""

    path: str
    op: str
    expected: Any
    got: Any


@dataclass(frozen=True, slots=True)
class VectorResult:
    """One vector's outcome: mismatches where it failed, a reason where it was skipped."""

    file: Path
    vector_id: str
    kind: str
    mismatches: tuple[Mismatch, ...] = ()
    skip_reason: str | None = None

    @property
    def outcome(self) -> VectorOutcome:
        """Failed with any mismatch, else skipped with a reason, else passed."""
        if self.mismatches:
            return VectorOutcome.FAILED
        return VectorOutcome.PASSED if self.skip_reason is None else VectorOutcome.SKIPPED


@dataclass(slots=True)
class Report:
    """Every vector of every file in the order of the replay; each is counted in exactly one outcome."""

    results: list[VectorResult] = field(default_factory=list)

    def count(self, outcome: VectorOutcome) -> int:
        """How many vectors ended so."""
        return sum(result.outcome is outcome for result in self.results)

    @property
    def exit_status(self) -> int:
        """1 with any failure, else 0."""
        return 1 if self.count(VectorOutcome.FAILED) else 0

    @property
    def failed(self) -> list[VectorResult]:
        """The vectors with mismatches."""
        return [result for result in self.results if result.outcome is VectorOutcome.FAILED]

    def by_file_and_kind(self) -> dict[tuple[Path, str], list[VectorResult]]:
        """The results grouped in the order in which files and kinds were first met."""
        groups: dict[tuple[Path, str], list[VectorResult]] = {}
        for result in self.results:
            groups.setdefault((result.file, result.kind), []).append(result)
        return groups


def report_lines(report: Report) -> Iterator[str]:
    """The lines of a report; the last one is `N passed, N failed, N skipped`."""
    yield from _count_lines(report)
    yield from _skip_lines(report)
    for result in report.failed[:FAILURES_SHOWN]:
        yield from _failure_lines(result)
    hidden = len(report.failed) - FAILURES_SHOWN
    if hidden > 0:
        yield f"... and {hidden} failed vectors more"
    yield ", ".join(f"{report.count(outcome)} {outcome}" for outcome in VectorOutcome)


def _count_lines(report: Report) -> Iterator[str]:
    file_above = None
    for (file, kind), results in report.by_file_and_kind().items():
        if file != file_above:
            yield str(file)
            file_above = file
        counts = Counter(result.outcome for result in results)
        yield f"  {kind:<24}" + ", ".join(f"{counts[outcome]:>5} {outcome}" for outcome in VectorOutcome)


def _skip_lines(report: Report) -> Iterator[str]:
    reasons = Counter(
        (result.kind, result.skip_reason) for result in report.results if result.outcome is VectorOutcome.SKIPPED
    )
    for (kind, reason), count in reasons.items():
        yield f"skipped {count} of {kind}: {reason}"


def _failure_lines(result: VectorResult) -> Iterator[str]:
    for mismatch in result.mismatches:
        yield f"FAILED {result.vector_id} ({result.kind}) at {mismatch.path}, {mismatch.op}"
        yield f"  expected {shortened(mismatch.expected)}"
        yield f"  got      {shortened(mismatch.got)}"
