"""`headgate groups`: the page's commands print what the page says, and what is refused changes nothing."""

import json
import re
import shlex
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from headgate.cli import main
from headgate.core.quota.settings import QuotaSettings
from headgate.places import TRIED
from headgate.quota.tables.opened import opened_config
from headgate.quota.tables.topic_tables import output_of
from unit.quota.places import tables

PAGE = Path(__file__).parents[4] / "docs" / "resource-groups.md"


def with_usage(folder):
    """An output with usage of acme alone."""
    tables(folder)
    usage = pa.table({"topic": ["persistent://acme/orders/new", "non-persistent://acme/x_y/new", None]})
    write_deltalake(f"{folder}/topic_usage", usage)
    return str(folder)


@pytest.fixture
def output(tmp_path):
    return with_usage(tmp_path)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """An output with a group, which is attached, for tests that change nothing, and what it says."""
    folder = with_usage(tmp_path_factory.mktemp("kept"))
    for action, *rest in (("set", "gold", "-mp", "5"), ("attach", "gold", "acme")):
        assert 0 == main(["groups", action, folder, *rest])
    return folder, read(folder)


@pytest.fixture
def groups(output, capsys):
    """Run `headgate groups`: its status, and what it printed to either stream."""

    def run(action, *arguments):
        status = main(["groups", action, output, *arguments])
        printed = capsys.readouterr()
        return status, (printed.err if status else printed.out).rstrip("\n")

    return run


def read(output):
    return opened_config(output, QuotaSettings()).read()


def test_the_pages_commands_print_what_the_page_says(output, capsys):
    (block,) = re.findall(r"```\n(\$ headgate .*?)```", PAGE.read_text(), re.DOTALL)
    steps = re.findall(r"^\$ headgate (.*)\n((?:(?!\$ ).*\n)+)", block, re.MULTILINE)

    assert {"list", "get", "set", "unset", "delete", "attach", "detach"} == {line.split()[1] for line, _ in steps}
    for line, expected in steps:
        main([output if word == "OUTPUT" else word for word in shlex.split(line)])
        printed = capsys.readouterr()
        assert expected == printed.out + printed.err, line


@pytest.mark.parametrize(
    "table",
    [lambda output: f"{output_of(output, 'b:8080')}/topic_usage", lambda output: f"{output}/counters"],
    ids=["a job of one broker", "a collector"],
)
def test_traffic_that_another_process_saw_is_known(groups, output, table):
    write_deltalake(table(output), pa.table({"topic": ["persistent://globex/trade/ticks"]}))
    groups("set", "gold", "-mp", "10")

    assert groups("attach", "gold", "globex/trade")[0] == 0
    assert groups("attach", "gold", "globex/other")[0] == 2


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("get", "no"), "group no: ResourceGroup does not exist"),
        (("delete", "no"), "group no: ResourceGroup does not exist"),
        (("unset", "no", "-mp"), "group no: ResourceGroup does not exist"),
        (("attach", "no", "acme"), "group no: ResourceGroup does not exist; there are: gold"),
        (
            ("delete", "gold"),
            "group gold: ResourceGroup is in use; detach it from every tenant, namespace and topic first",
        ),
        (("set", ""), "got the group name ''; allowed: 1 to 250 of A-Z a-z 0-9 _ - = : ."),
        (("set", "a/b"), "got the group name 'a/b'; allowed: 1 to 250 of A-Z a-z 0-9 _ - = : ."),
        (
            ("set", "x", "-mp", "2147483648"),
            "--msg-publish-rate: got 2147483648; allowed: 0 (blocks) to 2147483647, or -1 (not limited)",
        ),
        (
            ("set", "x", "-bd", "-2"),
            "--byte-dispatch-rate: got -2; allowed: 0 (blocks) to 9223372036854775807, or -1 (not limited)",
        ),
        (
            ("unset", "gold"),
            (
                "got no rate to unset; allowed: one or more of --msg-publish-rate, --byte-publish-rate, "
                "--msg-dispatch-rate, --byte-dispatch-rate"
            ),
        ),
        (
            ("detach", "a//b"),
            "got 'a//b'; allowed: tenant, tenant/namespace, tenant/namespace/topic, or a topic with its scheme",
        ),
        (
            ("attach", "gold", "globex"),
            "tenant globex: Tenant does not exist: no traffic of it was seen; add --unseen to attach it all the same",
        ),
        (
            ("attach", "gold", "acme/xxy"),
            (
                "namespace acme/xxy: Namespace does not exist: no traffic of it was seen; "
                "add --unseen to attach it all the same"
            ),
        ),
    ],
)
def test_what_is_refused_is_one_line_and_changes_nothing(kept, capsys, arguments, expected):
    output, before = kept
    action, *rest = arguments

    assert 2 == main(["groups", action, output, *rest])
    assert f"headgate: {expected}\n" == capsys.readouterr().err
    assert before == read(output)


