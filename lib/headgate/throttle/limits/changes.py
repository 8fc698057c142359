"""Changes with the time from which they hold: limits, and what is attached to which resource group."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from headgate.arrow.schemas import table_of
from headgate.core.connections.connection_limits import ConditionLimits
from headgate.core.kernels.columns import NO_VALUE
from headgate.core.publish.group_limiter import BLOCKED
from headgate.core.topic_names import namespace_of, tenant_of
from headgate.throttle.keys import is_broker_key

LIMIT, ATTACHMENT, DISPATCH_LIMIT, SUBSCRIBE_LIMIT = "limit", "attachment", "dispatch_limit", "subscribe_limit"
SUBSCRIPTION_LIMIT, REPLICATOR_LIMIT = "subscription_dispatch_limit", "replicator_dispatch_limit"
OF_DISPATCH = (DISPATCH_LIMIT, SUBSCRIPTION_LIMIT, REPLICATOR_LIMIT)
"""Limits of dispatches: of topics, brokers and groups; of each subscription; of each replicator."""
UNLOAD_LIMIT, CONNECTION_LIMIT = "unload_limit", "connection_limit"
SCOPES = {
    LIMIT: ("default", "namespace", "topic", "broker", "group"),
    ATTACHMENT: ("tenant", "namespace", "topic"),
    DISPATCH_LIMIT: ("default", "namespace", "topic", "broker", "group"),
    SUBSCRIPTION_LIMIT: ("default", "namespace", "topic"),
    REPLICATOR_LIMIT: ("default", "namespace", "topic"),
    SUBSCRIBE_LIMIT: ("default", "namespace", "topic"),
    UNLOAD_LIMIT: ("broker",),
    CONNECTION_LIMIT: ("broker",),
}
"""Scopes of the changes of each kind."""
OF_BROKERS = (UNLOAD_LIMIT, CONNECTION_LIMIT)
"""Kinds of what a broker has apart from its topics: where topics are keys, its own key has it (keys.broker_key)."""
Rates = tuple[int, int]
OFF: Rates = (0, 0)


class DispatchRates(NamedTuple):
    """Messages and bytes in period_s, 0: off; relative: the topic's publish rate is added to what is not off."""

    messages: int
    bytes: int
    period_s: int = 1
    relative: int = 0


UNLIMITED = DispatchRates(0, 0)
_LAST_SEQ = 2**63 - 1
NO_CONDITIONS = ConditionLimits(max_pending_publish_requests=0)
"""Limits of connections that hold nothing."""


Says = Rates | DispatchRates | ConditionLimits | str
"""What a change says about its place, as limiters take it."""


@dataclass(frozen=True, slots=True)
class Change:
    """From `effective_us` on, what it says holds for `name` of `scope`; each kind is a class with what it says.

    name is empty for the scopes `default` and `broker`. broker: the one it holds on, None for all. Changes of a kind
    apply in the order (effective_us, seq); at one instant limits come first, then attachments, then limits of groups
    that end, then traffic. So publishes that wait for a group to which nothing is attached any more move to another
    group before the limit of the old one ends.
    """

    kind: ClassVar[str]

    effective_us: int
    seq: int
    broker: str | None
    scope: str
    name: str

    @property
    def says(self) -> Says | None:
        """What it says about its place; None takes back what was said."""
        raise NotImplementedError

    @property
    def ends_group(self) -> bool:
        """Whether a group is not limited from then on."""
        return False

    @property
    def follows_publishes(self) -> bool:
        """Whether it says a dispatch rate that is relative to the publish rate."""
        return False

    @property
    def place(self) -> tuple[str, str, str]:
        """What it sets: of changes with the same place the last holds."""
        return self.kind, self.scope, self.name

    def holds_on(self, broker: str) -> bool:
        return self.broker in {None, broker}

    def concerns(self, key: str) -> bool:
        """Whether it can move a limiter that is kept under `key`, where keys are topics, without partitions.

        keys.broker_key has what a broker has apart from its topics.
        """
        if self.kind in OF_BROKERS or is_broker_key(key):
            return self.kind in OF_BROKERS and is_broker_key(key)
        if self.scope == "namespace":
            return self.name == namespace_of(key)
        if self.scope == "tenant":
            return self.name == tenant_of(key)
        return self.scope != "topic" or self.name == key


