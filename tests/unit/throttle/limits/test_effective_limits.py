"""Which limit holds for a limiter, and which limiters a change concerns (rate-limiters 11)."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.core.topic_names import namespace_of, without_partition
from headgate.throttle.keys import BROKER_KEY, group_key
from headgate.throttle.limits.changes import OFF, Limit, changes_of, changes_table
from headgate.throttle.limits.effective_limits import EffectiveLimits
from unit.throttle.domains import limit
from unit.throttle.drawn import quick

TOPIC = "persistent://acme/ns0/a"


def book_of(*changes):
    return EffectiveLimits.from_changes(changes)


@pytest.mark.parametrize(
    ("changes", "rates"),
    [
        ([], OFF),
        ([limit("default", "", 1, 2)], (1, 2)),
        ([limit("namespace", "acme/ns0", 3, 4), limit("default", "", 1, 2)], (3, 4)),
        ([limit("topic", TOPIC, 5, 6), limit("namespace", "acme/ns0", 3, 4), limit("default", "", 1, 2)], (5, 6)),
        ([limit("topic", TOPIC, 0, 0), limit("namespace", "acme/ns0", 3, 4)], OFF),
        ([limit("namespace", "acme/ns0", 0, 0), limit("default", "", 1, 2)], OFF),
        ([limit("default", "", 1, 2), limit("topic", TOPIC, 5, 6), limit("topic", TOPIC)], (1, 2)),
        ([limit("default", "", 1, 2), limit("namespace", "acme/ns0", 3, 4), limit("namespace", "acme/ns0")], (1, 2)),
        ([limit("default", "", 1, 2), limit("default")], OFF),
        ([limit("topic", TOPIC)], OFF),
        ([limit("topic", TOPIC, 5)], (5, 0)),
        ([limit("topic", TOPIC, -5, -1)], OFF),
        ([limit("broker", "", 1, 2), limit("group", "acme", 3, 4)], OFF),
        ([limit("namespace", "acme/ns", 3, 4), limit("namespace", "acme/ns0/a", 3, 4)], OFF),
        ([limit("topic", f"non-{TOPIC}", 5, 6)], OFF),
    ],
)
def test_a_topic_has_its_own_limit_else_its_namespaces_else_the_default(changes, rates):
    assert rates == book_of(*changes).rates_of(TOPIC)


@pytest.mark.parametrize("key", [TOPIC, f"{TOPIC}-partition-0", f"{TOPIC}-partition-12"])
def test_a_partition_has_the_limit_of_its_topic(key):
    assert (5, 6) == book_of(limit("default", "", 1, 2), limit("topic", TOPIC, 5, 6)).rates_of(key)


def test_the_broker_and_groups_have_limits_of_their_own():
    in_force = book_of(limit("default", "", 1, 2), limit("broker", "", 3, 4), limit("group", "gold", 5, 6))

    assert [(3, 4), (5, 6), OFF] == [
        in_force.rates_of(key) for key in (BROKER_KEY, group_key("gold"), group_key("iron"))
    ]


KEYS = [
    "persistent://acme/ns0/a",
    "persistent://acme/ns0/a-partition-0",
    "persistent://acme/ns0/a-partition-12",
    "persistent://acme/ns0/a-partition-1x",
    "persistent://acme/ns0/ab",
    "non-persistent://acme/ns0/a",
    "persistent://acme/ns0.x/a.b+c(d)[e]",
    "persistent://acme/ns0-x/aab+c(d)[e]",
    "persistent://acme2/ns0/a",
    BROKER_KEY,
    group_key("acme"),
    group_key("a.b"),
    group_key("axb"),
]


@pytest.mark.parametrize(
    ("scope", "name", "positions"),
    [
        ("default", "", range(9)),
        ("namespace", "acme/ns0", [0, 1, 2, 3, 4, 5]),
        ("namespace", "acme/ns0.x", [6]),
        ("namespace", "acme/ns", []),
        ("topic", "persistent://acme/ns0/a", [0, 1, 2]),
        ("topic", "non-persistent://acme/ns0/a", [5]),
        ("topic", "persistent://acme/ns0.x/a.b+c(d)[e]", [6]),
        ("topic", "persistent://acme/ns0/", []),
        ("broker", "", [9]),
        ("group", "acme", [10]),
        ("group", "a.b", [11]),
        ("group", "a", []),
    ],
)
def test_a_change_concerns_the_limiters_under_its_name_and_no_others(scope, name, positions):
    assert list(positions) == EffectiveLimits().limiters_under(limit(scope, name, 1, 1), pa.array(KEYS))


letters = st.text(
    st.characters(codec="utf-8", exclude_characters="/", exclude_categories=["Cs"]), min_size=1, max_size=4
)
special = st.text(st.sampled_from("a.*+?()[]{}|^$\\-#&~ \t\né@:"), min_size=1, max_size=5)
parts = st.one_of(letters, special)
topics = st.builds("persistent://{}/{}/{}{}".format, parts, parts, parts, st.sampled_from(["", "-partition-3"]))


@quick
@given(st.lists(topics, min_size=1, max_size=6), st.lists(parts, max_size=2), st.data())
def test_the_limiters_under_a_change_are_those_whose_rates_it_moves_whatever_their_names(keys, groups, data):
    keys = list(dict.fromkeys([*keys, BROKER_KEY, *map(group_key, groups)]))
    scope = data.draw(st.sampled_from(["default", "namespace", "topic", "broker", "group"]))
    names = {
        "namespace": [namespace_of(key) for key in keys if namespace_of(key)],
        "topic": [without_partition(key) for key in keys if namespace_of(key)],
        "group": groups,
    }
    change = limit(scope, data.draw(st.sampled_from(names.get(scope) or [""])), 1, 2)
    in_force = EffectiveLimits()
    in_force.apply(change)
    moved = [position for position, key in enumerate(keys) if in_force.rates_of(key) != OFF]

    assert moved == in_force.limiters_under(change, pa.array(keys))


def test_a_book_is_built_again_from_its_changes():
    changes = [
        limit("default", "", 1, 2),
        limit("broker", "", 3, 4),
        limit("namespace", "acme/ns0", 5, 6),
        limit("topic", TOPIC, 0, 0),
        limit("group", "gold", 7, 0),
    ]
    in_force = book_of(*changes, limit("group", "iron", 1, 1), limit("group", "iron"))

    assert changes == in_force.changes()
    assert changes == EffectiveLimits.from_changes(in_force.changes()).changes()


@pytest.mark.parametrize("changes", [[], [Limit(1, 2, "b", "topic", TOPIC, None, 2**63 - 1), limit("default")]])
def test_changes_come_back_from_their_table(changes):
    assert changes == changes_of(changes_table(changes))


@pytest.mark.parametrize(
    ("topic", "namespace"),
    [
        ("persistent://acme/ns0/a", "acme/ns0"),
        ("non-persistent://acme/ns0/a/b", "acme/ns0"),
        ("acme/ns0/a", ""),
        ("persistent://acme/ns0/a\nb\n", "acme/ns0"),
        ("persistent://acme/ns0", ""),
        ("x-persistent://acme/ns0/a", ""),
    ],
)
def test_a_full_topic_name_has_a_namespace(topic, namespace):
    assert namespace == namespace_of(topic)
