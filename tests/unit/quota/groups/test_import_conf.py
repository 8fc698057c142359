"""What resource-groups.json says is in the tables after a start; what was set by hand stays until its entry changes."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from deltalake import DeltaTable
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from examples import examples
from headgate.conf import ResourceGroup, ResourceGroups
from headgate.core.quota.attachments import AttachedTo, Attachments
from headgate.core.quota.settings import QuotaSettings
from headgate.errors import TableError
from headgate.quota.groups.command import apply
from headgate.quota.groups.import_conf import IMPORTED, Imported, import_groups
from headgate.quota.groups.presence import EVERYWHERE
from headgate.quota.groups.requests import attach, delete_group, local_parameters, put_group
from headgate.quota.tables.delta import opened
from headgate.quota.tables.opened import opened_config
from headgate.quota.tables.schemas import QUOTA_STATE
from unit.quota.places import tables

SETTINGS = QuotaSettings()
TOPIC = "persistent://globex/n/a/b"
FILE = ResourceGroups(
    {"gold": ResourceGroup(100, None, 0, 7), "silver": ResourceGroup()},
    {"acme": "gold"},
    {"globex/n": "silver"},
    {TOPIC: "gold"},
)


@pytest.fixture
def store(tmp_path):
    return tables(tmp_path).config


def by_hand(store, *requests):
    for request in requests:
        assert 204 == apply(store, request, EVERYWHERE, local_parameters(SETTINGS)).response.status


def started(store, **changed):
    """The tables after a start with FILE, of which some sections are others."""
    sections = {name: getattr(FILE, name) for name in ("groups", "tenants", "namespaces", "topics")}
    return import_groups(store, ResourceGroups(**sections | changed), SETTINGS)


def test_a_first_start_writes_what_the_file_says(store):
    assert Imported(5) == started(store)

    read = store.read()
    assert {"gold": (100, None, 0, 7), "silver": (None,) * 4} == {name: g.rates for name, g in read.groups.items()}
    assert Attachments({"acme": "gold"}, {"globex/n": "silver"}, {TOPIC: "gold"}) == read.attachments


def test_a_start_with_the_same_file_writes_nothing(store):
    started(store)
    version = store.groups.refresh()

    assert Imported(0) == started(store)
    assert version == store.groups.refresh()


def test_what_was_set_by_hand_stays_where_the_file_is_as_it_was(store):
    started(store)
    by_hand(store, put_group("gold", {"publishRateInMsgs": 5}), put_group("own", {}))
    by_hand(store, attach(AttachedTo.TENANT, "acme", "own"), attach(AttachedTo.NAMESPACE, "globex/n", None))
    by_hand(store, delete_group("silver"))

    assert Imported(1) == started(store, tenants=FILE.tenants | {"initech": "gold"})
    read = store.read()
    assert {"gold", "own"} == read.groups.keys()
    assert 5 == read.groups["gold"].rates[0]
    assert Attachments({"acme": "own", "initech": "gold"}, {}, {TOPIC: "gold"}) == read.attachments


def test_an_entry_that_changed_in_the_file_wins_over_what_was_set_by_hand(store):
    started(store)
    by_hand(store, put_group("gold", {"publishRateInMsgs": 5}), attach(AttachedTo.TENANT, "acme", None))

    started(store, groups=FILE.groups | {"gold": ResourceGroup(101)}, tenants={"acme": "silver"})
    read = store.read()
    assert (101, None, None, None) == read.groups["gold"].rates
    assert {"acme": "silver"} == read.attachments.tenants


def test_an_entry_that_is_gone_from_the_file_is_taken_back(store):
    started(store)

    assert Imported(2) == started(store, groups={"gold": FILE.groups["gold"]}, namespaces={})
    assert ({"gold"}, {}) == (store.read().groups.keys(), dict(store.read().attachments.namespaces))


def test_a_group_that_is_gone_from_the_file_but_attached_by_hand_stays_with_a_warning(store):
    started(store)
    by_hand(store, attach(AttachedTo.TENANT, "initech", "silver"))

    imported = started(store, groups={"gold": FILE.groups["gold"]}, namespaces={})
    reason = "ResourceGroup is in use; detach it from every tenant, namespace and topic first"
    assert (f"resource-groups.json no longer names the group silver, which stays: {reason}",) == imported.warnings
    assert "silver" == store.read().attachments.tenants["initech"]


def test_a_group_can_be_replaced_by_another_in_one_edit(store):
    started(store)

    started(store, groups={"new": ResourceGroup(1)}, tenants={"acme": "new"}, namespaces={}, topics={})
    read = store.read()
    assert ({"new"}, {"acme": "new"}, set()) == (set(read.groups), dict(read.attachments.tenants), read.dangling())


def test_an_import_that_was_broken_off_is_finished_by_the_next_start(store, monkeypatch):
    monkeypatch.setattr(store.attachments, "append_pinned", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        started(store)
    monkeypatch.undo()

    assert Imported(3) == started(store)
    assert {"acme": "gold"} == store.read().attachments.tenants


def test_jobs_that_start_together_import_once(tmp_path):
    tables(tmp_path)

    def start(_):
        return started(opened_config(tmp_path, SETTINGS))

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(start, range(3)))

    store = opened_config(tmp_path, SETTINGS)
    read = store.read()
    assert ({1, 2}, 5) == ({group.group_id for group in read.groups.values()}, read.version)
    assert 2 == len(store.groups.select())


def test_a_copy_of_the_file_that_did_not_change_takes_back_nothing_that_another_said(tmp_path, store):
    """Jobs a and b of one broker each have a copy; a's is edited, and b starts again on its own."""
    states = {name: opened(f"{tmp_path}/{name}", QUOTA_STATE, 1000) for name in ("a", "b", "new")}

    def start(name, rate, **groups):
        file = ResourceGroups({"gold": ResourceGroup(rate), **groups}, {"acme": "gold"})
        imported = import_groups(store, file, SETTINGS, states[name])
        return imported.rows, store.read().groups["gold"].rates[0]

    assert [(2, 100), (0, 100)] == [start("a", 100), start("b", 100)]
    assert [(1, 50), (0, 50)] == [start("a", 50), start("b", 100)]
    assert (1, 50) == start("b", 100, silver=ResourceGroup())
    assert (1, 70) == start("b", 70, silver=ResourceGroup())
    assert (0, 70) == start("new", 70, silver=ResourceGroup())


