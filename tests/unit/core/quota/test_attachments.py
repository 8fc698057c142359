"""Topic names, the one group of a topic, effective limits, and tables read again (resource-groups 2, 3, 5.1)."""

import pytest

from headgate.core.quota.attachments import Attachments, Resolution, effective_limits, resolve
from headgate.core.quota.config_tables import Attachment, ConfigTables, Move, moves
from headgate.core.quota.groups import ResourceGroup, TrafficClass
from headgate.core.topic_names import Topic, topic_of

ATTACHED = Attachments({"t": "gt"}, {"t/n": "gn"}, {"persistent://t/n/x": "gx"})
GROUPS = {"gt", "gn", "gx"}
X = Topic("persistent://t/n/x", "t", "t/n")
PUBLISH, DISPATCH = TrafficClass


@pytest.mark.parametrize(
    ("name", "topic"),
    [
        ("persistent://t/n/x", X),
        ("t/n/x", X),
        ("t/n/x-partition-0", X),
        ("persistent://t/n/x-partition-12", X),
        ("non-persistent://t/n/x", Topic("non-persistent://t/n/x", "t", "t/n")),
        ("t/n/a/b/c", Topic("persistent://t/n/a/b/c", "t", "t/n")),
        ("t/n/a://b", Topic("persistent://t/n/a://b", "t", "t/n")),
        ("t/n//", Topic("persistent://t/n//", "t", "t/n")),
        ("t/n/x-partition-", Topic("persistent://t/n/x-partition-", "t", "t/n")),
        ("t/n/x-partition-1a", Topic("persistent://t/n/x-partition-1a", "t", "t/n")),
        ("t/n/x-partition-٣", Topic("persistent://t/n/x-partition-٣", "t", "t/n")),
        ("t/n/x-partition-1-partition-2", Topic("persistent://t/n/x-partition-1", "t", "t/n")),
        ("a-b/c:d/é x", Topic("persistent://a-b/c:d/é x", "a-b", "a-b/c:d")),
    ],
)
def test_partitions_and_short_names_are_their_topic(name, topic):
    assert topic == topic_of(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "x",
        "t/n",
        "t/n/",
        "/n/x",
        "t//x",
        "persistent://t/n",
        "persistent://t//x",
        "http://t/n/x",
        "kafka://t/n/x",
        "persistent:///n/x",
        "t t/n/x",
        "t/é/x",
        "t/n/-partition-3",
        None,
        7,
    ],
)
def test_anything_else_is_no_topic(name):
    assert topic_of(name) is None


@pytest.mark.parametrize(
    ("topic", "groups", "expected"),
    [
        ("t/n/x", GROUPS, Resolution("gx", "topic")),
        ("t/n/y", GROUPS, Resolution("gn", "namespace")),
        ("t/m/x", GROUPS, Resolution("gt", "tenant")),
        ("u/n/x", GROUPS, Resolution(None, None)),
        ("non-persistent://t/n/x", GROUPS, Resolution("gn", "namespace")),
        ("t/n/x", {"gt", "gn"}, Resolution("gn", "namespace", ("gx",))),
        ("t/n/x", {"gt"}, Resolution("gt", "tenant", ("gx", "gn"))),
        ("t/n/x", set(), Resolution(None, None, ("gx", "gn", "gt"))),
        ("t/n/x", {"gx"}, Resolution("gx", "topic")),
    ],
)
def test_the_narrowest_attachment_whose_group_exists_applies_and_dangling_ones_are_listed(topic, groups, expected):
    assert expected == resolve(topic_of(topic), ATTACHED, groups)


def test_replication_is_exempt_whatever_is_attached():
    exempt = resolve(X, ATTACHED, GROUPS, replication=True)

    assert Resolution(None, "exempt") == exempt
    assert {PUBLISH: (None, None), DISPATCH: (None, None)} == effective_limits(
        exempt, {PUBLISH: (1, 1)}, {"gx": {DISPATCH: (2, 2)}}
    )


