"""Control rows that limit levels of dispatches: from conf files, with their faults, and where they go."""

from dataclasses import replace

import pytest

from headgate.conf import LevelLimitRow, LimitRow
from headgate.keyed.packing import DEAD_LETTER_KEY
from headgate.throttle.limits.changes import (
    CLASSES,
    DISPATCH_LIMIT,
    OF_DISPATCH,
    REPLICATOR_LIMIT,
    SUBSCRIPTION_LIMIT,
    changes_of,
)
from headgate.throttle.limits.control import changes_in, conf_row, conf_rows
from unit.throttle.control_rows import AT, AT_US, BY_TOPIC, DEFAULT, SLOTS, WHOLE, appended, pack, table
from unit.throttle.rows import TOPICS

LEVELS = {
    DISPATCH_LIMIT: LevelLimitRow("dispatch", "default", "", 10, 0),
    SUBSCRIPTION_LIMIT: LevelLimitRow("subscription", "namespace", "acme/ns0", 10, 20, 3, relative=True),
    REPLICATOR_LIMIT: LevelLimitRow("replicator", "topic", TOPICS[0], 0, 20, 3),
}
TOPIC = conf_row(AT, 1, LimitRow("topic", TOPICS[0], 1, 0)) | {"source": "admin", "kind": DISPATCH_LIMIT}
GROUP = TOPIC | {"scope": "group", "name": "gold"}
BROKER = TOPIC | {"scope": "broker", "name": ""}
every_kind = pytest.mark.parametrize("kind", OF_DISPATCH)


def restarted(changed, before=LEVELS):
    """What a restart appends that has `changed` in place of `before`."""
    return conf_rows(list(changed.values()), table(appended(list(before.values()))), AT)


@every_kind
def test_a_restart_with_the_same_limits_of_levels_appends_nothing(kind):
    assert [] == restarted({kind: LEVELS[kind]}, {kind: LEVELS[kind]})


@every_kind
@pytest.mark.parametrize(
    ("changed", "column"),
    [
        ({"messages_per_period": 9}, "messages_per_s"),
        ({"bytes_per_period": 9}, "bytes_per_s"),
        ({"period_s": 5}, "period_s"),
    ],
)
def test_a_restart_appends_a_limit_of_levels_whose_rate_or_period_has_changed(kind, changed, column):
    (row,) = restarted(LEVELS | {kind: replace(LEVELS[kind], **changed)})

    assert (AT, kind, *changed.values()) == (row["effective_time"], row["kind"], row[column])


@every_kind
def test_a_restart_appends_a_limit_of_levels_whose_relation_has_changed(kind):
    relative = not LEVELS[kind].relative
    (row,) = restarted(LEVELS | {kind: replace(LEVELS[kind], relative=relative)})

    assert (kind, relative) == (row["kind"], row["relative_to_publish_rate"])


@every_kind
def test_a_restart_takes_back_a_limit_of_levels_that_is_no_longer_there(kind):
    (row,) = restarted({of_kind: level for of_kind, level in LEVELS.items() if of_kind != kind})
    names = ("kind", "scope", "name", "messages_per_s", "bytes_per_s", "period_s")

    assert (kind, LEVELS[kind].scope, LEVELS[kind].name, None, None, None) == tuple(row[name] for name in names)


def test_limits_of_publishes_and_of_each_kind_of_level_have_places_of_their_own():
    rows = [DEFAULT, *(LevelLimitRow(level, "default", "", 10, 1000) for level in ("dispatch", "subscription"))]
    control = table(appended(rows))

    assert ([], 3) == (conf_rows(rows, control, AT), len({change.place for change in changes_in(control)}))


