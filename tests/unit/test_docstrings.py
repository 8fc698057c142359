"""What docstrings refer to by a dotted name is there."""

import re
from collections import defaultdict
from pathlib import Path

LIB = Path(__file__).parents[2] / "lib"
DOTTED = re.compile(r"(?<![\w/.])([a-z_]+(?:\.\w+)*\.[A-Z]\w*)(?!\w)")
"""A class or constant in a module."""
DOCSTRING = re.compile(r'"""(.*?)"""', re.DOTALL)
DEFINED = re.compile(r"^(?:class |def )?(\w+(?:, \w+)*)", re.MULTILINE)
"""What begins a line that is not indented, several with commas between them: to parse the sources takes seconds."""


def module_of(file: Path) -> str:
    return ".".join(file.relative_to(LIB).with_suffix("").parts).removesuffix(".__init__")


def test_classes_and_constants_that_docstrings_name_with_their_module_are_there() -> None:
    sources = {file: file.read_text() for file in sorted(LIB.rglob("*.py"))}
    by_end: dict[str, set[str]] = defaultdict(set)
    for file, source in sources.items():
        parts = module_of(file).split(".")
        in_module = {name for line in DEFINED.findall(source) for name in line.split(", ")}
        for begin in range(len(parts)):
            by_end[".".join(parts[begin:])].update(in_module)
    ours = {part for end in by_end for part in end.split(".")}
    named = {
        (file.relative_to(LIB).as_posix(), name)
        for file, source in sources.items()
        for text in DOCSTRING.findall(source)
        for name in DOTTED.findall(text)
        if name.partition(".")[0] in ours
    }
    assert len(named) > 50
    assert not [
        (file, name) for file, name in sorted(named) if name.rpartition(".")[2] not in by_end[name.rpartition(".")[0]]
    ]
