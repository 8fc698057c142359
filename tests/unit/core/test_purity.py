"""The core and the oracles open nothing and load no engine; tests/unit/test_boundaries.py checks what they import."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import headgate

HEADGATE = Path(headgate.__file__).parent
LIB = HEADGATE.parent
ENGINES = {"pyspark", "pandas", "pyarrow", "deltalake", "delta"}
PURE = HEADGATE / "core", HEADGATE / "conformance" / "oracles"
READABLE = sorted(
    path for folder in PURE for path in folder.rglob("*.py") if "kernels" not in path.relative_to(LIB).parts
)
MODULES = [".".join(path.relative_to(LIB).with_suffix("").parts) for path in READABLE if path.stem != "__init__"]


@pytest.mark.parametrize("path", READABLE, ids=lambda path: str(path.relative_to(HEADGATE)))
def test_a_module_of_the_core_opens_and_prints_nothing(path):
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
