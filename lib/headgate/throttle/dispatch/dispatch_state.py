"""What a domain keeps of dispatch: levels with their buckets, topics with their group's, reads that are withheld."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Self

import numpy as np
import pyarrow as pa

from headgate.arrow.columns import BUCKET_FIELDS, empty_columns, no_ints, no_strings, numbers, whole
from headgate.core.kernels.columns import NO_VALUE, Flags, Ints
from headgate.throttle.groups.known_topics import KnownTopics
from headgate.throttle.keys import are_groups
from headgate.throttle.schemas import DISPATCH_COUNTS
from headgate.throttle.state_tables import (
    STORED_AS,
    StatePart,
    by_dimension,
    hours,
    not_empty,
    number,
    of_dimensions,
    with_numbers,
)

LEVEL_FIELDS = dict.fromkeys((*BUCKET_FIELDS, "floor", "configured", "averages"), 2) | dict.fromkeys(
    ("initialised", "cause", "held_ns", "period_s", "relative"), 1
)
"""Columns stored for each level, and how many dimensions they have.

floor, configured, averages and relative are of others than groups, whose buckets follow from their rates alone.
"""
READ_FIELDS = ("subscription", "at_ns", "messages", "bytes", "charged", "exempt")
RATES = {"sums": 2, "averages": 2}
"""Columns stored of what topics are published, and how many dimensions they have."""


@dataclass
class Averages:
    """Publish rates of topics, as of the last interval that ended, and what came in the one that is open.

    interval: the number of the open one. since_ns: publishes count from that second on, NO_VALUE: nothing was ever
    relative to them.
    topic: positions among the domain's publish limiters. Sums and averages per second: messages and bytes.
    """

    since_ns: int = NO_VALUE
    interval: int = NO_VALUE
    topic: Ints = field(default_factory=no_ints)
    sums: Ints = field(default_factory=lambda: np.empty((0, 2), np.int64))
    averages: Ints = field(default_factory=lambda: np.empty((0, 2), np.int64))

    @property
    def table(self) -> pa.Table:
        """As it is stored."""
        columns = {"topic": self.topic} | by_dimension({name: getattr(self, name) for name in RATES}, RATES)
        return with_numbers(columns, since_ns=self.since_ns, interval=self.interval)

    @classmethod
    def of(cls, table: pa.Table) -> Self:
        """The inverse of `table`."""
        since_ns, interval = number(table, "since_ns"), number(table, "interval")
        return cls(since_ns, interval, numbers(table["topic"]), **of_dimensions(table, RATES))


@dataclass
class DispatchState(StatePart):
    """The dispatch part of a domain. It knows nothing of publish limiters, and their order not of it."""

    TABLES: ClassVar = (
        *("dispatch_topics", "dispatch_levels", "dispatch_subscriptions", "dispatch_reads", "dispatch_open"),
        *("publish_averages", "dispatch_known_topics"),
    )

    # Topics that dispatched while anything was attached, in that order, each with the position of its group's level
    # and the number of the hour of its newest row.
    topics: pa.StringArray = field(default_factory=no_strings)
    level_of: Ints = field(default_factory=no_ints)
    topic_hour: Ints = field(default_factory=no_ints)
    # Levels by key (keys), in the order in which dispatches reached them.
    keys: pa.StringArray = field(default_factory=no_strings)
    levels: dict[str, Ints] = field(default_factory=lambda: empty_columns(LEVEL_FIELDS))
    # Subscriptions that wait, in the order of their retries: topic, name, when, and the place of what held them last.
    subscription_topic: pa.StringArray = field(default_factory=no_strings)
    subscription_name: pa.StringArray = field(default_factory=no_strings)
    subscription_due_ns: Ints = field(default_factory=no_ints)
    subscription_held_by: Ints = field(default_factory=no_ints)
    # Their withheld reads (offered traffic), in order per subscription: columns of READ_FIELDS.
    reads: dict[str, Ints] = field(default_factory=lambda: empty_columns(dict.fromkeys(READ_FIELDS, 1)))
    # Seconds of subscriptions that have not ended: number, topic, name, and columns of DISPATCH_COUNTS.
    open_second: Ints = field(default_factory=no_ints)
    open_topic: pa.StringArray = field(default_factory=no_strings)
    open_name: pa.StringArray = field(default_factory=no_strings)
    open_counts: Ints = field(default_factory=lambda: np.empty((0, len(DISPATCH_COUNTS)), np.int64))
    published: Averages = field(default_factory=Averages)
    known_topics: KnownTopics = field(default_factory=KnownTopics)

    @property
    def is_begun(self) -> bool:
        """See StatePart."""
        return bool(len(self.topics) or len(self.keys) or self.published.since_ns != NO_VALUE or self.is_open)

    @property
    def is_open(self) -> bool:
        """See StatePart."""
        return bool(len(self.subscription_topic) or len(self.open_second) or self.levels["cause"].any())

    @property
    def are_groups(self) -> Flags:
        """Which levels are groups'."""
        return are_groups(self.keys).to_numpy(zero_copy_only=False).astype(np.bool_)  # type: ignore[no-any-return]

    def tables(self) -> Iterator[tuple[str, pa.Table]]:
        """See StatePart."""
        subscriptions = {
            "topic": self.subscription_topic,
            "subscription": self.subscription_name,
            "due_ns": self.subscription_due_ns,
            "held_by": self.subscription_held_by,
        }
        seconds = {"second": self.open_second, "topic": self.open_topic, "subscription": self.open_name}
        yield from not_empty(
            dispatch_topics={
                "topic": self.topics,
                "level": self.level_of.astype(STORED_AS["level"]),
                "hour": self.topic_hour.astype(STORED_AS["hour"]),
            },
            dispatch_levels={"key": self.keys} | by_dimension(self.levels, LEVEL_FIELDS),
            dispatch_subscriptions=subscriptions,
            dispatch_reads={name: self.reads[name] for name in READ_FIELDS},
            dispatch_open=seconds | dict(zip(DISPATCH_COUNTS, self.open_counts.T, strict=True)),
        )
        if self.published.since_ns != NO_VALUE:
            yield "publish_averages", self.published.table
        if len(self.known_topics.topic):
            yield "dispatch_known_topics", self.known_topics.table

    def take(self, name: str, table: pa.Table) -> None:
        """See StatePart."""
        match name:
            case "dispatch_topics":
                self.topics, self.level_of = whole(table["topic"]), numbers(table["level"])
                self.topic_hour = hours(table)
            case "dispatch_levels":
                self.keys, self.levels = whole(table["key"]), of_dimensions(table, LEVEL_FIELDS)
            case "dispatch_subscriptions":
                self.subscription_topic = whole(table["topic"])
                self.subscription_name = whole(table["subscription"])
                self.subscription_due_ns = numbers(table["due_ns"])
                self.subscription_held_by = numbers(table["held_by"])
            case "dispatch_reads":
                self.reads = {name: numbers(table[name]) for name in READ_FIELDS}
            case "dispatch_open":
                self.open_second = numbers(table["second"])
                self.open_topic, self.open_name = whole(table["topic"]), whole(table["subscription"])
                self.open_counts = np.stack([numbers(table[name]) for name in DISPATCH_COUNTS], axis=1)
            case "publish_averages":
                self.published = Averages.of(table)
            case "dispatch_known_topics":
                self.known_topics = KnownTopics.of(table)

    def keep(self, topics: Flags, levels: Flags) -> None:
        """Forget all other topics and levels; no topic that stays has one of these levels, nor does a known one."""
        if not topics.all():
            position = np.cumsum(topics) - 1
            self.topics = self.topics.filter(pa.array(topics))
            self.level_of, self.topic_hour = self.level_of[topics], self.topic_hour[topics]
            self.known_topics.topic = position[self.known_topics.topic]
        if not levels.all():
            position = np.cumsum(levels) - 1
            self.keys = self.keys.filter(pa.array(levels))
            self.levels = {name: values[levels] for name, values in self.levels.items()}
            resolved = self.level_of >= 0
            self.level_of[resolved] = position[self.level_of[resolved]]
            self.known_topics.group = position[self.known_topics.group]
