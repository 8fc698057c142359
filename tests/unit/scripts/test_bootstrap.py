"""Set-up runs when it has to, only then, and an interrupted one is done again from scratch."""

import os
import shutil
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import bootstrap
import pytest
import steps

LOCK = "rich==15 \\\n    --hash=sha256:0\nsetuptools==84 \\\n    --hash=sha256:1\n"
from_scratch = ["venv", "setuptools", "lock", "project"]


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout whose commands only note that they ran; `ran` empties the list."""
    here = tmp_path / "here"
    here.mkdir()
    (here / "requirements.lock").write_text(
        "rich==15 \\\n    --hash=sha256:0\nsetuptools==84 \\\n    --hash=sha256:1\n"
    )
    (here / "pyproject.toml").write_text('[project]\nname = "headgate"\n[build-system]\nrequires = []\n')
    use(monkeypatch, here)
    return here


def use(monkeypatch, here: Path) -> None:
    monkeypatch.setattr(bootstrap, "ROOT", here)
    monkeypatch.setattr(bootstrap, "VENV", here / ".venv")
    monkeypatch.setattr(bootstrap, "PYTHON", here / ".venv" / "bin" / "python")
    monkeypatch.setattr(bootstrap, "STATE", here / ".venv" / "headgate-setup.json")
    monkeypatch.setattr(bootstrap, "LOCK", here / "requirements.lock")


@pytest.fixture
def ran(monkeypatch):
    """What `set_up` ran, by kind; a kind in `fails` is interrupted there."""
    kinds: list[str] = []

    def run(command, _advice) -> None:
        words = [str(word) for word in command]
        last = {"requirements.lock": "lock", "here": "project", "moved": "project"}.get(
            Path(words[-1]).name, "setuptools"
        )
        kinds.append("venv" if "venv" in words else last)
        if kinds[-1] == "venv":
            shutil.rmtree(bootstrap.VENV, ignore_errors=True)
            (bootstrap.VENV / "bin").mkdir(parents=True)
            bootstrap.PYTHON.touch()
        if kinds[-1] in run.fails:
            raise KeyboardInterrupt

    run.fails = set()
    monkeypatch.setattr(steps, "run", run)
    kinds_of = lambda: [kinds.pop(0) for _ in list(kinds)]
    kinds_of.run = run
    return kinds_of


def test_a_fresh_checkout_gets_everything_and_a_second_start_nothing(checkout, ran) -> None:
    assert not bootstrap.is_set_up()
    bootstrap.set_up()
    assert from_scratch == ran()
    assert bootstrap.is_set_up()


@pytest.mark.parametrize("where", ["venv", "setuptools", "lock", "project"])
def test_an_interrupted_set_up_is_known_and_done_again_from_scratch(checkout, ran, where) -> None:
    ran.run.fails = {where}
    with pytest.raises(KeyboardInterrupt):
        bootstrap.set_up()
    assert not bootstrap.is_set_up()
    ran.run.fails = set()
    ran()
    bootstrap.set_up()
    assert from_scratch == ran()
    assert bootstrap.is_set_up()


def test_a_disk_that_is_nearly_full_is_told_of_before_anything_is_installed(checkout, ran, monkeypatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Namespace(free=300 << 20))
    with pytest.raises(steps.SetupError, match=f"{checkout} has 300 MiB free; set-up needs 2,048 MiB there"):
        bootstrap.set_up()
    assert ran() == ["venv"]
    assert not bootstrap.is_set_up()


@contextmanager
def without_rights() -> Iterator[None]:
    """Root is nobody while the block runs."""
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)


def test_a_python_of_another_user_is_told_of(checkout, ran) -> None:
    bootstrap.set_up()
    bin_ = bootstrap.PYTHON.parent
    bin_.chmod(0)
    with (
        without_rights(),
        pytest.raises(steps.SetupError, match=r"this user cannot reach .*python, or the Python"),
    ):
        bootstrap.is_set_up()
    bin_.chmod(0o700)


def test_a_changed_lock_is_installed_into_the_same_venv(checkout, ran) -> None:
    bootstrap.set_up()
    ran()
    (checkout / "requirements.lock").write_text("setuptools==85 \\\n    --hash=sha256:2\n")
    assert not bootstrap.is_set_up()
    bootstrap.set_up()
    expected = ["setuptools", "lock"]
    assert expected == ran()


def test_a_changed_project_table_reinstalls_the_command_and_lint_settings_do_not(checkout, ran) -> None:
    bootstrap.set_up()
    ran()
    pyproject = checkout / "pyproject.toml"
    pyproject.write_text(f"{pyproject.read_text()}[tool.ruff]\nline-length = 100\n")
    assert bootstrap.is_set_up()
    pyproject.write_text(pyproject.read_text().replace('"headgate"', '"headgate"\nversion = "2"'))
    bootstrap.set_up()
    expected = ["project"]
    assert expected == ran()


def test_a_checkout_that_was_moved_is_set_up_again(checkout, ran, monkeypatch) -> None:
    bootstrap.set_up()
    ran()
    moved = checkout.rename(checkout.parent / "moved")
    use(monkeypatch, moved)
    assert not bootstrap.is_set_up()
    bootstrap.set_up()
    assert from_scratch == ran()


def test_a_venv_of_unknown_making_is_not_trusted(checkout, ran) -> None:
    bootstrap.PYTHON.parent.mkdir(parents=True)
    bootstrap.PYTHON.touch()
    bootstrap.set_up()
    assert from_scratch == ran()


def test_a_link_to_the_venv_of_another_checkout_is_replaced_and_leaves_that_alone(checkout, ran, tmp_path) -> None:
    other = tmp_path / "other"
    (other / "bin").mkdir(parents=True)
    (other / "bin" / "python").touch()
    bootstrap.VENV.symlink_to(other)
    bootstrap.set_up()

    assert from_scratch == ran()
    assert not bootstrap.VENV.is_symlink()
    assert (other / "bin" / "python").exists()


@pytest.mark.parametrize(
    ("arguments", "needed"), [(["-m", "x"], ["java", "jars"]), (["--without-java", "-m", "x"], [])]
)
def test_java_is_looked_for_only_where_it_is_needed(checkout, ran, monkeypatch, arguments, needed) -> None:
    asked, became = [], []
    monkeypatch.setattr(bootstrap, "find_java", lambda: asked.append("java") or Namespace(home=checkout))
    monkeypatch.setattr(bootstrap.jars, "fetch", lambda _: asked.append("jars"))
    monkeypatch.setattr(bootstrap.os, "execv", lambda *command: became.append(command))
    monkeypatch.setattr(bootstrap.os, "environ", {})
    bootstrap.main(arguments)
    assert needed == asked
    assert [(bootstrap.PYTHON, [str(bootstrap.PYTHON), "-m", "x"])] == became
