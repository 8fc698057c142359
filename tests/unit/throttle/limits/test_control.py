"""Limits and ticks on their way from the control table to the keys that they concern."""

import pyarrow as pa
import pytest

from headgate.conf import LimitRow
from headgate.throttle.keys import broker_key
from headgate.throttle.limits.changes import (
    ATTACHMENT,
    LIMIT,
    UNLOAD_LIMIT,
    Attachment,
    ConnectionLimit,
    Limit,
    UnloadLimit,
    changes_of,
)
from headgate.throttle.limits.control import changes_in, conf_row, pack_control, tick_row
from headgate.throttle.schemas import CONTROL
from unit.throttle.control_rows import (
    AT,
    AT_US,
    ATTACHMENT_ROW,
    BROKER_ROW,
    BY_TOPIC,
    CONNECTIONS,
    CONNECTIONS_ROW,
    DEFAULT,
    GOLD,
    SHOP,
    SLOTS,
    TOPIC_ROW,
    UNLOAD_ROW,
    UNLOADS,
    WHOLE,
    appended,
    pack,
    table,
)
from unit.throttle.rows import TOPICS


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
        Limit(AT_US, 4, "b1", "group", "gold", 50, 0),
        Limit(AT_US, 5, None, "group", "gold", None, None),
        Limit(AT_US, 6, None, "default", "", 10, 1000),
        Attachment(AT_US, 7, None, "namespace", "acme/shop", group_name="iron"),
        Attachment(AT_US, 8, None, "namespace", "acme/shop", group_name=None),
    ] == changes_of(blocks["changes"])


def test_a_limit_of_a_topic_goes_to_its_key_where_topics_are_keys():
    rows = [conf_row(AT, 4, LimitRow("topic", topic, 1, 0)) | {"source": "admin"} for topic in TOPICS[:2]]

    assert {"changes": TOPICS[:2]} == pack(BY_TOPIC, *rows)[0]


def test_a_limit_of_a_brokers_unloads_goes_to_the_key_of_that_broker_where_topics_are_keys():
    keys, blocks = pack(BY_TOPIC, UNLOAD_ROW | {"broker": "b1"})

    assert {"changes": [broker_key("b1")]} == keys
    assert [UnloadLimit(AT_US, 1, "b1", "broker", "", starts_per_s=3, timeout_ms=500)] == changes_of(blocks["changes"])


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


def test_limits_of_connections_are_one_change_of_a_broker_in_which_null_is_off():
    of_broker = CONNECTIONS_ROW | {"broker": "b1", "cooldown_ms": None, "cooldown_permits": None}
    _, blocks = pack(SLOTS, CONNECTIONS_ROW, of_broker, conf_row(AT, 2, CONNECTIONS, gone=True))

    assert [
        ConnectionLimit(AT_US, 1, None, "broker", "", conditions=(1000, 64, 8, 1, 5000, 5, 10)),
        ConnectionLimit(AT_US, 1, "b1", "broker", "", conditions=(1000, 64, 8, 1, 0, 0, 10)),
        ConnectionLimit(AT_US, 2, None, "broker", ""),
    ] == changes_of(blocks["changes"])


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
