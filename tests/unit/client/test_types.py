"""Programs that use the client type-check against the package as it is installed, in strict mode."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[3]
PROGRAM = Path(__file__).with_name("typed_program.py")
EXAMPLE = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
STRICT = ["--strict", "--config-file=", f"--cache-dir={ROOT / '.cache' / 'mypy-of-programs'}"]


def checked(*programs: Path) -> str:
    """What mypy says of programs outside of the repository, to which lib is a folder of installed packages."""
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *STRICT, *programs],
        cwd=programs[0].parent,
        env={**os.environ, "PYTHONPATH": str(ROOT / "lib")},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def test_a_program_and_the_examples_of_the_documentation_type_check(tmp_path: Path) -> None:
    examples = EXAMPLE.findall((ROOT / "docs" / "client.md").read_text())
    assert examples
    programs = [tmp_path / "program.py", *(tmp_path / f"example_{number}.py" for number in range(len(examples)))]
    for program, text in zip(programs, [PROGRAM.read_text(), *examples], strict=True):
        program.write_text(text)

    assert checked(*programs) == f"Success: no issues found in {len(programs)} source files\n"


def test_the_marker_of_a_typed_package_is_installed_with_it() -> None:
    data = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    assert (data["headgate"], (ROOT / "lib" / "headgate" / "py.typed").read_text()) == (["py.typed"], "")
