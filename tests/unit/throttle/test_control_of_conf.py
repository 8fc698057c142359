"""What conf files append to the control table at each start: limits and attachments that changed, from when on."""

from dataclasses import replace

import pytest

from headgate.conf import AttachmentRow, LimitRow, UnloadLimitRow
from headgate.throttle.keys import broker_key
from headgate.throttle.limits.changes import ATTACHMENT
from headgate.throttle.limits.control import FROM_THE_START, changes_in, conf_row, conf_rows, tick_row
from unit.throttle.control_rows import (
    ACME,
    AT,
    CONNECTIONS,
    DEFAULT,
    FREE,
    GOLD,
    IRON,
    SHOP,
    TENFOLD,
    UNLOADS,
    appended,
    table,
)
from unit.throttle.rows import TOPICS


def brief(rows):
    return [
        (row["effective_time"], row["scope"], row["name"], row["messages_per_s"], row["bytes_per_s"]) for row in rows
    ]


def test_limits_of_the_first_start_hold_from_the_start_of_time():
    assert [(FROM_THE_START, "default", "", 10, 1000), (FROM_THE_START, "group", "gold", 50, 0)] == brief(
        conf_rows([DEFAULT, GOLD], table([]), AT)
    )


def test_rows_of_others_do_not_make_a_table_that_is_not_new():
    foreign = conf_row(AT, 7, GOLD) | {"source": "admin"}
    rows = conf_rows([DEFAULT, GOLD], table([foreign, tick_row(AT)]), AT)

    assert [(FROM_THE_START, 0), (FROM_THE_START, 1)] == [(row["effective_time"], row["seq"]) for row in rows]


RESTARTS = {
    "same": ([[DEFAULT, GOLD]], [DEFAULT, GOLD], []),
    "same in another order": ([[DEFAULT, GOLD]], [GOLD, DEFAULT], []),
    "changed": ([[DEFAULT]], [TENFOLD], [(AT, "default", "", 100, 1000)]),
    "new": ([[DEFAULT]], [DEFAULT, GOLD], [(AT, "group", "gold", 50, 0)]),
    "gone": ([[DEFAULT, GOLD]], [DEFAULT], [(AT, "group", "gold", None, None)]),
    "all three": (
        [[DEFAULT, GOLD]],
        [TENFOLD, IRON],
        [(AT, "default", "", 100, 1000), (AT, "group", "iron", 5, None), (AT, "group", "gold", None, None)],
    ),
    "still gone": ([[DEFAULT, GOLD], [DEFAULT]], [DEFAULT], []),
    "back": ([[DEFAULT, GOLD], [DEFAULT]], [DEFAULT, GOLD], [(AT, "group", "gold", 50, 0)]),
    "still changed": ([[DEFAULT], [TENFOLD]], [TENFOLD], []),
    "a group without limits": ([[DEFAULT]], [DEFAULT, FREE], []),
    "a group's limits lifted": ([[GOLD]], [LimitRow("group", "gold", None, None)], [(AT, "group", "gold", None, None)]),
    "a group blocked": ([[GOLD]], [LimitRow("group", "gold", 50, None)], [(AT, "group", "gold", 50, None)]),
    "changed back": ([[DEFAULT], [TENFOLD]], [DEFAULT], [(AT, "default", "", 10, 1000)]),
}


@pytest.mark.parametrize(("starts", "wanted", "rows"), RESTARTS.values(), ids=RESTARTS)
def test_a_restart_appends_what_the_conf_files_have_changed_since_the_last(starts, wanted, rows):
    assert rows == brief(conf_rows(wanted, table(appended(*starts)), AT))


@pytest.mark.parametrize(
    ("starts", "wanted", "rows"),
    [
        (
            [],
            [ACME, SHOP],
            [(FROM_THE_START, "tenant", "acme", "gold"), (FROM_THE_START, "namespace", "acme/shop", "iron")],
        ),
        ([[ACME, SHOP]], [SHOP, ACME], []),
        ([[ACME]], [AttachmentRow("tenant", "acme", "iron")], [(AT, "tenant", "acme", "iron")]),
        ([[ACME, SHOP]], [SHOP], [(AT, "tenant", "acme", None)]),
        ([[ACME, SHOP], [SHOP]], [SHOP], []),
        ([[DEFAULT, ACME]], [DEFAULT, ACME, SHOP], [(AT, "namespace", "acme/shop", "iron")]),
    ],
)
def test_a_restart_appends_what_the_conf_files_attach_and_no_longer_attach(starts, wanted, rows):
    found = conf_rows(wanted, table(appended(*starts)), AT)

    assert {ATTACHMENT} >= {row["kind"] for row in found}
    assert rows == [(row["effective_time"], row["scope"], row["name"], row["group_name"]) for row in found]


@pytest.mark.parametrize("before", [[], [DEFAULT, GOLD, ACME]])
def test_limits_of_groups_and_attachments_can_be_left_to_others(before):
    rows = conf_rows([TENFOLD, IRON, SHOP], table(appended(before)), AT, groups=False)

    assert [("default", "", 100)] == [(row["scope"], row["name"], row["messages_per_s"]) for row in rows]


@pytest.mark.parametrize(
    ("wanted", "rows"),
    [
        ([UNLOADS], []),
        ([UnloadLimitRow("broker", "", 3, 600)], [(AT, "unload_limit", "broker", 3, 600)]),
        ([], [(AT, "unload_limit", "broker", None, None)]),
    ],
)
def test_a_restart_appends_the_limit_of_unloads_if_it_has_changed(wanted, rows):
    names = ("effective_time", "kind", "scope", "starts_per_s", "timeout_ms")
    found = conf_rows([DEFAULT, *wanted], table(appended([DEFAULT, UNLOADS])), AT)

    assert rows == [tuple(row[name] for name in names) for row in found]


def test_conf_rows_are_numbered_on_so_that_their_changes_are_in_the_order_of_appending():
    changes = changes_in(table(appended([DEFAULT, GOLD], [TENFOLD], [DEFAULT, GOLD])))

    assert [0, 1, 2, 3, 4, 5] == [change.seq for change in changes]
    assert [10, 50, 100, None, 10, 50] == [change.messages_per_s for change in changes]


def test_limits_of_connections_change_at_a_restart_and_concern_keys_of_brokers_alone():
    first = conf_rows([CONNECTIONS], table([]), AT)
    lower = replace(CONNECTIONS, max_pending_publish_requests=10)
    then = conf_rows([lower], table(first), AT)

    assert [] == conf_rows([CONNECTIONS], table(first), AT)
    assert [(FROM_THE_START, 1000), (AT, 10)] == [
        (row["effective_time"], row["max_pending_publish_requests"]) for row in first + then
    ]
    (change,) = changes_in(table(first))
    assert (True, False) == (change.concerns(broker_key("b1")), change.concerns(TOPICS[0]))
