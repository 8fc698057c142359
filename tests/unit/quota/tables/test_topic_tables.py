"""Where jobs of one broker have their tables: in a folder of their own, whatever the broker's name."""

from pathlib import PurePosixPath

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from headgate.errors import TableError
from headgate.quota.tables.topic_tables import output_of, topic_tables

NAMES = st.text(st.sampled_from("ab.~%:/ 27Eé") | st.characters(exclude_categories=["Cs"]), min_size=1)


@given(NAMES, NAMES)
def test_every_broker_has_a_folder_of_its_own(one, other):
    folders = [PurePosixPath(output_of("out", name)) for name in (one, other)]

    assert (folders[0] == folders[1]) == (one == other)
    assert {PurePosixPath("out/brokers")} == {folder.parent for folder in folders}
    assert all(folder.name.isascii() and not set(folder.name) & set("%:/* ") for folder in folders)
    assert not any(folder.name.startswith(".") for folder in folders)


@pytest.mark.parametrize("broker", ["b-1", "pulsar-1.example.org:8080", "b%31", "..", "~", "größer"])
def test_tables_of_any_broker_can_be_written_and_found(tmp_path, broker):
    location = f"{output_of(str(tmp_path), broker)}/topic_usage"
    write_deltalake(location, pa.table({"topic": ["t"]}))

    assert [location] == topic_tables(tmp_path)
    assert DeltaTable(location).version() == 0


def test_the_tables_are_those_of_all_jobs_that_have_one(tmp_path):
    wanted = [f"{tmp_path}/topic_usage", f"{tmp_path}/brokers/a/topic_usage", f"{tmp_path}/brokers/b/topic_usage"]
    for location in wanted:
        write_deltalake(location, pa.table({"topic": ["t"]}))
    (tmp_path / "brokers" / "c").mkdir()
    (tmp_path / "brokers" / "file").touch()

    assert wanted == topic_tables(str(tmp_path))
    assert [] == topic_tables(f"{tmp_path}/none")


def test_an_output_that_cannot_be_read_is_told_of(monkeypatch, tmp_path):
    def refused(*_):
        raise OSError("so it is")

    monkeypatch.setattr(DeltaTable, "is_deltatable", refused)
    with pytest.raises(TableError, match=r"cannot be read: so it is"):
        topic_tables(tmp_path)
