"""Groups and attachments: read when they changed, and no write is lost when several write at once."""

import multiprocessing
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from headgate.core.quota.attachments import AttachedTo
from headgate.core.quota.config_tables import Attachment, ConfigTables
from headgate.core.quota.groups import INT64_MAX, ResourceGroup
from headgate.core.quota.settings import QuotaSettings
from headgate.errors import TableError
from headgate.quota.groups.command import apply
from headgate.quota.groups.presence import EVERYWHERE
from headgate.quota.groups.requests import attach, delete_group, local_parameters, put_group
from headgate.quota.tables.config_store import _attachment_row
from headgate.quota.tables.opened import opened_config
from headgate.quota.tables.schemas import ATTACHMENTS, GROUPS
from unit.quota.places import tables

PARAMETERS = local_parameters(QuotaSettings())
GOLD = ResourceGroup(1, "gold", (None, 0, 5, INT64_MAX), (None, 9), shard=63, version=1)


@pytest.fixture
def stores(tmp_path):
    """Two stores on the same tables."""
    tables(tmp_path)
    return [opened_config(tmp_path, QuotaSettings()) for _ in range(2)]


def status(store, request):
    return apply(store, request, EVERYWHERE, PARAMETERS).response.status


def begun(store, row, read_version):
    """The first half of a write of an attachment: its process dies before the second."""

    class KilledError(Exception): ...

    def die(*_):
        raise KilledError

    store.attachments.append_pinned = die
    with pytest.raises(KilledError):
        store.write([row], read_version)
    del store.attachments.append_pinned


def test_rows_are_read_as_they_were_written(stores):
    one, other = stores
    assert ConfigTables() == one.read()

    attached = [
        Attachment(AttachedTo.TENANT, "acme", "gold", 2),
        Attachment(AttachedTo.TOPIC, "persistent://a/b/c/d", "x", 3),
    ]
    assert one.write([GOLD, *attached], 0)
    assert ConfigTables.of([GOLD], attached) == other.read()


def test_tables_that_nobody_changed_are_not_read_again(stores):
    one, other = stores
    before = one.read()

    assert before is one.read()
    other.read()
    other.write([GOLD], 0)
    assert {"gold": GOLD} == one.read().groups


def test_what_was_decided_on_older_tables_is_not_written(stores):
    one, other = stores
    one.read()
    other.read()

    assert other.write([GOLD], 0)
    assert not one.write([ResourceGroup(1, "silver", version=1)], 0)
    assert {"gold"} == one.read().groups.keys()


def test_a_store_writes_once_after_each_read(stores):
    store, _ = stores
    store.read()

    assert [True, False] == [store.write([GOLD], 0), store.write([ResourceGroup(2, "silver", version=1)], 0)]


@pytest.mark.parametrize("first", ["attach", "delete"])
def test_a_group_is_not_deleted_while_it_is_being_attached(stores, first):
    """Each table alone would take both changes."""
    one, other = stores
    status(one, put_group("gold", {}))
    row = Attachment(AttachedTo.TENANT, "acme", "gold", 2)
    one.read()
    begun(one, row, 1)

    if first == "delete":
        assert 204 == status(other, delete_group("gold"))
        one.groups.refresh()  # as far as the group goes, the write had already won
        assert not one.attachments.append_pinned(attachment_rows(row))
        assert (set(), set()) == (set(other.read().groups), other.read().dangling())
    else:
        assert one.attachments.append_pinned(attachment_rows(row))
        assert 412 == status(other, delete_group("gold"))


def attachment_rows(row):
    return pa.Table.from_pylist([_attachment_row(row)], ATTACHMENTS)


def test_a_write_that_was_broken_off_hinders_nobody(stores):
    one, other = stores
    status(one, put_group("gold", {}))
    begun(one, Attachment(AttachedTo.TENANT, "acme", "gold", 2), one.read().version)

    assert [204, 204] == [
        status(other, attach(AttachedTo.TENANT, "acme", "gold")),
        status(other, put_group("silver", {})),
    ]
    assert {"acme": "gold"} == one.read().attachments.tenants
    assert 3 == one.read().version


def test_a_create_that_loses_against_a_create_is_409_in_the_table_too(stores):
    one, other = stores
    write = one.write

    def meanwhile(rows, version):
        one.write = write
        assert 204 == status(other, put_group("gold", {"publishRateInMsgs": 1}))
        return write(rows, version)

    one.write = meanwhile
    answer = apply(one, put_group("gold", {"publishRateInMsgs": 2}), EVERYWHERE, PARAMETERS)

    assert (409, {"reason": "ResourceGroup already exists"}) == (answer.response.status, answer.response.json)
    assert (1, None, None, None) == one.read().groups["gold"].rates


