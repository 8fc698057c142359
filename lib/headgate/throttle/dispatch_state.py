"""What a domain keeps of dispatch: levels with their buckets, topics with their group's, reads that are withheld."""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from headgate.core.kernels.domain_types import NONE, Ints
from headgate.throttle.columns import BUCKET_FIELDS, empty_columns, no_ints, no_strings
from headgate.throttle.keys import are_groups
from headgate.throttle.schemas import DISPATCH_COUNTS
from headgate.throttle.seen import Seen

LEVEL_FIELDS = dict.fromkeys((*BUCKET_FIELDS, "floor", "configured", "averages"), 2) | dict.fromkeys(
    ("born", "cause", "held_ns", "period_s", "relative"), 1
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

    interval: the number of the open one. since_ns: publishes count from that second on, NONE: nothing was ever relative
    to them.
    topic: positions among the domain's publish limiters. Sums and averages per second: messages and bytes.
    """

    since_ns: int = NONE
    interval: int = NONE
    topic: Ints = field(default_factory=no_ints)
    sums: Ints = field(default_factory=lambda: np.empty((0, 2), np.int64))
    averages: Ints = field(default_factory=lambda: np.empty((0, 2), np.int64))


@dataclass
class DispatchState:
    """The dispatch part of a domain. It knows nothing of publish limiters, and their order not of it."""

    # Topics that dispatched while anything was attached, in that order, each with the position of its group's level.
    topics: pa.StringArray = field(default_factory=no_strings)
    level_of: Ints = field(default_factory=no_ints)
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
    seen: Seen = field(default_factory=Seen)

    @property
    def is_open(self) -> bool:
        """Whether time alone would bring output."""
        return bool(len(self.subscription_topic) or len(self.open_second) or self.levels["cause"].any())

    @property
    def are_groups(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Which levels are groups'."""
        return are_groups(self.keys).to_numpy(zero_copy_only=False).astype(np.bool_)  # type: ignore[no-any-return]
