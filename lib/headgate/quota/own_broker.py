"""A broker that this loop measures, reports and evaluates: each in a job for all, the only one in a job of its own."""

from collections.abc import Iterable, Mapping
from typing import Any, Self

from headgate.core.quota.groups import FlagPair, IntPair, RatePair, UsageKey
from headgate.core.quota.usage.meter import UsageMeter
from headgate.core.quota.usage.usage_report import MeterParameters, UsageReport
from headgate.core.state import PlainData, check_fields
from headgate.quota.tables.usage_rows import Sender
from headgate.quota.topic_counts import TopicCounts

MeasuredReport = tuple[UsageReport, dict[UsageKey, int]]


class OwnBroker:
    """Counts belong to the broker, cuts to one of its lives. Without a life nothing is cut, and no count is lost.

    broker_id: None before its first life. sender: the present life, None before it has begun.
    incarnation: of the last life that began, -1 before the first.
    """

    def __init__(self, name: str, parameters: MeterParameters, created_ms: int) -> None:
        self.name = name
        self.broker_id: int | None = None
        self.incarnation = -1
        self.sender: Sender | None = None
        self.meter = UsageMeter(parameters, created_ms=created_ms)
        self._topics = TopicCounts(parameters.epoch_ms)
        self._keys: set[UsageKey] = set()

    def begin(self, sender: Sender) -> None:
        """A life begins, whose first cut has seq 1."""
        self.broker_id, self.incarnation, self.sender = sender.broker_id, sender.incarnation, sender

    def end(self) -> None:
        """The life is over: readers have dropped what it said, so the next one says everything again."""
        self.sender = None
        self.meter.restart()

    def knows(self, key: UsageKey) -> bool:
        """Whether it is counted already."""
        return key in self._keys

    def know(self, key: UsageKey, limit: RatePair) -> None:
        """Something of `key` is to be counted. limit: what has bound it all along, for its first row to say so."""
        if key not in self._keys:
            self._keys.add(key)
            self.meter.set_limit(key, 0, limit)

    def count(self, key: UsageKey, at_ms: int, admitted: IntPair, offered: IntPair, topics: int) -> None:
        """Counts of a slot."""
        self.meter.count(key, at_ms, admitted, offered)
        self._topics.add(key, max(at_ms, self.meter.next_epoch * self.meter.parameters.epoch_ms), topics)

    def hold_back(self, key: UsageKey, from_ms: int, until_ms: int, throttled: FlagPair) -> None:
        """Something was held back; arguments as of `UsageMeter.hold_back`."""
        self.meter.hold_back(key, from_ms, until_ms, throttled)

    def set_limit(self, key: UsageKey, at_ms: int, limit: RatePair) -> None:
        """The limit from `at_ms` on, of what is measured here."""
        if key in self._keys:
            self.meter.set_limit(key, at_ms, limit)

    def advance(self, now_ms: int, config_version: int) -> list[MeasuredReport]:
        """The cuts that became due, none without a life."""
        if self.sender is None:
            return []
        cuts = [(cut, self._topics.of(cut)) for cut in self.meter.advance(now_ms, config_version=config_version)]
        self._topics.forget(self.meter.next_epoch * self.meter.parameters.epoch_ms)
        return cuts

    def leave(self, keys: Iterable[UsageKey], config_version: int) -> list[MeasuredReport]:
        """These are no longer measured here."""
        keys = self._keys.intersection(keys)
        self._keys -= keys
        self._topics.drop(keys)
        return [(cut, {}) for cut in self.meter.leave(keys, config_version=config_version)]

    def leave_all(self, config_version: int) -> list[MeasuredReport]:
        """The broker shuts down."""
        return [(cut, {}) for cut in self.meter.leave_all(config_version=config_version)]

    def state(self) -> PlainData:
        """Everything but the life, which a restart ends, as plain data."""
        return {
            "name": self.name,
            "broker_id": self.broker_id,
            "incarnation": self.incarnation,
            "meter": self.meter.state(),
            "topics": self._topics.state(),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any], parameters: MeterParameters) -> Self:
        """The broker before its next life. Raises StateError for another version or epoch length."""
        check_fields(cls.__name__, state, ("name", "broker_id", "incarnation", "meter", "topics"))
        broker = cls(state["name"], parameters, 0)
        broker.broker_id, broker.incarnation = state["broker_id"], state["incarnation"]
        broker.meter = UsageMeter.from_state(state["meter"], parameters)
        broker._topics = TopicCounts.from_state(state["topics"], parameters.epoch_ms)
        broker._keys = set(broker.meter.measured_keys())
        broker.end()
        return broker
