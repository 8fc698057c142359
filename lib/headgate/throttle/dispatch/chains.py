"""The levels that each subscription's dispatches are held against: found, or registered where they are not there yet.

A level that limits nothing is not there; groups' are, as usage is told of them.
"""

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.columns import encoded, no_ints, no_strings, places
from headgate.core.dispatch.dispatch_domain import BROKER, GROUP, NO_LEVEL, OWN, PLACES, TOPIC
from headgate.core.kernels.columns import Flags, Ints
from headgate.core.kernels.publish.types import NO_GROUP, UNRESOLVED
from headgate.throttle.dispatch.limits import KIND_OF, rates_of
from headgate.throttle.keys import BROKER_KEY, are_groups, place_of_level, subscription_keys
from headgate.throttle.limits.changes import Change
from headgate.throttle.registration import REPLICATOR
from headgate.throttle.state import DomainState

OF_TOPICS = ("default", "namespace", "topic")
"""Scopes of limits that levels of topics, subscriptions and replicators follow."""


class Subscriptions(NamedTuple):
    """Subscriptions and replicators: topic, name, and topics without repetition, by whose index each has its own."""

    topics: pa.StringArray
    names: pa.StringArray
    distinct_topics: pa.StringArray
    of_topic: Ints

    @classmethod
    def of(cls, topics: pa.StringArray, names: pa.StringArray) -> Self:
        return cls(topics, names, *encoded(topics))

    @classmethod
    def none(cls) -> Self:
        return cls(no_strings(), no_strings(), no_strings(), no_ints())

    @property
    def are_replicators(self) -> Flags:
        """Which are replicators, by Pulsar's prefix of their names: groups do not concern them."""
        are: Flags = pc.starts_with(self.names, REPLICATOR).to_numpy(zero_copy_only=False).astype(np.bool_)
        return are


def register_topics(domain: DomainState, subscriptions: Subscriptions) -> Ints:
    """Positions in the state of each subscription's topic, registered if anything is attached; -1: not kept there.

    Replicators' are not (resource-groups 2).
    """
    state = domain.dispatch
    topic = np.full(len(subscriptions.names), -1)
    of_groups = np.flatnonzero(~subscriptions.are_replicators)
    if not domain.in_force.has_attachments or not len(of_groups):
        return topic
    topics, codes = encoded(subscriptions.topics.take(pa.array(of_groups)))
    found = places(state.topics, topics)
    new = topics.filter(pa.array(found < 0))
    if len(new):
        state.topics = pa.concat_arrays([state.topics, new])
        state.level_of = np.concatenate([state.level_of, np.full(len(new), UNRESOLVED)])
        state.topic_hour = np.concatenate([state.topic_hour, np.zeros(len(new), np.int64)])
        found = places(state.topics, topics)
    resolve(domain, found[state.level_of[found] == UNRESOLVED])
    topic[of_groups] = found[codes]
    return topic


def resolve(domain: DomainState, topics: Ints) -> None:
    """Look up the groups of these topics, and make levels for those that have none yet, in their order."""
    if not len(topics):
        return
    state = domain.dispatch
    groups, codes = encoded(domain.in_force.groups_of(state.topics.take(pa.array(topics))))
    _add_levels(domain, groups.filter(pa.array(places(state.keys, groups) < 0)))
    state.level_of[topics] = np.append(places(state.keys, groups), NO_GROUP)[codes]


def chains(domain: DomainState, subscriptions: Subscriptions, topic: Ints, limits: Sequence[Change]) -> Ints:
    """The levels of each subscription by place. topic: from register_topics. limits: that come in this step."""
    found = np.full((len(subscriptions.names), PLACES), NO_LEVEL)
    if not len(found):
        return found
    found[:, BROKER] = _of_broker(domain, limits)
    found[:, TOPIC] = _of_topics(domain, subscriptions, limits)
    is_replicator = subscriptions.are_replicators
    for scope, chosen in (("subscription", ~is_replicator), ("replicator", is_replicator)):
        found[chosen, OWN] = _of_subscriptions(domain, subscriptions, scope, np.flatnonzero(chosen), limits)
    groups = np.append(domain.dispatch.level_of, NO_GROUP)[topic]
    found[:, GROUP] = np.where(groups >= 0, groups, NO_LEVEL)
    return found


