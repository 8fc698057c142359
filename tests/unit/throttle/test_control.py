"""Limits and ticks on their way from the control table to the keys that they concern."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from headgate.conf import AttachmentRow, ConnectionLimitRow, LimitRow, UnloadLimitRow
from headgate.throttle.blocks import decode
from headgate.throttle.changes import ATTACHMENT, CONNECTION_LIMIT, LIMIT, UNLOAD_LIMIT, Change, changes_of
from headgate.throttle.control import (
    FROM_THE_START,
    changes_in,
    conf_row,
    conf_rows,
    pack_control,
    tick_row,
)
from headgate.throttle.keys import broker_key
from headgate.throttle.routing import DEAD_LETTER_KEY, Routing
from headgate.throttle.schemas import CONTROL
from unit.throttle.rows import TOPICS

TO_INT32_MAX = "allowed is a whole number from 0, which is off, to 2147483647"
AT = datetime(2026, 1, 1, 12, 0, 0, 250_000, tzinfo=UTC)
AT_US = 1_767_268_800_250_000
YEAR_10000_US = 253_402_300_800_000_000
SLOTS = Routing(slots=3)
WHOLE = Routing(slots=3, whole_brokers=True)
BY_TOPIC = Routing(by_topic=True)
DEFAULT = LimitRow("default", "", 10, 1000)
TENFOLD = LimitRow("default", "", 100, 1000)
GOLD = LimitRow("group", "gold", 50, 0)
IRON = LimitRow("group", "iron", 5, None)
FREE = LimitRow("group", "free", None, None)
ACME = AttachmentRow("tenant", "acme", "gold")
SHOP = AttachmentRow("namespace", "acme/shop", "iron")
UNLOADS = UnloadLimitRow("broker", "", 3, 500)


def table(rows):
    return pa.Table.from_pylist(rows, CONTROL)


def appended(*starts):
    """The control table after the job was started with each of `starts`, newest rows first, as Delta reads them."""
    rows = []
    for hours, wanted in enumerate(starts):
        rows = conf_rows(wanted, table(rows), AT + timedelta(hours=hours)) + rows
    return rows


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


def pack(routing, *rows):
    """Packed rows by kind: their keys, and the first block of each kind."""
    batches = pack_control(routing, table(list(rows)).to_batches())
    packed = [row for batch in batches for row in batch.to_pylist()]
    keys, blocks = {}, {}
    for row in packed:
        keys.setdefault(row["kind"], []).append(row["key"])
        blocks.setdefault(row["kind"], decode(row["block"]))
    return keys, blocks


def test_limits_and_attachments_go_to_every_slot_in_one_block():
    rows = [
        conf_row(AT, 4, GOLD) | {"broker": "b1"},
        conf_row(AT, 5, GOLD, gone=True),
        conf_row(AT, 6, DEFAULT) | {"name": None, "source": "admin"},
        conf_row(AT, 7, SHOP),
        conf_row(AT, 8, SHOP, gone=True),
    ]
    keys, blocks = pack(WHOLE, *rows)

    assert {"changes": WHOLE.keys} == keys
    assert [
        Change(AT_US, 4, "b1", "group", "gold", 50, 0),
        Change(AT_US, 5, None, "group", "gold", None, None),
        Change(AT_US, 6, None, "default", "", 10, 1000),
        Change(AT_US, 7, None, "namespace", "acme/shop", kind=ATTACHMENT, group_name="iron"),
        Change(AT_US, 8, None, "namespace", "acme/shop", kind=ATTACHMENT, group_name=None),
    ] == changes_of(blocks["changes"])


def test_a_limit_of_a_topic_goes_to_its_key_where_topics_are_keys():
    rows = [conf_row(AT, 4, LimitRow("topic", topic, 1, 0)) | {"source": "admin"} for topic in TOPICS[:2]]

    assert {"changes": TOPICS[:2]} == pack(BY_TOPIC, *rows)[0]


def test_a_limit_of_a_brokers_unloads_goes_to_the_key_of_that_broker_where_topics_are_keys():
    keys, blocks = pack(BY_TOPIC, UNLOAD_ROW | {"broker": "b1"})

    assert {"changes": [broker_key("b1")]} == keys
    assert [Change(AT_US, 1, "b1", "broker", "", kind=UNLOAD_LIMIT, starts_per_s=3, timeout_ms=500)] == changes_of(
        blocks["changes"]
    )


@pytest.mark.parametrize(
    ("key", "concerned"),
    [
        (TOPICS[0], [LIMIT]),
        (broker_key("b1"), [UNLOAD_LIMIT]),
    ],
)
def test_limits_of_unloads_concern_keys_of_brokers_alone_and_other_limits_none_of_them(key, concerned):
    changes = changes_in(table(appended([DEFAULT, UNLOADS])))

    assert concerned == [change.kind for change in changes if change.concerns(key)]


def test_limits_of_conf_files_are_given_to_topics_at_the_start_and_not_sent():
    assert ({}, {}) == pack(BY_TOPIC, conf_row(AT, 4, DEFAULT), conf_row(AT, 5, LimitRow("topic", TOPICS[0], 1, 0)))


@pytest.mark.parametrize(
    ("routing", "row", "keys"),
    [
        (SLOTS, tick_row(AT), SLOTS.keys),
        (SLOTS, tick_row(AT, broker="b1", finish=True), SLOTS.keys),
        (SLOTS, tick_row(AT, key=SLOTS.keys[1]), [SLOTS.keys[1]]),
        (BY_TOPIC, tick_row(AT, key=TOPICS[0]), [TOPICS[0]]),
    ],
)
def test_ticks_go_to_every_slot_or_to_the_key_that_they_name(routing, row, keys):
    packed, blocks = pack(routing, row)

    assert {"ticks": keys} == packed
    assert [{"broker": row["broker"], "event_time_us": AT_US, "finish": row["kind"] == "finish"}] == blocks[
        "ticks"
    ].to_pylist()


def test_a_batch_without_rows_gives_one_without_rows():
    empty = [*table([]).to_batches(), pa.RecordBatch.from_pylist([], CONTROL)]

    assert [0] == [batch.num_rows for batch in pack_control(SLOTS, empty)]


CONNECTIONS = ConnectionLimitRow(1000, 64, 8, True, 5000, 5, 10)
CONNECTIONS_ROW = conf_row(AT, 1, CONNECTIONS) | {"source": "admin"}


def test_limits_of_connections_are_one_change_of_a_broker_in_which_null_is_off():
    of_broker = CONNECTIONS_ROW | {"broker": "b1", "cooldown_ms": None, "cooldown_permits": None}
    _, blocks = pack(SLOTS, CONNECTIONS_ROW, of_broker, conf_row(AT, 2, CONNECTIONS, gone=True))

    assert [
        Change(AT_US, 1, None, "broker", "", kind=CONNECTION_LIMIT, conditions=(1000, 64, 8, 1, 5000, 5, 10)),
        Change(AT_US, 1, "b1", "broker", "", kind=CONNECTION_LIMIT, conditions=(1000, 64, 8, 1, 0, 0, 10)),
        Change(AT_US, 2, None, "broker", "", kind=CONNECTION_LIMIT),
    ] == changes_of(blocks["changes"])


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


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"cooldown_ms": -1}, f"cooldown_ms: got -1, {TO_INT32_MAX}"),
        ({"cooldown_permits": 2**31}, f"cooldown_permits: got {2**31}, {TO_INT32_MAX}"),
        ({"io_threads": 0}, "io_threads: got 0, allowed is a whole number from 1 with a max_publish_buffer_mib"),
        ({"cooldown_permits": None}, "cooldown_permits: got None, allowed is a whole number from 1 with a cooldown_ms"),
        ({"scope": "topic"}, "scope: got topic, allowed are broker"),
    ],
)
def test_limits_of_connections_that_cannot_be_are_dead_letters(wrong, reason):
    keys, blocks = pack(SLOTS, CONNECTIONS_ROW | wrong)

    assert ({"dead_letters"}, [reason]) == (set(keys), blocks["dead_letters"]["reason"].to_pylist())


TO_INT32_MAX = "allowed is a whole number from 0, which is off, to 2147483647"
KINDS = ", ".join(
    (
        *("limit", "attachment", "dispatch_limit", "subscription_dispatch_limit", "replicator_dispatch_limit"),
        *("subscribe_limit", "unload_limit", "connection_limit"),
    )
)
TOPIC_ROW = conf_row(AT, 1, LimitRow("topic", TOPICS[0], 1, 0)) | {"source": "admin"}
ATTACHMENT_ROW = conf_row(AT, 1, ACME) | {"source": "admin"}
UNLOAD_ROW = conf_row(AT, 1, UNLOADS) | {"source": "admin"}
BROKER_ROW = TOPIC_ROW | {"scope": "broker", "name": ""}


SCOPES = "default, namespace, topic, broker, group"
PARTITION = f"{TOPICS[0]}-partition-7"


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (TOPIC_ROW | {"kind": "limits"}, f"kind: got limits, allowed are {KINDS}"),
        (TOPIC_ROW | {"kind": None}, f"kind: got None, allowed are {KINDS}"),
        (TOPIC_ROW | {"kind": "layout", "name": None}, f"kind: got layout, allowed are {KINDS}"),
        (TOPIC_ROW | {"effective_time": None}, "effective_time: got null, allowed is a timestamp"),
        (tick_row(AT) | {"effective_time": None}, "effective_time: got null, allowed is a timestamp"),
        (
            TOPIC_ROW | {"effective_time": YEAR_10000_US},
            f"effective_time: got {YEAR_10000_US} us, allowed is a time from 1970 to 2262",
        ),
        (
            TOPIC_ROW | {"effective_time": -1},
            "effective_time: got -1 us, allowed is a time from 1970 to 2262",
        ),
        (
            TOPIC_ROW | {"bytes_per_s": -1},
            "bytes_per_s: got -1, allowed is a whole number from 0, which is off (of a group it blocks)",
        ),
        (
            tick_row(AT, finish=True) | {"source": "admin"},
            f"kind: got finish, allowed are {KINDS}",
        ),
        (TOPIC_ROW | {"scope": "tenant"}, f"scope: got tenant, allowed are {SCOPES}"),
        (TOPIC_ROW | {"scope": None}, f"scope: got None, allowed are {SCOPES}"),
        (ATTACHMENT_ROW | {"scope": "group"}, "scope: got group, allowed are tenant, namespace, topic"),
        (ATTACHMENT_ROW | {"name": "a/b"}, "name: got 'a/b', allowed is a tenant with scope tenant"),
        (ATTACHMENT_ROW | {"name": None}, "name: got None, allowed is a name with scope tenant"),
        (
            ATTACHMENT_ROW | {"group_name": ""},
            "group_name: got '', allowed is null or 1 to 250 of A-Z a-z 0-9 _ - = : .",
        ),
        (
            ATTACHMENT_ROW,
            (
                "kind: got attachment, but the state of this checkpoint is split finer than brokers: start with a new "
                "--output while there are groups"
            ),
        ),
        (UNLOAD_ROW | {"scope": "topic", "name": TOPICS[0]}, "scope: got topic, allowed are broker"),
        (UNLOAD_ROW | {"name": "b1"}, "name: got 'b1', allowed is no name with scope broker"),
        (
            UNLOAD_ROW | {"starts_per_s": None},
            "starts_per_s, timeout_ms: got one of them, allowed are both, or neither: the default holds then",
        ),
        (UNLOAD_ROW | {"starts_per_s": -1}, "starts_per_s: got -1, allowed is a whole number from 0, which is off"),
        (UNLOAD_ROW | {"timeout_ms": 0}, "timeout_ms: got 0, allowed is a whole number from 1 to 9223372036854"),
        (
            UNLOAD_ROW | {"timeout_ms": 9223372036855},
            "timeout_ms: got 9223372036855, allowed is a whole number from 1 to 9223372036854",
        ),
        (TOPIC_ROW | {"name": None}, "name: got None, allowed is a name with scope topic"),
        (TOPIC_ROW | {"scope": "group", "name": ""}, "name: got '', allowed is a name with scope group"),
        (TOPIC_ROW | {"scope": "default", "name": "x"}, "name: got 'x', allowed is no name with scope default"),
        (
            TOPIC_ROW | {"scope": "namespace", "name": "acme"},
            "name: got 'acme', allowed is tenant/namespace with scope namespace",
        ),
        (
            TOPIC_ROW | {"scope": "namespace", "name": "acme/"},
            "name: got 'acme/', allowed is tenant/namespace with scope namespace",
        ),
        (
            TOPIC_ROW | {"name": "persistent://a/b/"},
            "name: got 'persistent://a/b/', allowed is persistent://tenant/namespace/topic with scope topic",
        ),
        (TOPIC_ROW | {"broker": " "}, "broker: got ' ', allowed is a name, or null for all brokers"),
        (
            TOPIC_ROW | {"name": "acme/ns0/t"},
            "name: got 'acme/ns0/t', allowed is persistent://tenant/namespace/topic with scope topic",
        ),
        (
            TOPIC_ROW | {"name": PARTITION},
            f"name: got '{PARTITION}', allowed is {TOPICS[0]} with scope topic: it holds for each partition",
        ),
        (
            BROKER_ROW,
            (
                "scope: got broker, but the state of this checkpoint is split finer than brokers: set the limit in "
                "broker.conf and start with a new --output"
            ),
        ),
        (
            BROKER_ROW | {"messages_per_s": None, "bytes_per_s": 1000},
            (
                "scope: got broker, but the state of this checkpoint is split finer than brokers: set the limit in "
                "broker.conf and start with a new --output"
            ),
        ),
    ],
)
def test_a_wrong_row_becomes_one_dead_letter_that_says_why_and_its_batch_goes_on(row, reason):
    keys, blocks = pack(SLOTS, row, TOPIC_ROW)

    assert {"dead_letters": [DEAD_LETTER_KEY], "changes": SLOTS.keys} == keys
    letter = blocks["dead_letters"].to_pylist()[0]
    assert [reason, "control", None] == [letter["reason"], letter["source"], letter["offset"]]
    assert f"kind={row['kind']}" in letter["raw"] or row["kind"] is None


def test_a_limit_wider_than_a_topic_is_refused_where_topics_are_keys():
    _, blocks = pack(BY_TOPIC, TOPIC_ROW | {"scope": "namespace", "name": "acme/ns0"})

    assert blocks["dead_letters"]["reason"].to_pylist() == [
        (
            "scope: got namespace, allowed is topic while state_key is topic; put wider limits in the conf files and "
            "restart"
        )
    ]


def test_a_limit_of_all_brokers_unloads_is_refused_where_topics_are_keys():
    _, blocks = pack(BY_TOPIC, UNLOAD_ROW)

    assert blocks["dead_letters"]["reason"].to_pylist() == [
        (
            "broker: got null, allowed is a name while state_key is topic; put limits of all brokers in the conf files "
            "and restart"
        )
    ]


@pytest.mark.parametrize("group", ["gold", None])
def test_an_attachment_is_refused_where_topics_are_keys(group):
    _, blocks = pack(BY_TOPIC, ATTACHMENT_ROW | {"group_name": group})

    assert blocks["dead_letters"]["reason"].to_pylist() == [
        "kind: got attachment, allowed is limit while state_key is topic: topics then share no limiter"
    ]


@pytest.mark.parametrize(
    ("routing", "row"),
    [
        (WHOLE, BROKER_ROW),
        (WHOLE, ATTACHMENT_ROW),
        (SLOTS, ATTACHMENT_ROW | {"group_name": None}),
        (SLOTS, BROKER_ROW | {"messages_per_s": 0, "bytes_per_s": None}),
        (SLOTS, TOPIC_ROW | {"messages_per_s": None, "bytes_per_s": None}),
        (SLOTS, UNLOAD_ROW),
        (SLOTS, UNLOAD_ROW | {"broker": "b1", "starts_per_s": 0, "timeout_ms": 9223372036854}),
        (SLOTS, UNLOAD_ROW | {"name": None, "starts_per_s": None, "timeout_ms": None}),
        (SLOTS, TOPIC_ROW | {"name": "non-persistent://acme/ns0/a/b"}),
        (SLOTS, TOPIC_ROW | {"seq": None, "written_at": None, "source": None}),
    ],
)
def test_a_row_that_can_be_carried_out_is_no_dead_letter(routing, row):
    assert {"changes": routing.keys} == pack(routing, row)[0]
    assert row["kind"] in {LIMIT, ATTACHMENT, UNLOAD_LIMIT}
