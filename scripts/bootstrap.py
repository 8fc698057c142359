"""Sets this checkout up if it is not, then becomes `.venv/bin/python ARGUMENTS`.

    python3.11 scripts/bootstrap.py [--without-java] ARGUMENTS...

Steps: Java is there; .venv holds requirements.lock, hashes checked; the project itself is installed in it (editable);
Delta's jars are in .cache/jars. What runs without Java needs neither the first nor the last. Each is done again only
when what it was made from has changed. A step that was interrupted is known by .venv/headgate-setup.json, and .venv is
then made from scratch. With nothing to do it needs no network.

Standard library only: this runs on the machine's own Python, before there is a virtual environment.
"""
# ruff: noqa: INP001  (scripts are started by path, they are no package)

import hashlib
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import NoReturn

import jars
import steps
from java import find_java
from steps import PYTHON, ROOT, VENV, SetupError

LOCK = ROOT / "requirements.lock"
STATE = VENV / "headgate-setup.json"
INTERRUPTED = "interrupted"
WITHOUT_JAVA = "--without-java"
LEAST_FREE_BYTES = 2 << 30
"""What the packages take, and some more."""
PIP: list[str | Path] = [PYTHON, "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"]


def read_state() -> dict[str, str]:
    """What .venv was made from, as digests under "root", "packages" and "project"; empty if that is not known."""
    try:
        state = json.loads(STATE.read_text())
    except (OSError, ValueError):
        return {}
    return state if isinstance(state, dict) else {}


def wanted_state() -> dict[str, str]:
    """What .venv should be made from. Lint settings in pyproject.toml do not count."""
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project = json.dumps([pyproject["project"], pyproject["build-system"]], sort_keys=True)
    return {"root": str(ROOT), "packages": digest(LOCK.read_bytes()), "project": digest(project.encode())}


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def is_set_up() -> bool:
    try:
        return PYTHON.exists() and read_state() == wanted_state()
    except PermissionError as error:
        raise SetupError(
            f"this user cannot reach {error.filename}, or the Python that {VENV.name} was made with, in another user's "
            f"folder: delete {VENV} and set it up with one that every user can run, such as that of the system "
            "(PATH=/usr/bin:$PATH)"
        ) from error


def set_up() -> None:
    """Bring .venv to the wanted state. At every moment the state file tells the truth about what is finished."""
    wanted, state = wanted_state(), read_state()
    if not PYTHON.exists() or state.get("root") != wanted["root"] or INTERRUPTED in state.values():
        state = {"root": wanted["root"], "packages": INTERRUPTED, "project": INTERRUPTED}
        if VENV.is_symlink():
            VENV.unlink()  # another checkout's is not emptied
        with steps.step(f"making {VENV.name} with Python {sys.version.split()[0]}"):
            steps.run([sys.executable, "-m", "venv", "--clear", VENV], "Is Python's venv module complete?")
    if state.get("packages") != wanted["packages"]:
        STATE.write_text(json.dumps(state | {"packages": INTERRUPTED}))
        check_space()
        count = len(re.findall(r"^[a-zA-Z0-9]", LOCK.read_text(), re.MULTILINE))
        with steps.step(f"installing {count} packages from {LOCK.name}, 700 MB the first time"):
            install_packages()
    if state.get("project") != wanted["project"]:
        STATE.write_text(json.dumps(state | {"packages": wanted["packages"], "project": INTERRUPTED}))
        with steps.step("installing the headgate command"):
            install_project()
        steps.say(f"headgate: set up. The command is {ROOT}/headgate, or headgate with {PYTHON.parent} on the PATH")
    STATE.write_text(json.dumps(wanted))


def check_space() -> None:
    """Raise SetupError where the packages do not fit."""
    free = shutil.disk_usage(ROOT).free
    if free < LEAST_FREE_BYTES:
        raise SetupError(
            f"{ROOT} has {free >> 20:,} MiB free; set-up needs {LEAST_FREE_BYTES >> 20:,} MiB there; make space"
        )


def install_packages() -> None:
    """Install requirements.lock.

    pyspark comes as source: the setuptools of the lock builds it; pip would fetch the newest one, unchecked.
    """
    advice = "The first start needs the network (pip's own settings and variables apply)."
    locked = [*PIP, "--require-hashes", "--no-build-isolation", "--requirement"]
    pinned = re.search(r"^setuptools==.*?(?=^[a-zA-Z0-9]|\Z)", LOCK.read_text(), re.MULTILINE | re.DOTALL)
    if pinned is None:
        raise SetupError(f"{LOCK.name} pins no setuptools; compile it with the dev extra, see docs/operations.md")
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as only_setuptools:
        only_setuptools.write(pinned.group())
        only_setuptools.flush()
        steps.run([*locked, Path(only_setuptools.name)], advice)
    steps.run([*locked, LOCK], advice)


def install_project() -> None:
    """Put the headgate command in .venv/bin; the package itself stays where it is, so edits need no reinstallation."""
    steps.run(
        [*PIP, "--no-deps", "--no-build-isolation", "--editable", ROOT], "Is pyproject.toml as in the repository?"
    )


def main(arguments: list[str]) -> NoReturn:
    """Set up, then become .venv/bin/python with the arguments: signals and exit status are that program's own."""
    needs_java = arguments[:1] != [WITHOUT_JAVA]
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    try:
        if needs_java:
            os.environ["JAVA_HOME"] = str(find_java().home)
        if not is_set_up():
            with steps.locked():
                if not is_set_up():
                    set_up()
        if needs_java:
            jars.fetch("delta")
    except SetupError as error:
        steps.say(f"headgate: {error}")
        sys.exit(steps.UNAVAILABLE)
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.execv(PYTHON, [str(PYTHON), *arguments[not needs_java :]])  # noqa: S606  (that is the point)


if __name__ == "__main__":
    main(sys.argv[1:])
