"""The core knows no engine, no clock and no I/O."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import headgate.core

CORE = Path(headgate.core.__file__).parent
LIB = CORE.parent.parent
ENGINES = {"pyspark", "pandas", "pyarrow", "deltalake", "delta"}
OUTSIDE = {"time", "datetime", "logging", "os", "io", "sys", "pathlib", "random", "threading", "subprocess", "socket"}
ALLOWED = {"collections", "dataclasses", "enum", "math", "typing"}
READABLE = sorted(path for path in CORE.rglob("*.py") if "kernels" not in path.relative_to(CORE).parts)
MODULES = [".".join(path.relative_to(LIB).with_suffix("").parts) for path in READABLE if path.stem != "__init__"]


def imported_names(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module


def packages(path):
    return {name.split(".")[0] for name in imported_names(path)}


@pytest.mark.parametrize("path", READABLE, ids=lambda path: str(path.relative_to(CORE)))
def test_a_core_module_imports_the_core_its_errors_and_plain_python_alone(path):
    foreign = {name for name in imported_names(path) if name.startswith("headgate")}

    assert all(name.startswith(("headgate.core.", "headgate.errors")) for name in foreign)
    assert set() == packages(path) - ALLOWED - {"headgate"}
    assert set() == packages(path) & (ENGINES | OUTSIDE)


@pytest.mark.parametrize("path", sorted((CORE / "kernels").glob("*.py")), ids=lambda path: path.name)
def test_a_kernel_imports_no_engine(path):
    assert set() == packages(path) & ENGINES


@pytest.mark.parametrize("path", READABLE, ids=lambda path: str(path.relative_to(CORE)))
def test_a_core_module_opens_and_prints_nothing(path):
    called = {
        node.func.id
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }

    assert set() == called & {"open", "print", "input", "exec", "eval", "__import__"}


def test_importing_the_core_in_a_fresh_interpreter_loads_no_engine():
    script = f"import sys; sys.path.insert(0, {str(LIB)!r})\n" + "".join(f"import {name}\n" for name in MODULES)
    loaded = subprocess.run(
        [sys.executable, "-I", "-c", script + "print(*sys.modules)"], capture_output=True, text=True, check=True
    ).stdout.split()

    assert set(MODULES) <= set(loaded)
    assert set() == {name.split(".")[0] for name in loaded} & ENGINES
