"""What a form is given for one step of a domain, and what it returns: the same for both forms of the rules."""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from headgate.core.dispatch.dispatch_domain import GROUP, NO_LEVEL
from headgate.core.kernels.columns import Flags, Ints
from headgate.core.kernels.dispatch.types import DispatchOperations
from headgate.core.kernels.publish.types import Operations
from headgate.throttle.dispatch.chains import Subscriptions
from headgate.throttle.state import DomainState


@dataclass(frozen=True)
class Rules:
    """Settings of a job that its results depend on, besides the limits.

    max_debt_ms: the largest debt, in ms of tokens; -1: no bound (rate-limiters 4.5).
    release_quantum: how many producers a wake-up releases; 0: all (rate-limiters 4.3).
    offered: events are arrivals; those of producers that wait are withheld, for send_timeout_ms at most.
    hold_back_ms: how long rows wait for earlier ones.
    whole_brokers: all publishes of a broker come to one key, and are charged to the broker's limiter.
    slot_ms: the length of the slots in which usage of groups is reported; 0: it is not reported.
    epoch_ms: the length in which topics of a group are counted once: a multiple of slot_ms, from 1.
    slots: how many keys there are; 0: a key is a topic.
    connection_topics: the first publish of a topic over a connection is a row, and the first after a whole
    hour of the clock without one.
    classic: of dispatches, all levels but groups are classic windows.
    charges_entries: of dispatches, levels count entries, not messages.
    throttles_caught_up: False exempts reads of consumers that are caught up.
    filtered_entries: entries that a filter dropped count.
    stats_interval_s: over how long publish rates are averaged.
    """

    max_debt_ms: int = -1
    release_quantum: int = 0
    offered: bool = False
    send_timeout_ms: int = 30_000
    hold_back_ms: int = 0
    whole_brokers: bool = False
    slot_ms: int = 0
    epoch_ms: int = 1000
    slots: int = 0
    classic: bool = False
    charges_entries: bool = False
    throttles_caught_up: bool = True
    filtered_entries: bool = False
    stats_interval_s: int = 60
    connection_topics: bool = False


class DispatchStep(NamedTuple):
    """What a form gets of dispatch for one step.

    subscriptions: those of the state that wait, then those with an open second, then those of the rows. chains: their
    levels by place. topic: positions of their topics in the state, -1: not kept there. counted: whether the group of a
    subscription that waits counts it: not so where its topic has just come to another group. begin_ns: the clock as the
    step begins. open: where the open seconds of the state stand among the subscriptions.
    """

    operations: DispatchOperations
    subscriptions: Subscriptions
    open: Ints
    chains: Ints
    topic: Ints
    counted: Flags
    begin_ns: int
    offered: bool

    @property
    def has_group(self) -> Flags:
        """Which subscriptions a group limits or counts."""
        has_group: Flags = self.chains[:, GROUP] != NO_LEVEL
        return has_group


class Step(NamedTuple):
    """What a form gets for one step: what to do in its order, each producer's topic, and up to when time comes.

    exempt: producers that no group limits or counts. dispatch: what to do there, None: nothing.
    """

    operations: Operations
    producer_topic: Ints
    exempt: Flags
    until_ns: int
    finish: bool
    dispatch: DispatchStep | None


class Waits(NamedTuple):
    """Times in which groups made producers wait, and that ended in a step (kernels.publish.types.WAIT)."""

    limiter: Ints
    from_ns: Ints
    until_ns: Ints
    causes: Ints


class Admissions(NamedTuple):
    """Arrivals of offered traffic of topics with a group that were let in (kernels.publish.types.ADMISSION)."""

    at_ns: Ints
    topic: Ints
    messages: Ints
    bytes: Ints


class Starts(NamedTuple):
    """Reads of offered traffic that started (core.dispatch.dispatch_domain.Start)."""

    at_ns: Ints
    subscription: Ints
    messages: Ints
    bytes: Ints
    arrived_ns: Ints
    counted: Ints


class DispatchResult(NamedTuple):
    """What dispatch did in one step.

    line: positions of the subscriptions that wait, in the order of their retries. waits: of groups, empty unless
    Rules.slot_ms is set. held_by: of each read, in their order, the place from 1 of the first level without a permit as
    it came, 0: none.
    """

    line: Ints
    waits: Waits
    held_by: Ints
    starts: Starts


class Result(NamedTuple):
    """Marks and closed usage of one step, with positions of limiters, producers and topics (kernels.publish.types).

    mark_times: how many rows of `marks` each stands for. mark_balance, mark_rate: by mark and dimension, messages and
    bytes; zeros of unmarks.
    waits, admissions: empty unless Rules.slot_ms is set.
    """

    mark_at_ns: Ints
    mark_limiter: Ints
    mark_producer: Ints
    mark_topic: Ints
    mark_seq: Ints
    mark_action: Ints
    mark_times: Ints
    mark_balance: Ints
    mark_rate: Ints
    closed_topic: Ints
    closed_second: Ints
    closed_counts: Ints
    waits: Waits
    admissions: Admissions
    dispatch: DispatchResult | None


class Form(Protocol):
    """Carries out a step on a domain's state, in array form or in the readable one."""

    def __call__(self, domain: DomainState, step: Step, rules: Rules) -> Result: ...
