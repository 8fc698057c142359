"""Names of limiters inside a domain's state.

A topic's limiter has the topic's full name; shared ones begin with @, which no topic does.
"""

import re
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from headgate.core.publish.publish_limiter import Scope

_SHARED_PREFIX = "@"
BROKER_KEY = "@broker"
_GROUP_PREFIX = "@group/"
_OF_SUBSCRIPTION = re.compile(r"@(subscription|replicator)/(\d+)/", re.DOTALL)


def broker_key(broker: str) -> str:
    """The state key of what a broker has apart from its topics, where topics are keys."""
    return f"{BROKER_KEY}/{broker}"


def is_broker_key(key: str) -> bool:
    return key.startswith(f"{BROKER_KEY}/")


def group_key(group: str) -> str:
    return f"{_GROUP_PREFIX}{group}"


def are_groups(keys: pa.StringArray) -> pa.BooleanArray:
    return pc.starts_with(keys, _GROUP_PREFIX)


def are_shared(keys: pa.StringArray) -> pa.BooleanArray:
    return pc.starts_with(keys, _SHARED_PREFIX)


def subscription_keys(topics: pa.StringArray, names: pa.StringArray, scope: str) -> pa.StringArray:
    """Keys of the levels of subscriptions or replicators (`scope`) of topics; no two of them are alike."""
    prefix = pc.binary_join_element_wise(f"@{scope}", pc.utf8_length(topics).cast(pa.string()), topics, "/")
    return pc.binary_join_element_wise(prefix, names, "/")


class LevelPlace(NamedTuple):
    """What a level of dispatch limits; topic and name are empty where there is none."""

    scope: str
    topic: str = ""
    name: str = ""


def place_of_level(key: str) -> LevelPlace:
    """What the level of this key limits."""
    found = _OF_SUBSCRIPTION.match(key)
    if found:
        end = found.end() + int(found[2])
        return LevelPlace(found[1], key[found.end() : end], key[end + 1 :])
    if key.startswith(_GROUP_PREFIX):
        return LevelPlace(str(Scope.GROUP), name=key.removeprefix(_GROUP_PREFIX))
    return LevelPlace(str(Scope.BROKER)) if key == BROKER_KEY else LevelPlace(str(Scope.TOPIC), key)


def scopes_and_names(keys: pa.StringArray, broker: str) -> tuple[pa.StringArray, pa.StringArray]:
    """For limiters of `broker`: their scopes, and the names of the broker, groups and topics that they limit."""
    shared = pc.make_struct(pc.equal(keys, BROKER_KEY), are_groups(keys))
    scopes = pc.case_when(shared, str(Scope.BROKER), str(Scope.GROUP), str(Scope.TOPIC))
    return scopes, pc.case_when(shared, broker, pc.utf8_slice_codeunits(keys, len(_GROUP_PREFIX)), keys)
