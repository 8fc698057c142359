"""Spark is started with a Java that it runs on, or not at all."""

import java
import pytest
from steps import SetupError


@pytest.mark.parametrize(
    ("printed", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment', "17.0.15"),
        ('Picked up JAVA_TOOL_OPTIONS: -Dx="y"\nopenjdk version "21" 2023-09-19', "21"),
        ('java version "1.8.0_402"', "8.0_402"),
        ("The operation couldn't be completed. Unable to locate a Java Runtime.", None),
    ],
)
def test_the_version_is_read_from_what_java_prints(printed, version) -> None:
    assert version == java.parse_version(printed)


@pytest.fixture
def javas(tmp_path, monkeypatch):
    """Makes a java of a version in a folder of its own; none on the PATH and no JAVA_HOME to begin with."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr("shutil.which", lambda _name: None)

    def make(version):
        command = tmp_path / version / "bin" / "java"
        command.parent.mkdir(parents=True)
        command.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
        command.chmod(0o755)
        return command

    return make


@pytest.mark.parametrize(
    ("in_home", "on_path", "taken"),
    [("17.0.1", "21.0.2", "17.0.1"), ("11.0.9", "21.0.2", "21.0.2"), (None, "17.0.1", "17.0.1"), ("21", None, "21")],
)
def test_java_home_comes_first_if_its_version_fits(javas, monkeypatch, in_home, on_path, taken) -> None:
    if in_home:
        monkeypatch.setenv("JAVA_HOME", str(javas(in_home).parent.parent))
    if on_path:
        command = javas(on_path)
        monkeypatch.setattr("shutil.which", lambda _name: str(command))
    found = java.find_java()
    assert (taken, taken) == (found.version, found.home.name)


def test_without_a_java_that_fits_the_message_says_what_was_found(javas, monkeypatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(javas("11.0.9").parent.parent))
    command = javas("25-ea")
    monkeypatch.setattr("shutil.which", lambda _name: str(command))
    with pytest.raises(
        SetupError, match=r"needs Java 17.*JAVA_HOME=.*version 11\.0\.9; java on the PATH: version 25-ea"
    ):
        java.find_java()
