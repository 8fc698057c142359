"""What an answer says: values alone, as they are found in the tables."""

from dataclasses import dataclass, field
from datetime import datetime

from headgate.core.reasons import HeldReason


@dataclass(frozen=True)
class Window:
    """The time asked about, both ends included to the second; at: the instant asked about, None for a span."""

    first: datetime
    last: datetime
    at: datetime | None = None

    @property
    def seconds(self) -> int:
        """How many seconds it has."""
        return int((self.last - self.first).total_seconds()) + 1


@dataclass(frozen=True)
class Traffic:
    """Sums of the topic over the window. In admitted traffic all is let in, and nothing is delayed or fails.

    throttled_s: with a producer waiting, added up over partitions and brokers. mean_delay_s: of the delayed publishes;
    None without any.
    """

    publishes: int = 0
    messages: int = 0
    bytes: int = 0
    admitted_messages: int = 0
    admitted_bytes: int = 0
    throttled_publishes: int = 0
    throttled_s: float = 0.0
    delayed_publishes: int = 0
    failed_publishes: int = 0
    mean_delay_s: float | None = None


@dataclass(frozen=True)
class Span:
    """A time in which the topic was held; since_before: it had begun before the first row that was looked at."""

    first: datetime
    last: datetime
    since_before: bool = False


@dataclass(frozen=True)
class HeldBy:
    """A limiter on a broker that held the topic. unit: that ran out, messages or bytes. held_s: with a producer of it
    waiting. marks: how often it began. messages_per_s, bytes_per_s: its rates at the last mark, None: not limited;
    last_mark: when that was, None without one.

    spans: the longest ones, in the order of time; pauses of up to SAME_SPAN_S do not end one. more_spans: left out.
    """

    reason: HeldReason
    scope: str
    limiter: str
    broker: str
    unit: str
    held_s: float
    marks: int
    messages_per_s: int | None
    bytes_per_s: int | None
    spans: tuple[Span, ...]
    more_spans: int = 0
    last_mark: datetime | None = None


@dataclass(frozen=True)
class Level:
    """A limit of the chain on a broker, None for all. Rates are per second, None for not limited.

    is_in_force: whether it applies to the topic; a wider policy does not where a narrower one is set. is_binding: it
    held the topic in the window. set_in: where it was set. since: from when on, None for the beginning of the tables.
    was: rates before the last change in messages and bytes, None without a change.
    """

    level: str
    name: str
    broker: str | None
    messages_per_s: int | None
    bytes_per_s: int | None
    is_in_force: bool
    set_in: str
    since: datetime | None = None
    was: tuple[int | None, int | None] | None = None
    is_binding: bool = False


@dataclass(frozen=True)
class Balance:
    """Of a limiter when it began to hold a producer of the topic; negative in debt, None for not limited."""

    at: datetime
    broker: str
    scope: str
    limiter: str
    messages: int | None
    messages_per_s: int | None
    bytes: int | None
    bytes_per_s: int | None


@dataclass(frozen=True)
class Filler:
    """Who used a limiter. came, let_in: in its unit. part: of all that was let in, which is what takes tokens."""

    name: str
    came: int
    let_in: int
    part: float


@dataclass(frozen=True)
class Producer:
    """A producer of the topic: how often it was held, and for how long."""

    name: str
    broker: str
    connection: str
    marks: int
    held_s: float


@dataclass(frozen=True)
class Filled:
    """Who filled the limiter that held the topic longest, in the unit that ran out, in `window`: the largest first.

    topics, tenants: under the limiter; others: how many more topics there are. let_in_per_s: of all together in the
    mean; rate: of the limiter, of a group the whole quota, None if it is not known.
    """

    scope: str
    limiter: str
    unit: str
    window: Window
    tenants: tuple[Filler, ...]
    topics: tuple[Filler, ...]
    others: int = 0
    let_in_per_s: float = 0.0
    rate: int | None = None


@dataclass(frozen=True)
class Verdict:
    """kind: own_limit, cause, shared, victim, nobody or unknown. rule: by which it is that, in words.

    excess: by tenant, its part of what exceeded a fair share of the limiter.
    """

    kind: str
    rule: str
    excess: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class Remedy:
    """What would have helped, found by the rules run over the recorded traffic. kind: limit, quota, split or move.

    rate: per second, in `unit`, if what comes in a second is spread evenly over it; sure_rate: however it is
    distributed, None where that is not known. also: the same of the other unit, if that would have held then. Of a
    split, these are of all others, and rest is for `name`. name: the limiter, or the tenant or topic concerned. target:
    the broker to move to.
    """

    kind: str
    unit: str
    words: str
    rate: int | None = None
    sure_rate: int | None = None
    also: tuple[str, int, int | None] | None = None
    rest: int | None = None
    name: str | None = None
    target: str | None = None


@dataclass(frozen=True)
class Why:
    """The answer about a topic. reason: why it was held longest, NOT_HELD otherwise. held_s: while any limiter did.

    traffic: of the window. looked_at: of which all the rest is, the hour of it in which the topic was held longest.
    chain: at chain_at, the last mark of what held it longest, or the end of the window. is_held_at: of an instant
    asked about, whether a limiter held it then; None for a span. notes: what to know of the
    answer, such as rows that are gone.
    """

    topic: str
    window: Window
    looked_at: Window
    reason: HeldReason
    held_s: float
    traffic: Traffic
    held_by: tuple[HeldBy, ...] = ()
    chain: tuple[Level, ...] = ()
    chain_at: datetime | None = None
    balances: tuple[Balance, ...] = ()
    filled: Filled | None = None
    producers: tuple[Producer, ...] = ()
    verdict: Verdict | None = None
    remedies: tuple[Remedy, ...] = ()
    is_held_at: bool | None = None
    notes: tuple[str, ...] = field(default=())

    @property
    def is_held(self) -> bool:
        """Whether any limiter did anything to it."""
        return self.reason is not HeldReason.NOT_HELD