@dataclass(frozen=True, slots=True)
class Limit(Change):
    """Publishes: messages and bytes a second. 0 is off, of a group it blocks and null is off; None and None: the policy
    is gone, the next wider one holds.
    """

    kind = LIMIT

    messages_per_s: int | None = None
    bytes_per_s: int | None = None

    @property
    def rates(self) -> Rates | None:
        """What limiters take: 0 is off, BLOCKED blocks. None: the policy is gone."""
        if self.messages_per_s is None and self.bytes_per_s is None:
            return None
        if self.scope == "group":
            return _rate_of_group(self.messages_per_s), _rate_of_group(self.bytes_per_s)
        return max(self.messages_per_s or 0, 0), max(self.bytes_per_s or 0, 0)

    @property
    def says(self) -> Says | None:
        return self.rates

    @property
    def ends_group(self) -> bool:
        return self.scope == "group" and self.rates is None


@dataclass(frozen=True, slots=True)
class DispatchLimit(Limit):
    """Dispatches of topics, brokers and groups, as of publishes. But for groups, rates are in period_s (None: 1), and
    may be relative to the publish rate.
    """

    kind = DISPATCH_LIMIT

    period_s: int | None = None
    relative_to_publish_rate: bool | None = None

    @property
    def dispatch_rates(self) -> DispatchRates | None:
        """Of another scope than group: what a level takes. None: the policy is gone."""
        if self.rates is None:
            return None
        return DispatchRates(*self.rates, max(self.period_s or 1, 1), int(self.relative_to_publish_rate or False))

    @property
    def says(self) -> Says | None:
        return self.rates if self.scope == "group" else self.dispatch_rates

    @property
    def follows_publishes(self) -> bool:
        return self.scope != "group" and self.rates is not None and bool(self.relative_to_publish_rate)


@dataclass(frozen=True, slots=True)
class SubscriptionLimit(DispatchLimit):
    """Dispatches of each subscription."""

    kind = SUBSCRIPTION_LIMIT


@dataclass(frozen=True, slots=True)
class ReplicatorLimit(DispatchLimit):
    """Dispatches of each replicator."""

    kind = REPLICATOR_LIMIT


@dataclass(frozen=True, slots=True)
class SubscribeLimit(Change):
    """So many subscribes of a consumer in period_s; 0 is off, None and None: the policy is gone."""

    kind = SUBSCRIBE_LIMIT

    subscribes_per_period: int | None = None
    period_s: int | None = None

    @property
    def says(self) -> Rates | None:
        """Subscribes a period, and its seconds; OFF where one is 0. None: the policy is gone."""
        if self.subscribes_per_period is None or self.period_s is None:
            return None
        return (self.subscribes_per_period, self.period_s) if self.subscribes_per_period and self.period_s else OFF


@dataclass(frozen=True, slots=True)
class UnloadLimit(Change):
    """So many unloads of bundles start a second, 0 is off, each awaited up to timeout_ms; None: the default holds."""

    kind = UNLOAD_LIMIT

    starts_per_s: int | None = None
    timeout_ms: int | None = None

    @property
    def says(self) -> Rates | None:
        """Starts a second, 0 is off, and the time-out in ms. None: the default."""
        if self.starts_per_s is None or self.timeout_ms is None:
            return None
        return self.starts_per_s, self.timeout_ms


@dataclass(frozen=True, slots=True)
class ConnectionLimit(Change):
    """conditions: the fields of a ConditionLimits as whole numbers, 0 is off; None: the policy is gone."""

    kind = CONNECTION_LIMIT

    conditions: tuple[int, ...] | None = None

    @property
    def says(self) -> ConditionLimits | None:
        """Limits of connections. None: the policy is gone."""
        if self.conditions is None:
            return None
        requests, buffer_mib, io_threads, pauses, *cooldown = self.conditions
        return ConditionLimits(
            max_pending_publish_requests=requests,
            max_publish_buffer_mib=buffer_mib,
            io_threads=io_threads or None,
            pause_if_unwritable=bool(pauses),
            **dict(zip(("cooldown_ms", "cooldown_permits", "cooldown_period_ms"), cooldown, strict=True)),
        )


