"""What differs between conf folders, in the words of their files."""

import json

from headgate.tryout.conf_changes import ConfChange, conf_changes, conf_keys


def keys(folder, **files):
    folder.mkdir()
    for name, text in files.items():
        (folder / {"broker": "broker.conf", "toml": "headgate.toml", "policies": "policies.json"}[name]).write_text(
            text
        )
    return conf_keys(str(folder))


def test_keys_are_compared_by_file_and_value_and_not_by_form(tmp_path):
    one = keys(tmp_path / "one", broker="# old\na = 1\nb=2\n", toml="[operator]\nslots = 4\n")
    other = keys(tmp_path / "other", broker="b: 2\na=1", toml="operator.slots = 8")
    assert conf_changes([one, other]) == [ConfChange("headgate.toml", "operator.slots", ("4", "8"))]


def test_comments_in_json_are_no_keys(tmp_path):
    assert keys(tmp_path / "one", policies='{"//": 1, "topics": {"a/b/c": {"// why": "x"}}}') == {
        ("policies.json", "topics.a/b/c"): "{}"
    }


def test_what_a_folder_does_not_set_is_no_value(tmp_path):
    policies = {"topics": {"persistent://a/b/c": {"publishRate": {"publishThrottlingRateInMsg": 5}}}}
    one = keys(tmp_path / "one", policies=json.dumps(policies))
    name = "topics.persistent://a/b/c.publishRate.publishThrottlingRateInMsg"
    assert conf_changes([one, {}]) == [ConfChange("policies.json", name, ("5", None))]


def test_empty_files_set_nothing(tmp_path):
    assert keys(tmp_path / "one", broker="", toml="", policies='{"topics": {}}') == {}


def test_an_empty_group_is_a_key_and_comments_of_broker_conf_are_latin_1(tmp_path):
    (tmp_path / "broker.conf").write_bytes("# Größe\na=1".encode("iso-8859-1"))
    (tmp_path / "resource-groups.json").write_text('{"resourcegroups": {"silver": {}}, "tenants": {}}')
    assert conf_keys(str(tmp_path)) == {
        ("broker.conf", "a"): "1",
        ("resource-groups.json", "resourcegroups.silver"): "{}",
    }