def test_a_job_that_joins_others_adds_what_is_new_and_changes_nothing(tmp_path, store):
    """Its copy of the file may be the older one; from its first start on an edit of it counts."""
    first, new = (opened(f"{tmp_path}/{name}", QUOTA_STATE, 1000) for name in ("first", "new"))
    theirs = ResourceGroups({"gold": ResourceGroup(100), "iron": ResourceGroup(5)}, {"acme": "gold", "hooli": "iron"})
    mine = ResourceGroups({"gold": ResourceGroup(70), "lead": ResourceGroup(1)}, {"acme": "gold", "globex": "lead"})
    edited = ResourceGroups({"gold": ResourceGroup(60), "lead": ResourceGroup(1)}, mine.tenants)
    import_groups(store, theirs, SETTINGS, first)
    joined = import_groups(store, mine, SETTINGS, new)
    read = store.read()

    assert {"gold": 100, "iron": 5, "lead": 1} == {name: group.rates[0] for name, group in read.groups.items()}
    assert {"acme": "gold", "hooli": "iron", "globex": "lead"} == dict(read.attachments.tenants)
    assert (2, 1) == (joined.rows, len(joined.warnings))
    assert "brought in: group gold, group iron, tenant hooli; as this job starts for the first" in joined.warnings[0]
    assert Imported(0) == import_groups(store, mine, SETTINGS, new)
    assert Imported(1) == import_groups(store, edited, SETTINGS, new)
    assert 60 == store.read().groups["gold"].rates[0]


