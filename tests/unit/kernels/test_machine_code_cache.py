"""Kernels run wherever Python can import them, and never with machine code of older sources."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import headgate.core

CORE = Path(headgate.core.__file__).parent
ADD = "from headgate.core.kernels.int128 import sat_add as f; print(f(2, 3), f.stats.cache_path)"


@pytest.fixture
def tree(tmp_path):
    """A source tree with the kernels alone, to be changed at will."""
    core = tmp_path / "lib" / "headgate" / "core"
    kernels = core / "kernels"
    kernels.mkdir(parents=True)
    (core.parent / "__init__.py").touch()
    shutil.copy(CORE / "__init__.py", core)
    for name in ("__init__.py", "compiled.py", "int128.py"):
        shutil.copy(CORE / "kernels" / name, kernels)
    return tmp_path / "lib"


def run(path, program, home):
    """What `program` prints in a new interpreter that imports headgate from `path` and may write below `home` only."""
    settings = {"PYTHONPATH": str(path), "HOME": str(home), "XDG_CACHE_HOME": str(home)}
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")} | settings
    finished = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], env=environment, capture_output=True, text=True, check=False
    )
    assert finished.stderr == ""
    return finished.stdout.split()


@pytest.fixture
def no_home(tmp_path):
    """A home in which nothing can be created, for any user."""
    file = tmp_path / "home"
    file.touch()
    return file


def test_an_archive_runs_where_the_user_has_no_home(tree, no_home):
    archive = shutil.make_archive(str(tree), "zip", tree)
    assert run(archive, ADD, no_home)[0] == "5"


def test_read_only_sources_run_where_the_user_has_no_home(tree, no_home):
    (tree / "headgate" / "core" / "kernels" / "__pycache__").touch()
    assert run(tree, ADD, no_home) == ["5", "None"]


def test_a_source_tree_keeps_its_machine_code_beside_itself(tree, no_home):
    kernels = tree / "headgate" / "core" / "kernels"
    assert run(tree, ADD, no_home) == ["5", str(kernels / "__pycache__")]
    assert [file.name for file in kernels.rglob("int128.sat_add-*.nbc")] != []


@pytest.mark.parametrize("package", [pytest.param("kernels", marks=pytest.mark.long), "quota"])
def test_a_change_in_one_file_reaches_compiled_callers_in_others(tree, no_home, package):
    kernels = tree / "headgate" / "core" / "kernels"
    folder = kernels.parent / package
    folder.mkdir(exist_ok=True)
    (kernels / "caller.py").write_text(
        "from headgate.core.kernels.compiled import kernel\n"
        f"from headgate.core.{package}.callee import one\n"
        "@kernel\n"
        "def total(a):\n"
        "    return a + one()\n"
    )
    callee = "from headgate.core.kernels.compiled import kernel\n@kernel\ndef one():\n    return {}\n"
    program = "from headgate.core.kernels.caller import total; print(total(1))"
    printed = []
    for value in (1, 10):
        (folder / "callee.py").write_text(callee.format(value))
        printed += run(tree, program, no_home)
    assert printed == ["2", "11"]
