"""The chain of limits: which applies, where it was set, and what was set before."""

import pyarrow as pa
import pytest

from headgate.core.topic_names import topic_of
from headgate.tables.delta import Tables
from headgate.throttle.schemas import CONTROL
from headgate.why.chain import chain_of
from headgate.why.tables import OutputTables

TOPIC = topic_of("acme/shop/orders")
START, NOON = "1970-01-01T00:00:00+00:00", "2026-01-05T12:00:00+00:00"
NOON_NS = 1_767_614_400 * 10**9


def row(scope, name, messages=None, *, at=START, source="conf", broker=None, group=None):
    kind = "limit" if group is None else "attachment"
    said = {"kind": kind, "scope": scope, "name": name, "messages_per_s": messages, "group_name": group}
    return said | {"effective_time": at, "source": source, "broker": broker, "seq": 0}


@pytest.fixture
def chain(tmp_path):
    """Of rows of control, at noon: level, rate, whether it applies, where it was set, since when and what before."""

    def of(*rows, at_ns=NOON_NS, quota=None):
        table = pa.Table.from_pylist([one | {"seq": place} for place, one in enumerate(rows)])
        times = table["effective_time"].cast(pa.timestamp("us", "UTC"))
        table = table.set_column(table.schema.get_field_index("effective_time"), "effective_time", times)
        whole = pa.table(
            [table[name] if name in table.column_names else pa.nulls(len(table)) for name in CONTROL.names],
            CONTROL.names,
        )
        Tables(tmp_path, {"control": CONTROL}).extend("control", whole.cast(CONTROL))
        found = chain_of(
            OutputTables(str(tmp_path)), TOPIC, ["b1"], at_ns, lambda _, unit: quota if unit == "messages" else None
        )
        return [(one.level, one.messages_per_s, one.is_in_force, one.set_in, one.was and one.was[0]) for one in found]

    return of


@pytest.mark.parametrize(
    ("rows", "levels"),
    [
        ([], []),
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
    assert levels == [one[:3] for one in chain(*rows)] if rows else levels == []


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
    ] == chain(*rows, quota=40)


def test_without_the_table_there_is_no_chain(tmp_path):
    assert () == chain_of(OutputTables(str(tmp_path)), TOPIC, ["b1"], NOON_NS, lambda *_: None)