@dataclass(frozen=True, slots=True)
class Attachment(Change):
    """A tenant, namespace or topic is attached to a group; None: to none."""

    kind = ATTACHMENT

    group_name: str | None = None

    @property
    def says(self) -> str | None:
        return self.group_name


CLASSES: dict[str, type[Change]] = {
    one.kind: one
    for one in (
        *(Limit, DispatchLimit, SubscriptionLimit, ReplicatorLimit),
        *(SubscribeLimit, UnloadLimit, ConnectionLimit, Attachment),
    )
}
HEADER = [one.name for one in fields(Change)]
OWN = {kind: [one.name for one in fields(of_kind)[len(HEADER) :]] for kind, of_kind in CLASSES.items()}
"""What each kind says beside the header."""


CHANGES = pa.schema(
    [
        ("effective_us", pa.int64()),
        ("seq", pa.int64()),
        ("broker", pa.string()),
        ("scope", pa.string()),
        ("name", pa.string()),
        ("messages_per_s", pa.int64()),
        ("bytes_per_s", pa.int64()),
        ("kind", pa.string()),
        ("group_name", pa.string()),
        ("subscribes_per_period", pa.int64()),
        ("period_s", pa.int64()),
        ("relative_to_publish_rate", pa.bool_()),
        ("starts_per_s", pa.int64()),
        ("timeout_ms", pa.int64()),
        ("conditions", pa.list_(pa.int64())),
    ]
)


_OWN_COLUMNS = {kind: [CHANGES.names.index(name) for name in names] for kind, names in OWN.items()}


def limit_of_group(name: str, rates: Rates, of_kind: type[Limit] = Limit) -> Limit:
    """The change that says `rates`, as limiters take them, of a group; in force from the start of time."""
    messages_per_s, bytes_per_s = (None if rate == 0 else max(rate, 0) for rate in rates)
    return of_kind(0, 0, None, "group", name, messages_per_s, bytes_per_s)


def _rate_of_group(rate: int | None) -> int:
    return 0 if rate is None else rate if rate > 0 else BLOCKED


def changes_table(changes: Sequence[Change]) -> pa.Table:
    return table_of(list(map(_row, changes)), CHANGES)


def _row(change: Change) -> tuple[Any, ...]:
    """Of CHANGES."""
    return tuple(getattr(change, name, None) for name in CHANGES.names)


def changes_of(table: pa.Table) -> list[Change]:
    *plain, conditions = (table[name].to_pylist() for name in CHANGES.names)
    kept = (None if values is None else tuple(values) for values in conditions)
    kinds = plain[CHANGES.names.index("kind")]
    return [
        CLASSES[kind](*row[: len(HEADER)], *(row[place] for place in _OWN_COLUMNS[kind]))
        for kind, row in zip(kinds, zip(*plain, kept, strict=True), strict=True)
    ]


def in_order(changes: Iterable[Change]) -> list[Change]:
    """The changes as they apply: by (effective_us, seq), those equal in both by what they say."""
    return sorted(changes, key=lambda change: (change.effective_us, change.seq, repr(_row(change))))


def without_superseded(changes: Sequence[Change], horizon_us: int) -> list[Change]:
    """The changes without those that another one of the same broker and place replaces by `horizon_us`.

    From `horizon_us` on they say the same as all of them.
    """
    behind = in_order(change for change in changes if change.effective_us <= horizon_us)
    last = {(change.broker, change.place): change for change in behind}
    return [*last.values(), *(change for change in changes if change.effective_us > horizon_us)]


def reissued_late(held: pa.Table, new: Sequence[Change], reached_us: Mapping[str, int]) -> Iterator[Change]:
    """Changes for each broker of `reached_us`, with which the last of `new` that came late hold there by time, too.

    A late change holds on a broker from the time that the broker has reached. By its own time it may stand before one
    of `held` that says something else: then what it says is said again, at the time reached, for that broker alone.
    """
    latest_us = max(reached_us.values(), default=NO_VALUE)
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
            if change.says != last.says:
                yield replace(change, effective_us=at_us, seq=min(last.seq + 1, _LAST_SEQ), broker=broker)