@every_kind
def test_a_limit_of_a_level_comes_with_its_period_and_relation(kind):
    row = TOPIC | {"kind": kind, "bytes_per_s": 9, "period_s": 7, "relative_to_publish_rate": True}
    expected = CLASSES[kind](AT_US, 1, None, "topic", TOPICS[0], 1, 9, period_s=7, relative_to_publish_rate=True)

    assert [expected] == changes_of(pack(SLOTS, row)[1]["changes"])
    assert (1, 9, 7, 1) == expected.dispatch_rates


PERIOD = "allowed is null or a whole number from 0 to 2147483647"
RATE = "allowed is a whole number from 0, which is off (of a group it blocks)"
SCOPES = "default, namespace, topic, broker, group"


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (TOPIC | {"messages_per_s": -1}, f"messages_per_s: got -1, {RATE}"),
        (TOPIC | {"period_s": -1}, f"period_s: got -1, {PERIOD}"),
        (TOPIC | {"period_s": 2**31}, f"period_s: got 2147483648, {PERIOD}"),
        (BROKER | {"period_s": 2**31}, f"period_s: got 2147483648, {PERIOD}"),
        (
            GROUP | {"period_s": 2},
            "period_s: got 2, allowed is null or 1 with scope group: rates of groups are per second",
        ),
        (
            GROUP | {"relative_to_publish_rate": True},
            "relative_to_publish_rate: got true, allowed is null or false with scope group",
        ),
        (
            BROKER | {"relative_to_publish_rate": True},
            "relative_to_publish_rate: got true, allowed is null or false with scope broker",
        ),
        (TOPIC | {"scope": "tenant"}, f"scope: got tenant, allowed are {SCOPES}"),
        *(
            (row | {"kind": kind}, f"scope: got {row['scope']}, allowed are default, namespace, topic")
            for kind in (SUBSCRIPTION_LIMIT, REPLICATOR_LIMIT)
            for row in (BROKER, GROUP)
        ),
        (TOPIC | {"name": "acme"}, "name: got 'acme', allowed is persistent://tenant/namespace/topic with scope topic"),
        (
            BROKER,
            (
                "scope: got broker, but the state of this checkpoint is split finer than brokers: set the limit in "
                "broker.conf and start with a new --output"
            ),
        ),
    ],
)
def test_a_limit_of_levels_that_cannot_be_carried_out_is_a_dead_letter_that_says_why(row, reason):
    keys, blocks = pack(SLOTS, row)

    assert {"dead_letters": [DEAD_LETTER_KEY]} == keys
    assert [reason] == blocks["dead_letters"]["reason"].to_pylist()


@pytest.mark.parametrize(
    ("routing", "row"),
    [
        *((SLOTS, TOPIC | {"kind": kind}) for kind in OF_DISPATCH),
        *((SLOTS, TOPIC | {"kind": kind, "scope": "default", "name": None}) for kind in OF_DISPATCH),
        (SLOTS, TOPIC | {"messages_per_s": None, "bytes_per_s": None}),
        (SLOTS, TOPIC | {"period_s": 2**31 - 1, "relative_to_publish_rate": True}),
        (SLOTS, TOPIC | {"period_s": 0, "relative_to_publish_rate": False}),
        (SLOTS, GROUP | {"period_s": 1, "relative_to_publish_rate": False}),
        (SLOTS, BROKER | {"messages_per_s": 0}),
        (WHOLE, BROKER | {"period_s": 9}),
    ],
)
def test_a_limit_of_levels_that_can_be_carried_out_is_no_dead_letter(routing, row):
    assert {"changes": routing.keys} == pack(routing, row)[0]


@every_kind
def test_where_topics_are_keys_a_limit_goes_to_its_topics_and_a_wider_one_is_refused(kind):
    rows = [TOPIC | {"kind": kind}, TOPIC | {"kind": kind, "scope": "default", "name": ""}]
    keys, blocks = pack(BY_TOPIC, *rows)

    assert {"changes": [TOPICS[0]], "dead_letters": [DEAD_LETTER_KEY]} == keys
    assert [(kind, "topic", TOPICS[0])] == [change.place for change in changes_of(blocks["changes"])]
