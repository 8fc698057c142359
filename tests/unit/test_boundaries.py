"""Who may import what, as far as import-linter (pyproject.toml) does not see it: the standard library and the jobs."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CORE = ROOT / "lib" / "headgate" / "core"

# What a pure computation needs of the standard library: values, types, arithmetic. No clock, files, threads or chance.
PURE = {
    *(
        "__future__",
        "abc",
        "bisect",
        "collections",
        "copy",
        "dataclasses",
        "enum",
        "functools",
        "heapq",
        "itertools",
        "re",
    ),
    *("math", "numbers", "operator", "struct", "types", "typing", "zlib"),  # zlib: crc32 as a hash of names
}
KERNELS_ONLY = {"numba", "numpy", "hashlib", "importlib", "pickle"}  # the latter three renew the compiled code


def imported(file: Path) -> Iterator[str]:
    """Every module that a file imports, at its top or inside a function."""
    for node in import_nodes(file):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif node.module and not node.level:
            yield node.module


@cache
def import_nodes(file: Path) -> list[ast.Import | ast.ImportFrom]:
    """The statements that import, wherever they stand."""
    tree = ast.parse(file.read_text())
    return [node for node in statements(tree) if isinstance(node, ast.Import | ast.ImportFrom)]


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Statements at any depth; what only expressions hold is passed over."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            inner = getattr(node, name, ())
            waiting += inner if isinstance(inner, list) else ()


def files(folder: Path) -> list[Path]:
    found = sorted(folder.rglob("*.py"))
    assert found, f"no Python files in {folder}"
    return found


def within(module: str, *packages: str) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


@pytest.mark.parametrize("file", files(CORE), ids=lambda file: file.relative_to(CORE).as_posix())
def test_the_core_imports_itself_the_errors_and_pure_modules(file: Path) -> None:
    allowed = PURE | KERNELS_ONLY if "kernels" in file.parts else PURE
    others = {
        module
        for module in imported(file)
        if not within(module, "headgate.core", "headgate.errors") and module.partition(".")[0] not in allowed
    }
    assert not others


@pytest.mark.parametrize("file", files(ROOT / "jobs"), ids=lambda file: file.name)
def test_jobs_build_on_the_package_and_leave_the_rules_to_it(file: Path) -> None:
    assert not [module for module in imported(file) if within(module, "headgate.core")]


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Imports inside functions and for types alone count: who reads one of the circle has to read all of it."""
    lib = ROOT / "lib"
    modules = {".".join(file.relative_to(lib).with_suffix("").parts): file for file in files(lib / "headgate")}
    imports = {module: set(names(file)) & modules.keys() - {module} for module, file in modules.items()}
    assert list(TopologicalSorter(imports).static_order())


def names(file: Path) -> Iterator[str]:
    """What a file imports, and each name of it, which can be a module as well."""
    yield from imported(file)
    for node in import_nodes(file):
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_the_core_runs_where_nothing_is_installed() -> None:
    """-S leaves out site-packages: the readable core is all that can be imported."""
    relative = (file.relative_to(ROOT / "lib").with_suffix("") for file in files(CORE) if "kernels" not in file.parts)
    modules = ", ".join(".".join(path.parts).removesuffix(".__init__") for path in relative)
    command = [sys.executable, "-S", "-c", f"import {modules}"]
    done = subprocess.run(command, cwd=ROOT / "lib", capture_output=True, text=True, check=False)
    assert not done.stderr


def test_the_readable_engine_loads_no_compiler() -> None:
    program = (
        "import sys, headgate.throttle.key_operator, headgate.throttle.readable_form; print('numba' in sys.modules)"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=ROOT / "lib", capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("False\n", "")
