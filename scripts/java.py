"""Finds the Java that Spark is started with.

Standard library only: this runs on the machine's own Python, before there is a virtual environment.
"""
# ruff: noqa: INP001  (scripts are started by path, they are no package)

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from steps import SetupError

OLDEST, NEWEST = 17, 21


@dataclass(frozen=True)
class Java:
    """A java command that ran. `home` is what JAVA_HOME has to be for Spark's scripts to take this one."""

    version: str
    home: Path

    @property
    def major(self) -> int:
        return int(self.version.split(".")[0].removesuffix("-ea"))


def parse_version(printed: str) -> str | None:
    """The version in what `java -version` prints, or None: 17.0.15 from 'openjdk version "17.0.15" 2025-04-15'."""
    found = re.search(r'version "([^"]+)"', printed)
    if found is None:
        return None
    version = found.group(1)
    return version.removeprefix("1.") if version.startswith("1.") else version  # "1.8.0_402" is Java 8


def ask(command: Path) -> Java | None:
    """Run `command -version`; None if it cannot be run or prints no version (macOS has such a stand-in for java)."""
    try:
        printed = subprocess.run([command, "-version"], capture_output=True, text=True, check=False, timeout=60)
    except OSError:
        return None
    version = parse_version(printed.stderr + printed.stdout)
    return None if version is None else Java(version, command.resolve().parent.parent)


def find_java() -> Java:
    """The Java in JAVA_HOME, else the one on the PATH, whichever first has a version that Spark runs on (17 to 21).

    Raises SetupError that names what was found where.
    """
    places: dict[str, Path | None] = {}
    if home := os.environ.get("JAVA_HOME"):
        places[f"JAVA_HOME={home}"] = Path(home, "bin", "java")
    on_path = shutil.which("java")
    places["java on the PATH"] = Path(on_path) if on_path else None
    found = []
    for place, command in places.items():
        java = ask(command) if command else None
        if java and OLDEST <= java.major <= NEWEST:
            return java
        found.append(f"{place}: {f'version {java.version}' if java else 'none'}")
    raise SetupError(
        f"needs Java {OLDEST} (up to {NEWEST} works). Found {'; '.join(found)}.\n"
        f"  Debian, Ubuntu: apt install openjdk-{OLDEST}-jre-headless      macOS: brew install openjdk@{OLDEST}\n"
        f"  or set JAVA_HOME to one."
    )