@pytest.mark.parametrize(
    ("of_topic", "of_groups", "expected"),
    [
        ({}, {}, {PUBLISH: (None, None), DISPATCH: (None, None)}),
        (
            {PUBLISH: (100, None), DISPATCH: (None, 5000)},
            {"gx": {PUBLISH: (250, 9000), DISPATCH: (10, 0)}, "gn": {PUBLISH: (1, 1)}},
            {PUBLISH: (100, 9000), DISPATCH: (10, 0)},
        ),
        ({PUBLISH: (0, None)}, {"gx": {PUBLISH: (None, None)}}, {PUBLISH: (0, None), DISPATCH: (None, None)}),
    ],
)
def test_the_stricter_of_the_topics_and_its_groups_limit_binds(of_topic, of_groups, expected):
    assert expected == effective_limits(Resolution("gx", "topic"), of_topic, of_groups)


def test_a_topic_without_a_group_has_its_own_limits():
    assert (5, None) == effective_limits(Resolution(None, None), {PUBLISH: (5, None)}, {"gx": {}})[PUBLISH]


def group(group_id, name, version, *, deleted=False):
    return ResourceGroup(group_id, name, version=version, deleted=deleted)


def test_tables_hold_the_newest_row_of_every_group_and_resource_in_whatever_order_rows_come():
    tables = ConfigTables.of(
        [group(2, "b", 3), group(1, "a", 5, deleted=True), group(1, "a", 1), group(3, "a", 6)],
        [
            Attachment("namespace", "t/n", None, 8),
            Attachment("namespace", "t/n", "a", 4),
            Attachment("tenant", "t", "b", 7),
            Attachment("topic", "persistent://t/n/x", "z", 2),
        ],
    )

    assert {"a": group(3, "a", 6), "b": group(2, "b", 3)} == tables.groups
    assert Attachments({"t": "b"}, {}, {"persistent://t/n/x": "z"}) == tables.attachments
    assert (3, 8, {"z"}) == (tables.last_group_id, tables.version, tables.dangling())
    assert {2: group(2, "b", 3)} == tables.attached_groups()
    assert Resolution("b", "tenant", ("z",)) == tables.resolve(X)


def test_an_id_is_known_as_given_even_when_its_group_is_gone():
    assert 7 == ConfigTables.of([group(7, "a", 2, deleted=True)], []).last_group_id


def test_a_written_row_makes_other_tables_and_leaves_the_old_ones():
    rows = [group(1, "a", 1), group(2, "b", 2), Attachment("tenant", "t", "a", 3), Attachment("tenant", "t", None, 4)]
    written = [ConfigTables()]
    for row in rows:
        written.append(written[-1].written(row))

    assert written[-1] == ConfigTables.of(rows[:2], rows[2:])
    assert ({}, {"t": "a"}, {}) == tuple(dict(tables.attachments.tenants) for tables in written[2:])
    assert {"b"} == set(written[2].written(group(1, "a", 5, deleted=True)).groups)


def test_nothing_is_evaluated_while_nothing_is_attached():
    assert {} == ConfigTables.of([group(1, "a", 1)], []).attached_groups()


def test_a_topic_moves_from_one_group_to_another_in_one_evaluation():
    topics = [topic_of(name) for name in ("t/n/x", "t/n/y", "t/m/z", "u/n/x")]
    groups = [group(1, "a", 1), group(2, "b", 2)]
    before = ConfigTables.of(groups, [Attachment("namespace", "t/n", "a", 3)])
    after = ConfigTables.of(groups, [Attachment("namespace", "t/n", "b", 4), Attachment("tenant", "t", "a", 5)])

    assert [Move(topics[0], "a", "b"), Move(topics[1], "a", "b"), Move(topics[2], None, "a")] == moves(
        before, after, topics
    )
    assert [] == moves(before, ConfigTables.of(groups, [Attachment("namespace", "t/n", "a", 3)]), topics)


def test_a_dangling_attachment_works_once_its_group_is_there():
    attached = [Attachment("namespace", "t/n", "a", 1)]

    assert [Move(X, None, "a")] == moves(
        ConfigTables.of([], attached), ConfigTables.of([group(1, "a", 2)], attached), [X]
    )


def test_a_group_made_anew_under_its_name_is_another_one():
    attached = [Attachment("namespace", "t/n", "a", 2)]
    before = ConfigTables.of([group(1, "a", 1)], attached)
    after = ConfigTables.of([group(1, "a", 3, deleted=True), group(2, "a", 4)], attached)

    assert [Move(X, "a", "a")] == moves(before, after, [X])
