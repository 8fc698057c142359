"""Breaks single expressions of the rules, one at a time, and sees whether a test notices: mutation testing with mutmut.

    .venv/bin/python -m pip install 'mutmut>=3.8,<4'
    .venv/bin/python tests/mutants.py

One mutant of each function in some files of each package; kernels, which tests compare with these rules, and the words
of errors are left out. Prints what survived, and ends with status 1 if a tenth or more did. Takes an hour.
"""

import argparse
import json
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / ".cache" / "mutants"
PACKAGES = ("core", "rows", "throttle", "quota", "protocol", "cache")
FILES = 12
"""Of each package."""
SURVIVES_MOST = 0.1
COPIED = (
    *("conf", "docs", "jobs", "scripts", "tests"),
    *("README.md", "CHANGELOG.md", "requirements.lock", "spark-submit.sh"),
)
TESTS = (
    *("core", "rows", "throttle", "quota", "quota_loop", "protocol", "cache", "connections", "conformance", "keyed"),
    *("kernels", "engines", "report", "tryout", "replay", "sizing"),
)
"""Folders of unit tests that use these packages."""
OF_SOURCES = (
    "unit/core/test_purity.py",
    "unit/kernels/test_machine_code_cache.py",
    "conformance/test_runner.py::test_the_module_runs_the_command",
)
"""Tests of the source files, which are others here."""
SURVIVED, UNTESTED = (0,), (5, 33)
"""Exit codes of pytest, and of mutmut where no test calls a function."""
SETTINGS = """
[tool.mutmut]
source_paths = ["headgate"]
only_mutate = {files}
do_not_mutate_patterns = ['raise \\w+']
pytest_add_cli_args_test_selection = {tests}
pytest_add_cli_args = {options}
process_isolation = "forkserver"
also_copy = {copied}
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--number", type=int, default=5, help="which of a function's mutants, from 1 (default 5)")
    parser.add_argument("--seed", type=int, default=1, help="of the choice of files")
    options = parser.parse_args()
    lay_out(random.Random(options.seed))
    mutmut("run", "--max-children", "2", f"*__mutmut_{options.number}")
    return told(f"__mutmut_{options.number}")


def lay_out(chosen: random.Random) -> None:
    """The project as mutmut wants it: the package beside its tests."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    ignored = shutil.ignore_patterns("__pycache__", "*.nbi", "*.nbc")
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, FOLDER / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, FOLDER)
    shutil.copytree(ROOT / "lib" / "headgate", FOLDER / "headgate", ignore=ignored)
    files = [str(file.relative_to(FOLDER)) for package in PACKAGES for file in some_files(package, chosen)]
    text = (ROOT / "pyproject.toml").read_text()
    text = re.sub(r"(?m)^pythonpath = .*$", 'pythonpath = [".", "tests"]', text)
    settings = SETTINGS.format(
        files=json.dumps(files),
        tests=json.dumps([*(f"tests/unit/{name}" for name in TESTS), "tests/conformance"]),
        options=json.dumps(["-n0", *(f"--deselect=tests/{name}" for name in OF_SOURCES)]),
        copied=json.dumps(COPIED),
    )
    (FOLDER / "pyproject.toml").write_text(text + settings)


def some_files(package: str, chosen: random.Random) -> Sequence[Path]:
    """Those with functions of their own."""
    known = sorted((FOLDER / "headgate" / package).rglob("*.py"))
    return chosen.sample([file for file in known if "kernels" not in file.parts and "def " in file.read_text()], FILES)


def mutmut(*arguments: str) -> str:
    """What it prints. Raises CalledProcessError if it fails; its words are in the folder then."""
    with (FOLDER / "mutmut.log").open("w+") as log:
        subprocess.run([sys.executable, "-m", "mutmut", *arguments], cwd=FOLDER, check=True, stdout=log, stderr=log)
        log.seek(0)
        return log.read()


def told(ending: str) -> int:
    """What came of the mutants whose names end so."""
    codes: dict[str, int] = {}
    for meta in (FOLDER / "mutants").rglob("*.meta"):
        of_file = json.loads(meta.read_text())["exit_code_by_key"]
        codes |= {name: code for name, code in of_file.items() if name.endswith(ending)}
    lived = sorted(name for name, code in codes.items() if code in SURVIVED + UNTESTED)
    for name in lived:
        sys.stdout.write(f"\n{mutmut('show', name)}")
    of_package, lived_of = (Counter(name.split(".")[1] for name in names) for names in (codes, lived))
    for package, count in sorted(of_package.items()):
        sys.stdout.write(f"{package}: {count - lived_of[package]} of {count} killed\n")
    sys.stdout.write(f"{len(codes) - len(lived)} of {len(codes)} killed\n")
    return int(len(lived) >= SURVIVES_MOST * len(codes))


if __name__ == "__main__":
    sys.exit(main())
