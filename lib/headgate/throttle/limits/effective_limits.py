"""What is in force in one domain: limits, and the groups that topics are charged to."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import astuple
from typing import Self, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.columns import places
from headgate.arrow.topic_names import PARTITION, namespaces_of, tenants_of, without_partitions
from headgate.core.kernels.columns import Ints
from headgate.core.topic_names import namespace_of, without_partition
from headgate.throttle.keys import BROKER_KEY, are_shared, group_key
from headgate.throttle.limits.changes import (
    ATTACHMENT,
    DISPATCH_LIMIT,
    NO_CONDITIONS,
    OF_DISPATCH,
    OFF,
    SCOPES,
    SUBSCRIBE_LIMIT,
    UNLIMITED,
    Attachment,
    Change,
    ConnectionLimit,
    DispatchLimit,
    DispatchRates,
    Limit,
    Rates,
    ReplicatorLimit,
    SubscribeLimit,
    SubscriptionLimit,
    UnloadLimit,
    limit_of_group,
)

Said = TypeVar("Said")
UNLOAD_DEFAULT: Rates = (0, 60_000)
"""Starts of unloads a second, and their time-out in ms, where nothing was said (rate-limiters 11)."""


class EffectiveLimits:
    """The limits in force: a topic's own policy, else its namespace's, else the default (rate-limiters 11).

    A topic's group is what is attached to itself, else to its namespace, else to its tenant (resource-groups 3).
    """

    def __init__(self) -> None:
        self.default: Rates = OFF
        self.broker: Rates = OFF
        self.namespaces: dict[str, Rates] = {}
        self.topics: dict[str, Rates] = {}
        self.groups: dict[str, Rates] = {}
        self.dispatch_groups: dict[str, Rates] = {}
        self.dispatch: dict[str, dict[str, dict[str, DispatchRates]]] = {
            kind: {scope: {} for scope in SCOPES[kind] if scope != "group"} for kind in OF_DISPATCH
        }
        self.subscribe: dict[str, dict[str, Rates]] = {scope: {} for scope in SCOPES[SUBSCRIBE_LIMIT]}
        self.unload: Rates = UNLOAD_DEFAULT
        self.condition_limits = NO_CONDITIONS
        self.attached: dict[str, dict[str, str]] = {scope: {} for scope in SCOPES[ATTACHMENT]}

    def apply(self, change: Change) -> None:
        match change:
            case Attachment():
                _put(self.attached[change.scope], change.name, change.says)
            case ConnectionLimit():
                self.condition_limits = change.says or NO_CONDITIONS
            case SubscribeLimit():
                _put(self.subscribe[change.scope], change.name, change.says)
            case UnloadLimit():
                self.unload = change.says or UNLOAD_DEFAULT
            case DispatchLimit(scope="group"):
                _put(self.dispatch_groups, change.name, change.rates)
            case DispatchLimit():
                _put(self.dispatch[change.kind][change.scope], change.name, change.dispatch_rates)
            case Limit(scope="default"):
                self.default = change.rates or OFF
            case Limit(scope="broker"):
                self.broker = change.rates or OFF
            case Limit():
                policies = {"namespace": self.namespaces, "topic": self.topics, "group": self.groups}
                _put(policies[change.scope], change.name, change.rates)

    @property
    def has_attachments(self) -> bool:
        return any(self.attached.values())

    def rates_of(self, key: str) -> Rates:
        """Rates of the limiter with `key`: a topic's name, a group's key or the broker's."""
        if key == BROKER_KEY:
            return self.broker
        if key.startswith(group_key("")):
            return self.groups.get(key.removeprefix(group_key("")), OFF)
        if self.topics and (topic := without_partition(key)) in self.topics:
            return self.topics[topic]
        return self.namespaces.get(namespace_of(key), self.default) if self.namespaces else self.default

    def subscribe_rate_of(self, topic: str) -> Rates:
        """Subscribes a period that a consumer of the topic has, and the period's seconds; OFF: any."""
        of_namespace = self.subscribe["namespace"].get(namespace_of(topic), self.subscribe["default"].get("", OFF))
        by_topic = self.subscribe["topic"]
        return by_topic.get(without_partition(topic), of_namespace) if by_topic else of_namespace

    def dispatch_rates_of(self, group: str) -> Rates:
        """Rates of the dispatch level of a group."""
        return self.dispatch_groups.get(group, OFF)

    @property
    def broker_dispatch_rates(self) -> DispatchRates:
        """Rates of the dispatch level of the broker, which follows no topic's publish rate."""
        return self.dispatch[DISPATCH_LIMIT]["broker"].get("", UNLIMITED)._replace(relative=0)

    def dispatch_rates(self, kind: str, topics: pa.StringArray) -> Ints:
        """What a kind of dispatch limit says of each topic: its own policy, else its namespace's, else the default.

        A row of DispatchRates each.
        """
        by_scope = self.dispatch[kind]
        default = by_scope["default"].get("", UNLIMITED)
        if len(topics) < len(by_scope["topic"]):
            return self._few_dispatch_rates(kind, topics.to_pylist())
        if not by_scope["namespace"] and not by_scope["topic"]:
            return np.tile(np.array(default, np.int64), (len(topics), 1))
        namespaces = namespaces_of(topics).dictionary_encode()
        said = [by_scope["namespace"].get(name, default) for name in namespaces.dictionary.to_pylist()]
        rates: Ints = np.array([*said, default], np.int64)[namespaces.indices.fill_null(len(said)).to_numpy()]
        if by_topic := by_scope["topic"]:
            own = places(pa.array(list(by_topic), pa.string()), without_partitions(topics))
            rates[own >= 0] = np.array(list(by_topic.values()), np.int64)[own[own >= 0]]
        return rates

    def _few_dispatch_rates(self, kind: str, topics: Sequence[str]) -> Ints:
        """The same, topic by topic: where policies are more than topics."""
        by_scope = self.dispatch[kind]
        default, by_namespace, by_topic = (
            by_scope["default"].get("", UNLIMITED),
            by_scope["namespace"],
            by_scope["topic"],
        )
        rates = [
            by_topic.get(without_partition(topic)) or by_namespace.get(namespace_of(topic), default) for topic in topics
        ]
        return np.array(rates, np.int64).reshape(-1, len(UNLIMITED))

    def has_dispatch_rates(self, kind: str) -> bool:
        """Whether a kind of dispatch limit limits any topic."""
        return any(max(rates[:2]) > 0 for held in self.dispatch[kind].values() for rates in held.values())

    def groups_of(self, topics: pa.StringArray) -> pa.StringArray:
        """The key of the group limiter that each topic is charged to, null without one."""
        if not self.has_attachments:
            return pa.nulls(len(topics), pa.string())
        by_namespace, by_tenant = self.attached["namespace"], self.attached["tenant"]
        namespaces = namespaces_of(topics).dictionary_encode()
        of_namespace = [
            by_namespace.get(name, by_tenant.get(name.partition("/")[0])) for name in namespaces.dictionary.to_pylist()
        ]
        groups = pa.array(of_namespace, pa.string()).take(namespaces.indices)
        if by_topic := self.attached["topic"]:
            own = pc.index_in(without_partitions(topics), value_set=pa.array(list(by_topic), pa.string()))
            groups = pc.coalesce(pa.array(list(by_topic.values()), pa.string()).take(own), groups)
        return pc.binary_join_element_wise(group_key(""), groups, "")

    def limiters_under(self, change: Change, keys: pa.StringArray) -> list[int]:
        """Positions in `keys` of the limiters whose rates `change` can move."""
        if change.scope == "broker":
            matches = pc.equal(keys, BROKER_KEY)
        elif change.scope == "group":
            matches = pc.equal(keys, group_key(change.name))
        elif change.scope == "topic":
            matches = pc.match_substring_regex(keys, f"^{re.escape(change.name)}{PARTITION}")
        elif change.scope == "namespace":
            matches = pc.match_substring_regex(keys, f"^(non-)?persistent://{re.escape(change.name)}/")
        else:
            matches = pc.match_substring(keys, "://")
        positions: list[int] = pc.indices_nonzero(matches).to_pylist()
        return positions

    def changes(self) -> list[Change]:
        """As changes that build it again."""
        scopes: Iterable[tuple[str, dict[str, Rates]]] = (
            ("default", {"": self.default}),
            ("broker", {"": self.broker}),
            ("namespace", self.namespaces),
            ("topic", self.topics),
        )
        limits: list[Change] = [
            Limit(0, 0, None, scope, name, *rates) for scope, held in scopes for name, rates in held.items()
        ]
        limits += [limit_of_group(name, rates) for name, rates in self.groups.items()]
        limits += [limit_of_group(name, rates, DispatchLimit) for name, rates in self.dispatch_groups.items()]
        attachments = [
            Attachment(0, 0, None, scope, name, group)
            for scope, held in self.attached.items()
            for name, group in held.items()
        ]
        subscribes = [
            SubscribeLimit(0, 0, None, scope, name, rate, period_s)
            for scope, held in self.subscribe.items()
            for name, (rate, period_s) in held.items()
        ]
        dispatches = [
            of_kind(0, 0, None, scope, name, rates.messages, rates.bytes, rates.period_s, bool(rates.relative))
            for of_kind in (DispatchLimit, SubscriptionLimit, ReplicatorLimit)
            for scope, held in self.dispatch[of_kind.kind].items()
            for name, rates in held.items()
        ]
        return limits + subscribes + dispatches + self._changes_of_broker() + attachments

    def _changes_of_broker(self) -> list[Change]:
        conditions = tuple(int(value or 0) for value in astuple(self.condition_limits))
        unload = UnloadLimit(0, 0, None, "broker", "", *self.unload)
        connection = ConnectionLimit(0, 0, None, "broker", "", conditions)
        return [unload] * (self.unload != UNLOAD_DEFAULT) + [connection] * (self.condition_limits != NO_CONDITIONS)

    @classmethod
    def from_changes(cls, changes: Iterable[Change]) -> Self:
        in_force = cls()
        for change in changes:
            in_force.apply(change)
        return in_force


def _put(policies: dict[str, Said], name: str, said: Said | None) -> None:
    if said is None:
        policies.pop(name, None)
    else:
        policies[name] = said


def topics_under(attachments: Sequence[Change], keys: pa.StringArray) -> pa.Array:
    """Positions in `keys` of the topics whose group the changes can move."""
    names = {
        scope: pa.array([change.name for change in attachments if change.scope == scope], pa.string())
        for scope in SCOPES[ATTACHMENT]
    }
    matches = pc.is_in(namespaces_of(keys), value_set=names["namespace"])
    if len(names["tenant"]):
        matches = pc.or_(matches, pc.is_in(tenants_of(keys), value_set=names["tenant"]))
    if len(names["topic"]):
        matches = pc.or_(matches, pc.is_in(without_partitions(keys), value_set=names["topic"]))
    return pc.indices_nonzero(pc.and_(matches, pc.invert(are_shared(keys))))
