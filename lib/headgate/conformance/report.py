"""What a replay found: one result per vector, counted per file and kind."""

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any


class Outcome(StrEnum):
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
    def outcome(self) -> Outcome:
        """Failed with any mismatch, else skipped with a reason, else passed."""
        if self.mismatches:
            return Outcome.FAILED
        return Outcome.PASSED if self.skip_reason is None else Outcome.SKIPPED


@dataclass(slots=True)
class Report:
    """Every vector of every file in the order of the replay; each is counted in exactly one outcome."""

    results: list[VectorResult] = field(default_factory=list)

    def count(self, outcome: Outcome) -> int:
        """How many vectors ended so."""
        return sum(result.outcome is outcome for result in self.results)

    @property
    def exit_status(self) -> int:
        """1 with any failure, else 0."""
        return 1 if self.count(Outcome.FAILED) else 0

    @property
    def failed(self) -> list[VectorResult]:
        """The vectors with mismatches."""
        return [result for result in self.results if result.outcome is Outcome.FAILED]

    def by_file_and_kind(self) -> dict[tuple[Path, str], list[VectorResult]]:
        """The results grouped in the order in which files and kinds were first met."""
        groups: dict[tuple[Path, str], list[VectorResult]] = {}
        for result in self.results:
            groups.setdefault((result.file, result.kind), []).append(result)
        return groups
