"""The chain of limits: which applies, where it was set, and what was set before."""

from datetime import datetime

import pyarrow as pa
import pytest

from headgate.core.quota.attachments import AttachedTo
from headgate.core.quota.config_tables import Attachment, ConfigTables
from headgate.core.quota.groups import ResourceGroup
from headgate.core.topic_names import topic_of
from headgate.quota.tables.topic_tables import output_of
from headgate.tables.delta import Tables
from headgate.throttle.schemas import CONTROL
from headgate.why.chain import Chain, chain_of
from headgate.why.tables import OutputTables

TOPIC = topic_of("acme/shop/orders")
START, NOON = "1970-01-01T00:00:00+00:00", "2026-01-05T12:00:00+00:00"
NOON_NS = 1_767_614_400 * 10**9
SILVER = ConfigTables.of(
    [ResourceGroup(1, "silver", (40, None, None, None), shard=0)],
    [Attachment(AttachedTo.NAMESPACE, "acme/shop", "silver")],
)


def row(scope, name, messages=None, *, at=START, source="conf", broker=None, group=None):
    kind = "limit" if group is None else "attachment"
    said = {"kind": kind, "scope": scope, "name": name, "messages_per_s": messages, "group_name": group}
    return said | {"effective_time": at, "source": source, "broker": broker, "seq": 0}


@pytest.fixture
def chain(tmp_path):
    """Of rows of control, at noon: level, rate, whether it applies, where it was set, since when and what before."""

    def of(*rows, at_ns=NOON_NS, config=None, brokers=("b1",)):
        table = pa.Table.from_pylist([one | {"seq": place} for place, one in enumerate(rows)])
        times = table["effective_time"].cast(pa.timestamp("us", "UTC"))
        table = table.set_column(table.schema.get_field_index("effective_time"), "effective_time", times)
        whole = pa.table(
            [table[name] if name in table.column_names else pa.nulls(len(table)) for name in CONTROL.names],
            CONTROL.names,
        )
        Tables(tmp_path, {"control": CONTROL}).extend("control", whole.cast(CONTROL))
        found = chain_of(OutputTables(str(tmp_path)), TOPIC, brokers, at_ns, config or ConfigTables()).levels
        return [(one.level, one.messages_per_s, one.is_in_force, one.set_in, one.was and one.was[0]) for one in found]

    return of


@pytest.mark.parametrize(
    ("rows", "levels"),
    [
        ([row("default", "", 9)], [("default", 9, True)]),
        ([row("default", "", 9), row("namespace", "acme/shop", 5)], [("namespace", 5, True), ("default", 9, False)]),
        (
            [row("namespace", "acme/shop", 5), row("topic", TOPIC.name, 3)],
            [("topic", 3, True), ("namespace", 5, False)],
        ),
        ([row("topic", TOPIC.name, 0), row("default", "", 9)], [("topic", None, True), ("default", 9, False)]),
        ([row("topic", "persistent://acme/shop/other", 3), row("default", "", 9)], [("default", 9, True)]),
        ([row("broker", "", 9)], [("broker", 9, True)]),
        ([row("broker", "", 9, broker="b2")], []),
    ],
)
def test_the_narrowest_policy_that_is_set_applies(chain, rows, levels):
    assert levels == [one[:3] for one in chain(*rows)]


def test_what_was_set_last_holds_and_says_what_was_before(chain):
    later = row("default", "", 7, at=NOON, source="by hand")

    assert [("default", 7, True, "table control: by hand", 9)] == chain(row("default", "", 9), later)


def test_what_comes_after_the_time_asked_about_does_not_count(chain):
    later = row("default", "", 7, at=NOON)

    assert [("default", 9, True, "broker.conf", None)] == chain(row("default", "", 9), later, at_ns=NOON_NS - 1000)


def test_the_narrowest_attachment_gives_the_group_with_its_quota_and_the_brokers_share(chain):
    rows = [
        row("tenant", "acme", group="gold", source="quota"),
        row("namespace", "acme/shop", group="silver", source="quota"),
        row("group", "silver", 30, source="quota"),
        row("group", "silver", 12, at=NOON, broker="b1", source="quota"),
    ]

    assert [
        ("group", 40, True, "resource groups, attached to namespace acme/shop", None),
        ("share", 12, True, "sharing of the quota", 30),
    ] == chain(*rows, config=SILVER)


def test_without_the_table_there_is_no_chain(tmp_path):
    assert Chain() == chain_of(OutputTables(str(tmp_path)), TOPIC, ["b1"], NOON_NS, ConfigTables())


def test_policies_of_one_broker_stand_for_it_alone(chain):
    rows = [row("default", "", 9), row("topic", TOPIC.name, 3, broker="b1")]

    assert [("topic", 3, True), ("default", 9, False), ("default", 9, True)] == [
        one[:3] for one in chain(*rows, brokers=("b1", "b2"))
    ]


def test_a_group_that_does_not_exist_is_skipped(chain):
    rows = [row("tenant", "acme", group="gold"), row("topic", TOPIC.name, group="missing"), row("group", "gold", 30)]

    assert [("group", None, True, "resource-groups.json, attached to tenant acme", None), ("share", 30)] == [
        *(one for one in chain(*rows) if one[0] == "group"),
        *(one[:2] for one in chain(*rows) if one[0] == "share"),
    ]


def test_rows_of_a_brokers_own_job_are_of_that_broker(tmp_path):
    for broker, rate in (("b1", 3), ("b~2", 9)):
        row_ = row("default", "", rate) | {"effective_time": datetime.fromisoformat(START)}
        Tables(output_of(str(tmp_path), broker), {"control": CONTROL}).append_control([row_])
    found = chain_of(OutputTables(str(tmp_path)), TOPIC, ["b1", "b~2"], NOON_NS, ConfigTables()).levels

    assert [("b1", 3), ("b~2", 9)] == [(one.broker, one.messages_per_s) for one in found]
