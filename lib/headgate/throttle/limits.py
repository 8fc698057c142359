"""Limit changes in event time, and the book of limits in force in one domain."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Self

import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow import table_of
from headgate.core.kernels.domain_types import NONE
from headgate.throttle.keys import BROKER_KEY, group_key

Rates = tuple[int, int]
OFF: Rates = (0, 0)
SCOPES = ("default", "namespace", "topic", "broker", "group")
PARTITION = r"(-partition-\d+)?$"
_PARTITION = re.compile(r"-partition-[0-9]+\Z")
IN_NAMESPACE = r"(?s)^(?:non-)?persistent://([^/]+/[^/]+)/.+$"
_NAMESPACE = re.compile(IN_NAMESPACE)
_LAST_SEQ = 2**63 - 1


class LimitChange(NamedTuple):
    """From `effective_us` on, `name` of `scope` has these rates per second.

    0 is off; None and None: the policy is gone, the next wider one holds. scope: `default` (every topic), `namespace`,
    `topic`, `broker`, `group`; name is empty for `default` and `broker`. broker: the one it holds on, None for all.
    Changes apply in the order (effective_us, seq), before traffic of the same instant.
    """

    effective_us: int
    seq: int
    broker: str | None
    scope: str
    name: str
    messages_per_s: int | None
    bytes_per_s: int | None

    @property
    def rates(self) -> Rates | None:
        if self.messages_per_s is None and self.bytes_per_s is None:
            return None
        return max(self.messages_per_s or 0, 0), max(self.bytes_per_s or 0, 0)

    @property
    def place(self) -> tuple[str, str]:
        """What it sets: of changes with the same place the last holds."""
        return self.scope, self.name

    def holds_on(self, broker: str) -> bool:
        return self.broker in {None, broker}

    def concerns(self, topic: str) -> bool:
        """Whether it can move a limiter that `topic`, a name without a partition, is charged to."""
        if self.scope == "namespace":
            return self.name == namespace_of(topic)
        return self.scope != "topic" or self.name == topic


CHANGES = pa.schema(
    [
        ("effective_us", pa.int64()),
        ("seq", pa.int64()),
        ("broker", pa.string()),
        ("scope", pa.string()),
        ("name", pa.string()),
        ("messages_per_s", pa.int64()),
        ("bytes_per_s", pa.int64()),
    ]
)


def changes_table(changes: Sequence[LimitChange]) -> pa.Table:
    return table_of(changes, CHANGES)


def changes_of(table: pa.Table) -> list[LimitChange]:
    return [LimitChange(*row) for row in zip(*(table[name].to_pylist() for name in CHANGES.names), strict=True)]


def in_order(changes: Iterable[LimitChange]) -> list[LimitChange]:
    """The changes as they apply: by (effective_us, seq), those equal in both by what they say."""
    return sorted(changes, key=lambda change: (*change[:2], repr(change)))


def without_superseded(changes: Sequence[LimitChange], horizon_us: int) -> list[LimitChange]:
    """The changes without those that another one of the same broker, scope and name replaces by `horizon_us`.

    From `horizon_us` on they make the same limits as all of them.
    """
    behind = in_order(change for change in changes if change.effective_us <= horizon_us)
    last = {(change.broker, change.place): change for change in behind}
    return [*last.values(), *(change for change in changes if change.effective_us > horizon_us)]


def said_again(held: pa.Table, new: Sequence[LimitChange], reached_us: Mapping[str, int]) -> Iterator[LimitChange]:
    """Changes for each broker of `reached_us`, with which the last of `new` that came late hold there by time, too.

    A late change holds on a broker from the time that the broker has reached. By its own time it may stand before one
    of `held` that says something else: then what it says is said again, at the time reached, for that broker alone.
    """
    latest_us = max(reached_us.values(), default=NONE)
    late = in_order(change for change in new if change.effective_us <= latest_us)
    if not late:
        return
    is_named = pc.is_in(held["name"], value_set=pa.array({change.name for change in late}, pa.string()))
    is_after = pc.greater_equal(held["effective_us"], late[0].effective_us)
    earlier = changes_of(held.filter(pc.and_(is_named, is_after)))
    if not earlier:
        return
    by_time = in_order([*earlier, *late])
    for broker, at_us in reached_us.items():
        last_to_come, last_by_time = (
            {change.place: change for change in some if change.holds_on(broker) and change.effective_us <= at_us}
            for some in (late, by_time)
        )
        for place, change in last_to_come.items():
            last = last_by_time[place]
            if change.rates != last.rates:
                yield change._replace(effective_us=at_us, seq=min(last.seq + 1, _LAST_SEQ), broker=broker)


class Book:
    """The limits in force: a topic's own policy, else its namespace's, else the default (rate-limiters 11)."""

    def __init__(self) -> None:
        self.default: Rates = OFF
        self.broker: Rates = OFF
        self.namespaces: dict[str, Rates] = {}
        self.topics: dict[str, Rates] = {}
        self.groups: dict[str, Rates] = {}

    def apply(self, change: LimitChange) -> None:
        rates = change.rates
        if change.scope == "default":
            self.default = rates or OFF
        elif change.scope == "broker":
            self.broker = rates or OFF
        else:
            policies = {"namespace": self.namespaces, "topic": self.topics, "group": self.groups}[change.scope]
            if rates is None:
                policies.pop(change.name, None)
            else:
                policies[change.name] = rates

    def rates_of(self, key: str) -> Rates:
        """Rates of the limiter with `key`: a topic's name, a group's key or the broker's."""
        if key == BROKER_KEY:
            return self.broker
        if key.startswith(group_key("")):
            return self.groups.get(key.removeprefix(group_key("")), OFF)
        if self.topics and (topic := without_partition(key)) in self.topics:
            return self.topics[topic]
        return self.namespaces.get(namespace_of(key), self.default) if self.namespaces else self.default

    def limiters_under(self, change: LimitChange, keys: pa.StringArray) -> list[int]:
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

    def changes(self) -> list[LimitChange]:
        """The book as changes that build it again."""
        scopes: Iterable[tuple[str, dict[str, Rates]]] = (
            ("default", {"": self.default}),
            ("broker", {"": self.broker}),
            ("namespace", self.namespaces),
            ("topic", self.topics),
            ("group", self.groups),
        )
        return [LimitChange(0, 0, None, scope, name, *rates) for scope, held in scopes for name, rates in held.items()]

    @classmethod
    def from_changes(cls, changes: Iterable[LimitChange]) -> Self:
        book = cls()
        for change in changes:
            book.apply(change)
        return book


def namespace_of(topic: str) -> str:
    match = _NAMESPACE.match(topic)
    return match.group(1) if match else ""


def without_partition(topic: str) -> str:
    """The topic that a partition belongs to: its policies hold for each partition."""
    return _PARTITION.sub("", topic)
