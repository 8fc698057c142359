"""What docstrings refer to by a dotted name is there."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

LIB = Path(__file__).parents[2] / "lib"
DOTTED = re.compile(r"(?<![\w/.])([a-z_]+(?:\.\w+)*\.[A-Z]\w*)(?!\w)")
"""A class or constant in a module."""


def module_of(file: Path) -> str:
    return ".".join(file.relative_to(LIB).with_suffix("").parts).removesuffix(".__init__")


def docstrings(tree: ast.AST) -> Iterator[str]:
    """Those of values, too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value.value


def names(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield node.name
        for one in ast.walk(node) if isinstance(node, ast.Assign | ast.AnnAssign) else ():
            if isinstance(one, ast.Name):
                yield one.id


def test_classes_and_constants_that_docstrings_name_with_their_module_are_there() -> None:
    trees = {file: ast.parse(file.read_text()) for file in sorted(LIB.rglob("*.py"))}
    by_end: dict[str, set[str]] = defaultdict(set)
    for file, tree in trees.items():
        parts, in_module = module_of(file).split("."), set(names(tree))
        for begin in range(len(parts)):
            by_end[".".join(parts[begin:])].update(in_module)
    ours = {part for end in by_end for part in end.split(".")}
    named = {
        (file.relative_to(LIB).as_posix(), name)
        for file, tree in trees.items()
        for text in docstrings(tree)
        for name in DOTTED.findall(text)
        if name.partition(".")[0] in ours
    }
    assert len(named) > 50
    assert not [
        (file, name) for file, name in sorted(named) if name.rpartition(".")[2] not in by_end[name.rpartition(".")[0]]
    ]
