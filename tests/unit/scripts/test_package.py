"""Workers get one zip of the package: named after its content, written once."""

import os
import zipfile

import pytest
from package import KEPT, package_zip


@pytest.fixture
def sources(tmp_path):
    package = tmp_path / "lib" / "headgate"
    (package / "core" / "__pycache__").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "core" / "rate.py").write_text("RATE = 1\n")
    (package / "core" / "__pycache__" / "rate.pyc").write_bytes(b"compiled")
    return tmp_path / "lib"


def test_the_zip_holds_the_sources_and_nothing_compiled(sources, tmp_path) -> None:
    with zipfile.ZipFile(package_zip(sources, tmp_path / "zips")) as archive:
        expected = ["headgate/__init__.py", "headgate/core/rate.py"]
        assert expected == archive.namelist()


def test_equal_sources_give_the_same_name_and_bytes(sources, tmp_path) -> None:
    first = package_zip(sources, tmp_path / "zips")
    os.utime(sources / "headgate" / "core" / "rate.py", (0, 0))
    second = package_zip(sources, tmp_path / "elsewhere")
    assert (first.name, first.read_bytes()) == (second.name, second.read_bytes())


def test_an_existing_zip_is_not_written_again(sources, tmp_path) -> None:
    first = package_zip(sources, tmp_path / "zips")
    written = first.stat().st_ino
    assert written == package_zip(sources, tmp_path / "zips").stat().st_ino


def test_a_change_gives_another_name_and_old_zips_go(sources, tmp_path) -> None:
    names = []
    for rate in range(KEPT + 2):
        (sources / "headgate" / "core" / "rate.py").write_text(f"RATE = {rate}\n")
        made = package_zip(sources, tmp_path / "zips")
        os.utime(made, (rate, rate))
        names.append(made.name)
    assert len(set(names)) == KEPT + 2
    assert len(list((tmp_path / "zips").iterdir())) == KEPT
    assert made.exists()
