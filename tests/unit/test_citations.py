"""Sections of docs/spec that code, tests and docs cite are there, and what the page of the rules names."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.conformance.registry import KINDS

ROOT = Path(__file__).parents[2]
SPECS = {file.stem: file for file in sorted((ROOT / "docs" / "spec").glob("*.md"))}
NUMBER = r"\d+(?:\.\d+)*"
CITED = re.compile(rf"\b({'|'.join(SPECS)})(?:\.md)?\s+({NUMBER}(?:(?:,| and| to| or)\s+{NUMBER})*)")
HEADING = re.compile(rf"#+ ({NUMBER})[. ]")
ITEM = re.compile(r"(?:\* )?(?:\*\*|\| )?((?:\d+\.)*\d+)[. ]")


def citations(folder: str) -> Iterator[tuple[str, str, str]]:
    """File, specification and section of each."""
    for file in sorted((ROOT / folder).rglob("*")):
        if file.suffix in {".py", ".md"} and file.parent != ROOT / "docs" / "spec":
            text = re.sub(r"\n\s*#?\s*", "\n", file.read_text())
            for spec, numbers in CITED.findall(text):
                for number in re.findall(NUMBER, numbers):
                    yield file.relative_to(ROOT).as_posix(), spec, number


def sections(spec: Path) -> Iterator[str]:
    """Numbers of headings and, below them, of the items of their lists."""
    heading = ""
    for line in spec.read_text().splitlines():
        if found := HEADING.match(line):
            heading = found[1]
            yield heading
        elif found := ITEM.match(line):
            yield found[1] if found[1].startswith(f"{heading}.") else f"{heading}.{found[1]}"


@pytest.mark.parametrize(("folder", "least"), [("lib", 500), ("jobs", 0), ("tests", 100), ("docs", 10)])
def test_every_section_that_is_cited_is_there(folder: str, least: int) -> None:
    there = {spec: set(sections(file)) for spec, file in SPECS.items()}
    cited = list(citations(folder))
    assert len(cited) >= least
    assert not [citation for citation in cited if citation[2] not in there[citation[1]]]


def test_the_page_of_the_rules_names_files_and_kinds_of_vectors_that_are_there() -> None:
    lines = [line.split("|") for line in (ROOT / "docs" / "rules.md").read_text().splitlines() if line.startswith("|")]
    rules = [[cell.strip() for cell in line[1:-1]] for line in lines[2:]]
    folders = [ROOT / "lib" / "headgate" / folder for folder in ("core", "conformance")]
    files = {file for rule in rules for file in re.findall(r"`([\w/]+\.py)`", f"{rule[2]} {rule[3]}")}
    assert not [file for file in sorted(files) if not any((folder / file).is_file() for folder in folders)]
    assert {kind for rule in rules for kind in re.findall(r"`(\w+)`", rule[4])} == KINDS.keys()