def test_what_every_job_brought_in_is_known_after_an_edit_of_one_of_them(tmp_path, store):
    """A third job that joins then leaves it alone, and what was set by hand as well."""
    first, second, third = (opened(f"{tmp_path}/{name}", QUOTA_STATE, 1000) for name in ("first", "second", "third"))
    gold, iron = ResourceGroup(100), ResourceGroup(5)
    import_groups(store, ResourceGroups({"gold": gold}, {"acme": "gold"}), SETTINGS, first)
    import_groups(store, ResourceGroups({"gold": gold, "iron": iron}, {"hooli": "iron"}), SETTINGS, second)
    edited = ResourceGroups({"gold": ResourceGroup(60)})
    assert Imported(2) == import_groups(store, edited, SETTINGS, first)
    by_hand(store, put_group("lead", {"publishRateInMsgs": 9}))
    others = ResourceGroups({"iron": ResourceGroup(500), "lead": ResourceGroup(1)}, {"hooli": "lead", "acme": "iron"})
    joined = import_groups(store, others, SETTINGS, third)
    read = store.read()

    assert {"gold": 60, "iron": 5, "lead": 9} == {name: group.rates[0] for name, group in read.groups.items()}
    assert {"hooli": "iron", "acme": "iron"} == dict(read.attachments.tenants)
    assert "brought in: group gold, group iron, group lead, tenant hooli; as" in joined.warnings[0]


def test_jobs_that_join_at_once_forget_nothing_of_each_other(tmp_path, store):
    import_groups(store, FILE, SETTINGS, opened(f"{tmp_path}/first", QUOTA_STATE, 1000))
    files = {name: ResourceGroups({**FILE.groups, name: ResourceGroup(1)}) for name in ("b", "c", "d")}

    def join(name):
        own = opened(f"{tmp_path}/{name}", QUOTA_STATE, 1000)
        return import_groups(opened_config(tmp_path, SETTINGS), files[name], SETTINGS, own)

    with ThreadPoolExecutor(3) as pool:
        assert [1, 1, 1] == [imported.rows for imported in pool.map(join, files)]

    said = json.loads(DeltaTable(f"{tmp_path}/rg_groups").metadata().configuration[IMPORTED])
    assert {"gold", "silver", "b", "c", "d"} == set(said["groups"]) == set(store.read().groups)
    assert FILE.tenants == said["tenants"]


def test_a_property_that_cannot_be_read_is_told(tmp_path, store):
    DeltaTable(f"{tmp_path}/rg_groups").alter.set_table_properties({IMPORTED: "{"}, raise_if_not_exists=False)

    with pytest.raises(TableError, match=rf"property {IMPORTED} that is not JSON .*; remove the property"):
        started(store)


NAMES = st.sampled_from(["a", "b"])
FILES = st.builds(
    lambda rates, attached: ResourceGroups(
        {name: ResourceGroup(rate) for name, rate in rates.items()},
        {tenant: group for tenant, group in attached.items() if group in rates},
    ),
    st.dictionaries(NAMES, st.none() | st.sampled_from([0, 5]), max_size=2),
    st.dictionaries(st.sampled_from(["t", "u"]), NAMES, max_size=2),
)


@settings(max_examples=examples(10), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(FILES, min_size=1, max_size=4))
def test_where_nothing_is_set_by_hand_the_tables_follow_the_file(tmp_path_factory, files):
    store = tables(tmp_path_factory.mktemp("import")).config
    for file in files:
        assert () == import_groups(store, file, SETTINGS).warnings
        read = store.read()
        assert {name: group.publish_messages_per_s for name, group in file.groups.items()} == {
            name: group.rates[0] for name, group in read.groups.items()
        }
        assert dict(file.tenants) == dict(read.attachments.tenants)
