"""resource-groups.json that changes while a job runs, also on a store that goes away."""

import pytest

from headgate.conf import ResourceGroups, load_resource_groups
from headgate.quota.groups.file import GroupsFile

ONE, OTHER = '{"resourcegroups": {"gold": {"publishRateInMsgs": 4}}}', '{"resourcegroups": {}}'


def away(*_):
    raise OSError("When listing objects: AWS Error NETWORK_CONNECTION during ListObjectsV2 operation: curlCode: 7")


@pytest.fixture
def path(tmp_path):
    (tmp_path / "resource-groups.json").write_text(ONE)
    return tmp_path / "resource-groups.json"


def test_an_edit_is_handed_out_once_and_one_with_mistakes_is_told_once(path, caplog):
    file = GroupsFile(str(path), load_resource_groups(str(path)))
    assert file.edited() is None
    path.write_text(OTHER)
    assert [ResourceGroups(), None] == [file.edited(), file.edited()]
    path.write_text("{")
    assert [None, None] == [file.edited(), file.edited()]
    assert 1 == len(caplog.records)
    path.unlink()
    assert [None, None] == [file.edited(), file.edited()]
    assert 2 == len(caplog.records)


def test_a_store_that_is_away_is_told_once_and_an_edit_meanwhile_is_taken_in_later(path, caplog, monkeypatch):
    """Also where it goes away between the look and the reading."""
    file = GroupsFile(str(path), load_resource_groups(str(path)))
    assert file.edited() is None
    path.write_text(OTHER)
    for call in ("stamp", "read"):
        with monkeypatch.context() as meanwhile:
            meanwhile.setattr(f"headgate.folders._OnDisk.{call}", away)
            assert [None, None] == [file.edited(), file.edited()]
    (told,) = (record.getMessage() for record in caplog.records)
    assert told.startswith(f"groups stay as they are: {path} cannot be reached: ")
    assert [ResourceGroups(), None] == [file.edited(), file.edited()]


def test_a_store_that_is_away_again_is_told_again(path, caplog, monkeypatch):
    file = GroupsFile(str(path), load_resource_groups(str(path)))
    for _ in range(2):
        with monkeypatch.context() as meanwhile:
            meanwhile.setattr("headgate.folders._OnDisk.stamp", away)
            assert file.edited() is None
        assert file.edited() is None
    assert 2 == len(caplog.records)
