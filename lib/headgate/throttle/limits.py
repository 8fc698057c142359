"""The book of what is in force in one domain: limits, and the groups that topics are charged to."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import astuple
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc

from headgate.throttle.changes import (
    ATTACHMENT,
    CONNECTION_LIMIT,
    DISPATCH_LIMIT,
    NO_CONDITIONS,
    OFF,
    SCOPES,
    SUBSCRIBE_LIMIT,
    Change,
    Rates,
    limit_of_group,
)
from headgate.throttle.keys import BROKER_KEY, are_shared, group_key
from headgate.throttle.names import (
    PARTITION,
    namespace_of,
    namespaces_of,
    tenants_of,
    without_partition,
    without_partitions,
)


class Book:
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
        self.subscribe: dict[str, dict[str, Rates]] = {scope: {} for scope in SCOPES[SUBSCRIBE_LIMIT]}
        self.condition_limits = NO_CONDITIONS
        self.attached: dict[str, dict[str, str]] = {scope: {} for scope in SCOPES[ATTACHMENT]}

    def apply(self, change: Change) -> None:
        rates = change.rates
        if change.kind == ATTACHMENT:
            self._attach(change)
        elif change.kind == CONNECTION_LIMIT:
            self.condition_limits = change.condition_limits or NO_CONDITIONS
        elif change.kind == SUBSCRIBE_LIMIT:
            self._put(self.subscribe[change.scope], change.name, change.subscribe_rate)
        elif change.scope == "default":
            self.default = rates or OFF
        elif change.scope == "broker":
            self.broker = rates or OFF
        else:
            self._put(self._policies(change), change.name, rates)

    @staticmethod
    def _put(policies: dict[str, Rates], name: str, rates: Rates | None) -> None:
        if rates is None:
            policies.pop(name, None)
        else:
            policies[name] = rates

    def _policies(self, change: Change) -> dict[str, Rates]:
        if change.kind == DISPATCH_LIMIT:
            return self.dispatch_groups
        return {"namespace": self.namespaces, "topic": self.topics, "group": self.groups}[change.scope]

    def _attach(self, change: Change) -> None:
        if change.group_name is None:
            self.attached[change.scope].pop(change.name, None)
        else:
            self.attached[change.scope][change.name] = change.group_name

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

    def dispatch_rates_of(self, key: str) -> Rates:
        """Rates of the dispatch level of the group with `key`."""
        return self.dispatch_groups.get(key.removeprefix(group_key("")), OFF)

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
        """The book as changes that build it again."""
        scopes: Iterable[tuple[str, dict[str, Rates]]] = (
            ("default", {"": self.default}),
            ("broker", {"": self.broker}),
            ("namespace", self.namespaces),
            ("topic", self.topics),
        )
        limits = [Change(0, 0, None, scope, name, *rates) for scope, held in scopes for name, rates in held.items()]
        limits += [limit_of_group(name, rates) for name, rates in self.groups.items()]
        limits += [limit_of_group(name, rates, DISPATCH_LIMIT) for name, rates in self.dispatch_groups.items()]
        attachments = [
            Change(0, 0, None, scope, name, kind=ATTACHMENT, group_name=group)
            for scope, held in self.attached.items()
            for name, group in held.items()
        ]
        subscribes = [
            Change(0, 0, None, scope, name, kind=SUBSCRIBE_LIMIT, subscribes_per_period=rate, period_s=period_s)
            for scope, held in self.subscribe.items()
            for name, (rate, period_s) in held.items()
        ]
        conditions = tuple(int(value or 0) for value in astuple(self.condition_limits))
        connections = [Change(0, 0, None, "broker", "", kind=CONNECTION_LIMIT, conditions=conditions)]
        return limits + subscribes + attachments + connections * (self.condition_limits != NO_CONDITIONS)

    @classmethod
    def from_changes(cls, changes: Iterable[Change]) -> Self:
        book = cls()
        for change in changes:
            book.apply(change)
        return book


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