def test_a_write_that_others_always_come_before_is_tried_four_times(stores):
    one, other = stores
    status(one, put_group("gold", {}))
    write, tried = one.write, []

    def overtaken(rows, version):
        tried.append(version)
        status(other, put_group("silver", {"publishRateInMsgs": len(tried)}))
        return write(rows, version)

    one.write = overtaken
    answer = apply(one, put_group("gold", {"publishRateInMsgs": 7}), EVERYWHERE, PARAMETERS)

    assert (409, {"reason": "Concurrent modification"}) == (answer.response.status, answer.response.json)
    assert 4 == len(tried)


def test_a_request_that_changes_nothing_writes_nothing(stores):
    one, _ = stores
    status(one, put_group("gold", {"publishRateInMsgs": 1}))
    version = one.groups.refresh()

    assert 204 == status(one, put_group("gold", {"publishRateInMsgs": 1}))
    assert version == one.groups.refresh()


def write_many(output, name, count, results):
    """Attach a group of one's own to tenants of one's own, again whenever others came before."""
    store = opened_config(output, QuotaSettings())
    conflicts = 0
    requests = [put_group(name, {"publishRateInMsgs": 1})]
    requests += [attach(AttachedTo.TENANT, f"{name}-{number}", name) for number in range(count)]
    for request in requests:
        while status(store, request) == 409:
            conflicts += 1
    results.put((name, conflicts))


def test_two_processes_that_write_at_once_lose_nothing(tmp_path):
    tables(tmp_path)
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    names, count = ("a", "b"), 5
    writers = [context.Process(target=write_many, args=(str(tmp_path), name, count, results)) for name in names]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)

    read = opened_config(tmp_path, QuotaSettings()).read()
    assert [0, 0] == [writer.exitcode for writer in writers]
    assert {f"{name}-{number}": name for name in names for number in range(count)} == dict(read.attachments.tenants)
    assert {1, 2} == {group.group_id for group in read.groups.values()}
    versions = [row["version"] for name in ("groups", "attachments") for row in rows_of(tmp_path, name)]
    assert list(range(1, 2 * (count + 1) + 1)) == sorted(versions)


def rows_of(output, name):
    store = opened_config(output, QuotaSettings())
    table = getattr(store, name)
    table.refresh()
    return table.select().to_pylist()


def test_threads_that_create_one_name_make_one_group(tmp_path):
    tables(tmp_path)

    def create(rate):
        return status(opened_config(tmp_path, QuotaSettings()), put_group("gold", {"publishRateInMsgs": rate}))

    with ThreadPoolExecutor(3) as pool:
        answers = list(pool.map(create, (1, 2, 3)))

    assert {204, 409} >= set(answers)
    assert 1 == len({row["group_id"] for row in rows_of(tmp_path, "groups")})


def test_tables_that_are_gone_are_told(tmp_path):
    with pytest.raises(
        TableError, match=r"rg_groups cannot be opened: .*; start a job that shares quotas with this output once"
    ):
        opened_config(tmp_path, QuotaSettings())


def test_a_scope_that_does_not_exist_is_told(stores):
    one, _ = stores
    row = {"scope": "broker", "resource": "b", "group_name": "x", "version": 1}
    one.attachments.append_pinned(pa.Table.from_pylist([row], ATTACHMENTS))

    with pytest.raises(TableError, match="scope 'broker' for 'b'; allowed: topic, namespace, tenant; delete the row"):
        one.read()


@pytest.mark.parametrize(
    ("column", "value", "allowed"),
    [
        ("publish_msgs", -1, "0 and above, or null for not limited"),
        ("replication_bytes", -2, "0 and above, or null for not limited"),
        ("group_id", 0, "1 and above"),
        ("name", "go ld", "1 to 250 of"),
    ],
)
def test_a_group_that_people_wrote_wrongly_is_told_and_what_was_read_stays(stores, column, value, allowed):
    one, other = stores
    row = dict.fromkeys(GROUPS.names) | {"group_id": 1, "name": "gold", "shard": 0, "deleted": False, "version": 1}
    other.groups.append_pinned(pa.Table.from_pylist([row | {column: value}], GROUPS))

    for _ in range(2):
        with pytest.raises(
            TableError,
            match=f"^rg_groups has a row for the group .* with {column} .*, allowed: {allowed}.*; delete the row",
        ):
            one.read()
