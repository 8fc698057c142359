"""How far event time has come in each domain, and how it goes on where nothing comes that would move it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pyarrow as pa

from headgate.conf import LiveSettings
from headgate.keyed.live import certain_us, lag_us
from headgate.throttle.limits.control import FROM_THE_START, tick_row


@dataclass
class Clocks:
    """How far each domain is: by key and broker the highest event time, waiting producers, and whether it is open.

    own: the broker that the job is for, None: all. delivering: those of its brokers that had traffic in the last batch
    with traffic of any broker.
    """

    own: str | None = None
    domains: dict[tuple[str, str], tuple[int, int, bool]] = field(default_factory=dict)
    delivering: frozenset[str] = frozenset()

    def take(self, progress: pa.Table) -> None:
        delivering = set()
        others_moved = False
        for row in progress.to_pylist():
            place = row["key"], row["broker"]
            if row["rows"]:
                delivering.add(row["broker"])
            if self.own not in {None, row["broker"]}:
                others_moved |= place not in self.domains or self.domains[place][0] != row["event_time_us"]
            self.domains[place] = (row["event_time_us"], row["producers"], row["is_open"])
        if delivering or others_moved:
            self.delivering = frozenset(delivering)

    @property
    def throttled_producers(self) -> int:
        """How many wait now, in all domains."""
        return sum(producers for _, producers, _ in self.domains.values())

    def due_ticks(
        self, live: LiveSettings, now_us: int, *, is_idle: bool, by_topic: bool = False, shares: bool = False
    ) -> list[dict[str, object]]:
        """Ticks for what is open and behind the time that has certainly come there.

        That is the highest event time of its broker, which traffic of other topics does not bring where topics are
        keys; and in live traffic also `keyed.live.certain_us`, for brokers that bring nothing. A broker that is ahead
        of the wall clock moves no other.

        shares: quotas are shared, and who says nothing would be taken for lost: so time goes on though nothing is open,
        the own broker's, also before its first row if those of others are live; else that of the one that is furthest.
        """
        brokers = self._brokers()
        if shares and self.own is not None:
            brokers.setdefault(self.own, (0, False))
        goals_us = {broker: high_us for broker, (high_us, _) in brokers.items()}
        most_us = now_us + lag_us(live)
        newest_us = max((high_us for high_us in goals_us.values() if high_us <= most_us), default=0)
        reached_us = certain_us(live, newest_us, now_us, is_idle=is_idle)
        if reached_us is not None:
            follow = goals_us.keys() if is_idle else goals_us.keys() - self.delivering
            goals_us |= {broker: max(goals_us[broker], reached_us) for broker in follow}
        if not by_topic:
            kept = self._kept(brokers, newest_us, is_idle=is_idle) if shares else ()
            return [
                tick_row(_moment(goals_us[broker]), broker=broker)
                for broker, (high_us, is_open) in brokers.items()
                if (is_open or broker in kept) and high_us < goals_us[broker]
            ]
        return [
            tick_row(_moment(goals_us[broker]), broker=broker, key=key)
            for (key, broker), (high_us, _, is_open) in list(self.domains.items())
            if is_open and high_us < goals_us[broker]
        ]

    def _kept(self, brokers: Mapping[str, tuple[int, bool]], newest_us: int, *, is_idle: bool) -> set[str]:
        """The brokers whose time goes on though nothing is open."""
        if self.own is not None:
            return {self.own}
        return {broker for broker, (high_us, _) in brokers.items() if is_idle and high_us == newest_us}

    def _brokers(self) -> dict[str, tuple[int, bool]]:
        """How far each broker is, and whether anything on it is open."""
        brokers: dict[str, tuple[int, bool]] = {}
        for (_, broker), (high_us, _, is_open) in list(self.domains.items()):
            before_us, was_open = brokers.get(broker, (high_us, False))
            brokers[broker] = (max(before_us, high_us), was_open or is_open)
        return brokers


def _moment(time_us: int) -> datetime:
    return FROM_THE_START + timedelta(microseconds=time_us)
