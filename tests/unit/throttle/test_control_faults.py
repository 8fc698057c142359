"""Control rows that cannot be carried out: each is a dead letter that says why, and its batch goes on."""

import pytest

from headgate.keyed.packing import DEAD_LETTER_KEY
from headgate.throttle.limits.control import tick_row
from unit.throttle.control_rows import (
    AT,
    ATTACHMENT_ROW,
    BROKER_ROW,
    BY_TOPIC,
    CONNECTIONS_ROW,
    SLOTS,
    TOPIC_ROW,
    UNLOAD_ROW,
    pack,
)
from unit.throttle.rows import TOPICS

TO_INT32_MAX = "allowed is a whole number from 0, which is off, to 2147483647"
YEAR_10000_US = 253_402_300_800_000_000
KINDS = ", ".join(
    (
        *("limit", "attachment", "dispatch_limit", "subscription_dispatch_limit", "replicator_dispatch_limit"),
        *("subscribe_limit", "unload_limit", "connection_limit"),
    )
)
SCOPES = "default, namespace, topic, broker, group"
PARTITION = f"{TOPICS[0]}-partition-7"


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
