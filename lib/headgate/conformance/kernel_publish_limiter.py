"""Kind publish_limiter on the array form: buckets, queues and drains are the kernels'; names, producers and connections
are kept as the readable set keeps them.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from headgate.conformance.adapters.publishing import build_limiters, limiters_operations
from headgate.conformance.oracles.publish_limiters import PublishLimiters
from headgate.conformance.timed import TimedAdapter
from headgate.core.kernels.columns import NO_VALUE, Ints, Records
from headgate.core.kernels.links import chain, positions
from headgate.core.kernels.publish.publish_domain import drain, plan_all, run_due, set_limit
from headgate.core.kernels.publish.publish_limiter import bucket_pause_ns, charge_limiter, debt_floors, fill, settle
from headgate.core.kernels.publish.queues import enqueue
from headgate.core.kernels.publish.types import (
    ADMISSION,
    CLOSED_COLUMNS,
    CLOSED_ROWS,
    DUE,
    DUES,
    ENTRIES,
    ENTRY,
    LIMITER,
    MARK,
    MARK_ROWS,
    MARKED,
    POOLS,
    QUEUE,
    WAIT,
    WITHHELD,
    DomainArrays,
)
from headgate.core.kernels.token_bucket import BUCKET, draw
from headgate.core.names import known
from headgate.core.numbers import int64
from headgate.core.publish.publish_limiter import OnRateChange, check_amounts
from headgate.core.publish.throttle_tracker import SCOPE_TYPES
from headgate.core.usage import USAGE_COLUMNS

ROOM = 512
"""Queue entries that a fresh layout has room for besides those that wait."""


def build_array_form(config: Mapping[str, Any]) -> TimedAdapter:
    """The operations of a fresh set of limiters in arrays."""
    limiters = ArrayLimiters.from_state(build_limiters(config).state())
    limiters.lay_out()
    return limiters_operations(limiters)


class ArrayLimiters(PublishLimiters):
    """A set whose limiters are rows of arrays: what charges, queues or drains calls a kernel.

    Of the readable limiters only names and parameters are used, in the order of registration; their buckets never move.
    """

    _domain: DomainArrays
    _names: list[str]
    _producer_names: list[str]

    def lay_out(self) -> None:
        """Arrays for the registered limiters: full buckets, empty queues."""
        self._names = list(self._limiters)
        self._producer_names = list(self._producers)
        count = len(self._names)
        buckets, limiters = np.zeros((count, 2), BUCKET), np.zeros(count, LIMITER)
        buckets["rate"] = np.array([limiter.rates for limiter in self._limiters.values()], np.int64).reshape(-1, 2)
        buckets["floor"] = debt_floors(buckets["rate"].copy(), self._bound_ms)
        settle(buckets)
        for bucket in buckets.reshape(-1):
            fill(bucket, self.high_ns)
        limiters["next_drain_ns"] = limiters["second"] = limiters["head"] = NO_VALUE
        limiters["initialised"] = 1
        limiters["keeps_debt"] = [limiter.on_rate_change is OnRateChange.REPRICE for limiter in self._limiters.values()]
        waits = np.zeros(len(self._producer_names), np.int64)
        self._domain = self._with_room(buckets, limiters, np.empty(0, ENTRY), waits)

    def publish(self, producer: str, messages: int, bytes_: int, now_ns: int) -> list[str]:
        """As PublishLimiters.publish."""
        at_ns = self._enter(now_ns)
        publisher = self._producer(producer)
        check_amounts(messages, bytes_)
        throttling = []
        for name in sorted(publisher.limiters, key=self._charge_order):
            i = self._names.index(name)
            domain = self._domain
            causes = charge_limiter(domain.limiters[i], domain.buckets, i, messages, bytes_, at_ns)
            if causes:
                enqueue(domain, i, self._producer_names.index(producer), 0, 0, causes, at_ns)
                self._limiters[name].throttled_publishes += 1
                throttling.append(name)
        self._take_marks()
        return throttling

    def update(self, limiter: str, messages_per_s: int, bytes_per_s: int, now_ns: int) -> None:
        """As PublishLimiters.update."""
        at_ns, i = self._enter(now_ns), self._position(limiter)
        rates = [max(int64(messages_per_s, "messages_per_s"), 0), max(int64(bytes_per_s, "bytes_per_s"), 0)]
        floors = debt_floors(np.array([rates], np.int64).T, self._bound_ms)
        set_limit(self._domain, i, rates[0], rates[1], floors[:, 0], at_ns)
        self._take_marks()

    def drain(self, limiter: str, now_ns: int) -> list[str]:
        """As PublishLimiters.drain."""
        at_ns, i = self._enter(now_ns), self._position(limiter)
        drain(self._domain, i, at_ns)
        return self._take_marks()

    def balance(self, limiter: str, now_ns: int) -> tuple[int | None, int | None]:
        """As PublishLimiters.balance."""
        at_ns, i = self._enter(now_ns), self._position(limiter)
        messages, bytes_ = (draw(bucket, 0, at_ns) if bucket["rate"] else None for bucket in self._domain.buckets[i])
        return messages, bytes_

    def pause_ns(self, limiter: str, now_ns: int) -> int:
        """As PublishLimiters.pause_ns."""
        at_ns, i = self._enter(now_ns), self._position(limiter)
        limited = [bucket for bucket in self._domain.buckets[i] if bucket["rate"]]
        return max((int(bucket_pause_ns(bucket, at_ns)) for bucket in limited), default=0)

    def next_drain_ns(self, limiter: str, now_ns: int) -> int | None:
        """As PublishLimiters.next_drain_ns."""
        self._enter(now_ns)
        due_ns = int(self._domain.limiters["next_drain_ns"][self._position(limiter)])
        return None if due_ns == NO_VALUE else due_ns

    def queue(self, limiter: str, now_ns: int) -> list[str]:
        """As PublishLimiters.queue."""
        self._enter(now_ns)
        items, owners = positions(self._domain.entries, self._domain.limiters)
        waiting = self._domain.entries["producer"][items[owners == self._position(limiter)]]
        return [self._producer_names[producer] for producer in waiting]

    def _enter(self, now_ns: int) -> int:
        at_ns = super()._enter(now_ns)
        if self.auto_drain:
            run_due(self._domain, at_ns)
        self._take_marks()
        domain, count = self._domain, len(self._names)
        if max(domain.used[ENTRIES], domain.used[DUES]) + 2 * count > len(domain.entries):
            self._domain = self._with_room(domain.buckets, domain.limiters, domain.entries, domain.waits)
        return at_ns

    def _position(self, limiter: str) -> int:
        known(self._limiters, limiter, "limiter")
        return self._names.index(limiter)

    @property
    def _bound_ms(self) -> int:
        return -1 if self.max_debt_ms is None else self.max_debt_ms

    def _take_marks(self) -> list[str]:
        """Move the trackers by the kernel's marks, log its releases, and return who was released."""
        domain, released = self._domain, []
        names = ["at_ns", "limiter", "producer", "action"]
        for at_ns, i, producer, action in domain.marks[: domain.used[MARK_ROWS]][names].tolist():
            limiter, name = self._names[i], self._producer_names[producer]
            connection, kind = self._producers[name].connection, SCOPE_TYPES[self._limiters[limiter].scope]
            if action == MARK:
                self._mark(connection, kind)
            else:
                self._trackers[connection].unmark(kind)
                self._releases.append([at_ns, limiter, name])
                released.append(name)
        domain.used[MARK_ROWS] = domain.used[CLOSED_ROWS] = 0
        return released

    def _with_room(self, buckets: Records, limiters: Records, entries: Records, waits: Ints) -> DomainArrays:
        """The same limiters and queues, with empty pools behind them and the agenda filled anew."""
        items, owners = positions(entries, limiters)
        count, kept = len(self._names), len(items)
        size = 2 * kept + 4 * count + ROOM
        grown = np.zeros(size, ENTRY)
        grown["producer"][:kept] = entries["producer"][items]
        chain(owners, grown, limiters)
        domain = DomainArrays(
            buckets,
            limiters,
            counts=np.zeros((count, USAGE_COLUMNS), np.int64),
            entries=grown,
            withheld=np.empty(0, WITHHELD),
            withheld_by=np.empty(0, QUEUE),
            waits=waits,
            exempt=np.zeros(len(waits), np.bool_),
            marks=np.empty(size, MARKED),
            closed=np.empty((size, CLOSED_COLUMNS), np.int64),
            group_waits=np.empty(0, WAIT),
            admissions=np.empty(0, ADMISSION),
            agenda=np.empty(size, DUE),
            used=np.array([kept] + [0] * (POOLS - 1)),
            broker=-1,
            quantum=self.release_quantum or 0,
            offered=False,
            timeout_ns=0,
            tells=False,
        )
        plan_all(domain)
        return domain