def _of_broker(domain: DomainState, limits: Sequence[Change]) -> int:
    is_limited = max(domain.in_force.broker_dispatch_rates[:2]) > 0
    is_wanted = np.array([is_limited or _comes(limits, KIND_OF["topic"], "broker")])
    return int(_positions(domain, pa.array([BROKER_KEY]), is_wanted)[0])


def _of_topics(domain: DomainState, subscriptions: Subscriptions, limits: Sequence[Change]) -> Ints:
    kind, topics = KIND_OF["topic"], subscriptions.distinct_topics
    if not _may_limit(domain, kind, limits):
        return np.full(len(subscriptions.names), NO_LEVEL)
    is_wanted = _are_limited(domain, kind, topics) | _comes(limits, kind, *OF_TOPICS)
    return _positions(domain, topics, is_wanted)[subscriptions.of_topic]


def _of_subscriptions(
    domain: DomainState, subscriptions: Subscriptions, scope: str, chosen: Ints, limits: Sequence[Change]
) -> Ints:
    kind = KIND_OF[scope]
    if not len(chosen) or not _may_limit(domain, kind, limits):
        return np.full(len(chosen), NO_LEVEL)
    taken = pa.array(chosen)
    keys = subscription_keys(subscriptions.topics.take(taken), subscriptions.names.take(taken), scope)
    is_limited = _are_limited(domain, kind, subscriptions.distinct_topics)[subscriptions.of_topic[chosen]]
    return _positions(domain, keys, is_limited | _comes(limits, kind, *OF_TOPICS))


def _may_limit(domain: DomainState, kind: str, limits: Sequence[Change]) -> bool:
    """Whether there can be levels of that kind."""
    return domain.in_force.has_dispatch_rates(kind) or _comes(limits, kind, *OF_TOPICS)


def _comes(limits: Sequence[Change], kind: str, *scopes: str) -> bool:
    return any(change.kind == kind and change.scope in scopes for change in limits)


def _are_limited(domain: DomainState, kind: str, topics: pa.StringArray) -> Flags:
    are: Flags = domain.in_force.dispatch_rates(kind, topics)[:, :2].max(axis=1) > 0
    return are


def _positions(domain: DomainState, keys: pa.StringArray, is_wanted: Flags) -> Ints:
    """Positions of the levels with these keys; those that are wanted and not there are registered in their order."""
    state = domain.dispatch
    found = places(state.keys, keys)
    new = np.flatnonzero((found < 0) & is_wanted)
    if len(new):
        _add_levels(domain, keys.take(pa.array(new)))
        found = places(state.keys, keys)
    return found


def _add_levels(domain: DomainState, keys: pa.StringArray) -> None:
    if not len(keys):
        return
    state = domain.dispatch
    state.keys = pa.concat_arrays([state.keys, keys])
    rates = rates_of(domain.in_force, keys.to_pylist())
    is_group = are_groups(keys).to_numpy(zero_copy_only=False).astype(np.bool_)
    added = {name: np.zeros((len(keys), *values.shape[1:]), np.int64) for name, values in state.levels.items()}
    added["rate"][is_group] = rates[is_group, :2]
    added["configured"][~is_group] = rates[~is_group, :2]
    added["period_s"], added["relative"] = rates[:, 2], rates[:, 3]
    added["averages"] = _averages(domain, keys)
    state.levels = {name: np.concatenate([values, added[name]]) for name, values in state.levels.items()}


def _averages(domain: DomainState, keys: pa.StringArray) -> Ints:
    """How fast the topics of these levels are published to, as it was told last."""
    published = domain.dispatch.published
    if not len(published.topic):
        return np.zeros((len(keys), 2), np.int64)
    known = np.zeros((len(domain.keys) + 1, 2), np.int64)
    known[published.topic] = published.averages
    averages: Ints = known[_topics_published(domain, keys)]
    return averages


def _topics_published(domain: DomainState, keys: pa.StringArray) -> Ints:
    """The position of each level's topic among the publish limiters, -1: none."""
    topics = pa.array([place_of_level(key)[1] for key in keys.to_pylist()], pa.string())
    return places(domain.keys, topics)


def levels_by_topic(domain: DomainState) -> tuple[Ints, Ints]:
    """Levels of topics that are published to, and the position of each one's topic among the publish limiters, by
    which they are sorted.
    """
    state = domain.dispatch
    levels = np.flatnonzero(~state.are_groups)
    topic = _topics_published(domain, state.keys.take(pa.array(levels)))
    known = np.flatnonzero(topic >= 0)
    known = known[np.argsort(topic[known], kind="stable")]
    return levels[known], topic[known]
