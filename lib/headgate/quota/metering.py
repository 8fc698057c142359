"""Usage of this loop's brokers: rows of batches in, cuts for the outbox out (resource-groups 6)."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from headgate.arrow.schemas import GROUP_USAGE, GROUP_WAITS
from headgate.core.quota.groups import UNLIMITED, FlagPair, RatePair, TrafficClass, UsageKey
from headgate.core.quota.usage.usage_report import MeterParameters
from headgate.quota.control_rows import GroupLimit, LimitKey
from headgate.quota.outbox import Outbox
from headgate.quota.own_broker import MeasuredReport, OwnBroker

Row = tuple[Any, ...]


class Metering:
    """Every count of a group in use reaches a cut of its broker, as soon as the broker has a life.

    limits: what the job enforces now, by names of broker and group and class.
    """

    def __init__(self, parameters: MeterParameters, outbox: Outbox, limits: Mapping[LimitKey, RatePair]) -> None:
        self._parameters = parameters
        self._outbox = outbox
        self._limits = limits
        self.brokers: dict[str, OwnBroker] = {}
        self.reports: Counter[str] = Counter()

    def know(self, names: Iterable[str], usage: pa.Table, clock_ms: int) -> None:
        """Begin to measure these brokers, from their first counts on, or from now."""
        new = [name for name in sorted(names) if name not in self.brokers]
        if not new:
            return
        firsts = usage.group_by("broker").aggregate([("at_ms", "min")]).to_pydict() if len(usage) else {}
        first_ms = dict(zip(firsts.get("broker", ()), firsts.get("at_ms_min", ()), strict=True))
        for name in new:
            created_ms = max(0, min(clock_ms, first_ms.get(name, clock_ms)))
            self.brokers[name] = OwnBroker(name, self._parameters, created_ms)

    def count(self, usage: pa.Table, waits: pa.Table, ids: Mapping[str, int]) -> None:
        """Count rows of GROUP_USAGE and GROUP_WAITS. ids: of groups in use, by name; rows of others are passed over."""
        for broker, key, row in self._rows(usage.select(GROUP_USAGE.names), ids):
            at_ms, admitted, admitted_bytes, offered, offered_bytes, topics = row
            broker.count(key, at_ms, (admitted, admitted_bytes), (offered, offered_bytes), topics)
        for broker, key, row in self._rows(waits.select(GROUP_WAITS.names), ids):
            from_ms, until_ms, *flags = row
            throttled: FlagPair = (flags[0], flags[1])
            broker.hold_back(key, from_ms, until_ms, throttled)

    def cut(self, clock_ms: int, config_version: int) -> None:
        """Move time on; cuts that became due are in the outbox then."""
        for broker in self.brokers.values():
            self._put(broker, broker.advance(clock_ms, config_version))

    def leave(self, group_ids: Collection[int], config_version: int) -> None:
        """These groups are not in use any more."""
        keys = {(group_id, int(traffic_class)) for group_id in group_ids for traffic_class in TrafficClass}
        for broker in self.brokers.values():
            self._put(broker, broker.leave(keys, config_version))

    def leave_without_topics(self, leaves: pa.Table, ids: Mapping[str, int], config_version: int) -> None:
        """Brokers whose topics are no longer the group's (GROUP_LEAVES) say so. ids: of groups in use, by name."""
        for name, group, traffic_class in zip(*(column.to_pylist() for column in leaves.columns), strict=True):
            broker = self.brokers.get(name)
            if broker is not None and group in ids:
                self._put(broker, broker.leave([(ids[group], traffic_class)], config_version))

    def leave_all(self, config_version: int) -> None:
        """All brokers shut down."""
        for broker in self.brokers.values():
            self._put(broker, broker.leave_all(config_version))

    def set_limits(self, limits: Iterable[GroupLimit], ids: Mapping[str, int]) -> None:
        """What brokers enforce from here on, and report."""
        for row in limits:
            broker = self.brokers.get(row.broker)
            if broker is not None and row.group in ids:
                key = (ids[row.group], row.traffic_class)
                broker.set_limit(key, row.effective_ms, (row.messages_per_s, row.bytes_per_s))

    def suppressed(self) -> int:
        """How many rows were not sent, since they said nothing new."""
        return sum(broker.meter.suppressed for broker in self.brokers.values())

    def _rows(self, table: pa.Table, ids: Mapping[str, int]) -> Iterator[tuple[OwnBroker, UsageKey, Row]]:
        for name, group, traffic_class, *values in zip(*(column.to_pylist() for column in table.columns), strict=True):
            broker = self.brokers.get(name)
            if broker is not None and group in ids:
                key = (ids[group], traffic_class)
                if not broker.knows(key):
                    broker.know(key, self._limits.get((name, group, traffic_class), UNLIMITED))
                yield broker, key, tuple(values)

    def _put(self, broker: OwnBroker, cuts: list[MeasuredReport]) -> None:
        if broker.sender is not None and cuts:
            self._outbox.put(broker.sender, cuts)
            self.reports.update(str(row.reason) for cut, _ in cuts for row in cut.rows)
