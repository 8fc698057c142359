"""What limits of dispatches say of levels: which a change concerns, and the rates of each."""

from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.core.kernels.columns import Ints
from headgate.core.topic_names import namespace_of, without_partition
from headgate.throttle.keys import BROKER_KEY, are_groups, group_key, place_of_level
from headgate.throttle.limits.changes import DISPATCH_LIMIT, REPLICATOR_LIMIT, SUBSCRIPTION_LIMIT, UNLIMITED, Change
from headgate.throttle.limits.effective_limits import EffectiveLimits

KIND_OF = {"topic": DISPATCH_LIMIT, "subscription": SUBSCRIPTION_LIMIT, "replicator": REPLICATOR_LIMIT}
"""The kind of change that limits levels of each scope."""


class LevelIndex:
    """Levels by what limits them: built once for all changes of a step, as there may be many of both.

    Which levels are under a default, a namespace or a topic is worked out for the first change of such a scope: groups'
    limits, which come all the time where quotas are shared, do not need it.
    """

    def __init__(self, keys: pa.StringArray) -> None:
        self._keys = keys
        shared = pc.indices_nonzero(pc.or_(are_groups(keys), pc.equal(keys, BROKER_KEY)))
        self._by_key = dict(zip(keys.take(shared).to_pylist(), shared.to_pylist(), strict=True))

    def concerned(self, change: Change) -> list[int]:
        """Positions of the levels whose rates a change can move."""
        if change.scope in {"broker", "group"}:
            key = BROKER_KEY if change.scope == "broker" else group_key(change.name)
            return [self._by_key[key]] if key in self._by_key else []
        return self._under.get((change.kind, change.scope, change.name), [])

    @cached_property
    def _under(self) -> dict[tuple[str, str, str], list[int]]:
        under: dict[tuple[str, str, str], list[int]] = defaultdict(list)
        for position, (scope, topic, _) in enumerate(map(place_of_level, self._keys.to_pylist())):
            if kind := KIND_OF.get(scope):
                name = without_partition(topic)
                for place in (("default", ""), ("namespace", namespace_of(name)), ("topic", name)):
                    under[kind, *place].append(position)
        return under

    def keys_at(self, positions: Sequence[int]) -> list[str]:
        """Keys of the levels at these positions."""
        keys: list[str] = self._keys.take(pa.array(positions, pa.int64())).to_pylist()
        return keys


def rates_of(in_force: EffectiveLimits, keys: Sequence[str]) -> Ints:
    """Messages and bytes, the period in seconds and whether they are relative, a row for each level."""
    places = [place_of_level(key) for key in keys]
    rates = np.empty((len(keys), len(UNLIMITED)), np.int64)
    for scope in {scope for scope, _, _ in places}:
        here = [position for position, place in enumerate(places) if place.scope == scope]
        if scope in KIND_OF:
            topics = pa.array([places[position].topic for position in here])
            rates[here] = in_force.dispatch_rates(KIND_OF[scope], topics)
        elif scope == "broker":
            rates[here] = in_force.broker_dispatch_rates
        else:
            rates[here] = [(*in_force.dispatch_rates_of(places[position].name), *UNLIMITED[2:]) for position in here]
    return rates