def test_tables_of_a_try_are_read_and_not_changed(output, groups):
    groups("set", "gold", "-mp", "5")
    Path(output, TRIED).touch()

    status, printed = groups("set", "gold", "-mp", "6")
    assert (2, True) == (status, f"{output} is of headgate try, and no job reads what is changed there" in printed)
    assert 5 == read(output).groups["gold"].rates[0]
    assert 0 == groups("list")[0]


@pytest.mark.parametrize(
    ("resource", "scope", "name"),
    [
        ("acme", "tenants", "acme"),
        ("acme/orders", "namespaces", "acme/orders"),
        ("acme/x_y", "namespaces", "acme/x_y"),
        ("acme/orders/a/b", "topics", "persistent://acme/orders/a/b"),
        ("non-persistent://acme/orders/a%2Fb?c", "topics", "non-persistent://acme/orders/a%2Fb?c"),
        ("persistent://acme/orders/a-partition-3", "topics", "persistent://acme/orders/a"),
    ],
)
def test_a_resource_is_told_by_its_form_and_detached_as_it_was_attached(output, groups, resource, scope, name):
    groups("set", "gold")

    assert 0 == groups("attach", "gold", resource)[0]
    assert {name: "gold"} == dict(getattr(read(output).attachments, scope))
    assert 0 == groups("detach", resource)[0]
    assert set() == read(output).attachments.names()


def test_a_change_that_changes_nothing_is_told_as_such(groups):
    groups("set", "gold", "-mp", "5")

    assert ["gold: nothing to change", "tenant t: nothing to change"] == [
        groups(*arguments)[1] for arguments in (("set", "gold", "-mp", "5"), ("detach", "t"))
    ]


def test_a_rate_of_minus_1_is_not_limited_and_one_not_given_stays(output, groups):
    groups("set", "gold", "-mp", "5", "-bp", "6", "-md", "0")
    groups("set", "gold", "-mp", "-1")

    assert (None, 6, 0, None) == read(output).groups["gold"].rates


def test_groups_are_listed_as_json_by_name(groups):
    groups("set", "b", "-mp", "0")
    groups("set", "a")

    listed = json.loads(groups("list", "--json")[1])
    assert [("a", None), ("b", 0)] == [(group["name"], group["publishRateInMsgs"]) for group in listed]


def test_an_attachment_without_its_group_is_listed(groups, output):
    assert (0, "no groups") == groups("list")
    groups("set", "gold")
    groups("attach", "gold", "acme")
    store = opened_config(output, QuotaSettings())
    gone = store.read().groups["gold"]
    store.write([type(gone)(gone.group_id, "gold", deleted=True, version=3)], 2)

    assert "no groups\ngold does not exist, but is attached to tenant acme" == groups("list")[1]


def test_tables_may_be_elsewhere(tmp_path, capsys):
    places = {"group_table": f"{tmp_path}/g", "attachment_table": f"{tmp_path}/a"}
    tables(tmp_path, **places)
    options = ["--group-table", f"{tmp_path}/g", "--attachment-table", f"{tmp_path}/a"]

    assert 0 == main(["groups", "set", str(tmp_path), "gold", *options])
    assert {"gold"} == opened_config(tmp_path, QuotaSettings(**places)).read().groups.keys()


def test_a_folder_without_tables_is_one_line(tmp_path, capsys):
    assert 2 == main(["groups", "list", str(tmp_path)])
    error = capsys.readouterr().err
    assert 1 == error.count("\n")
    advice = "start a job that shares quotas with this output once, which creates its tables, or correct the path"
    assert advice in error
