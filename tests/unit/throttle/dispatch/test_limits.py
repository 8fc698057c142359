"""Which levels of dispatches a limit concerns, and what it takes to find them."""

import pyarrow as pa
import pytest

from headgate.throttle.dispatch import limits as dispatch_limits
from headgate.throttle.dispatch.limits import LevelIndex
from headgate.throttle.keys import BROKER_KEY, group_key, subscription_keys
from headgate.throttle.limits.changes import DISPATCH_LIMIT, REPLICATOR_LIMIT, SUBSCRIPTION_LIMIT
from unit.throttle.domains import dispatch_limit, level_limit
from unit.throttle.rows import TOPICS

T0, T1 = TOPICS[:2]
PARTITION = f"{T0}-partition-3"
KEYS = pa.concat_arrays(
    [
        pa.array([T0, group_key("gold"), T1, BROKER_KEY, PARTITION]),
        subscription_keys(pa.array([T0, T1]), pa.array(["s", "s"]), "subscription"),
        subscription_keys(pa.array([T0]), pa.array(["pulsar.repl.eu"]), "replicator"),
    ]
)


@pytest.mark.parametrize(
    ("kind", "scope", "name", "positions"),
    [
        (DISPATCH_LIMIT, "group", "gold", [1]),
        (DISPATCH_LIMIT, "group", "silver", []),
        (DISPATCH_LIMIT, "broker", "", [3]),
        (DISPATCH_LIMIT, "default", "", [0, 2, 4]),
        (DISPATCH_LIMIT, "namespace", "acme/ns0", [0, 4]),
        (DISPATCH_LIMIT, "topic", T0, [0, 4]),
        (DISPATCH_LIMIT, "topic", TOPICS[3], []),
        (SUBSCRIPTION_LIMIT, "default", "", [5, 6]),
        (SUBSCRIPTION_LIMIT, "namespace", "acme/ns1", [6]),
        (REPLICATOR_LIMIT, "topic", T0, [7]),
    ],
)
def test_a_limit_concerns_levels_of_its_kind_under_its_name(kind, scope, name, positions):
    index = LevelIndex(KEYS)

    assert positions == index.concerned(level_limit(kind, scope, name, 1))
    assert KEYS.take(pa.array(positions, pa.int64())).to_pylist() == index.keys_at(positions)


def test_limits_of_groups_and_of_the_broker_look_at_no_other_level(monkeypatch):
    looked_at = []
    place_of_level = dispatch_limits.place_of_level
    monkeypatch.setattr(dispatch_limits, "place_of_level", lambda key: looked_at.append(key) or place_of_level(key))
    index = LevelIndex(KEYS)
    for change in (dispatch_limit("gold", 1), level_limit(DISPATCH_LIMIT, "broker", "", 1)):
        index.concerned(change)

    assert [] == looked_at
    for rate in (1, 2):
        index.concerned(level_limit(DISPATCH_LIMIT, "default", "", rate))
    assert KEYS.to_pylist() == looked_at
