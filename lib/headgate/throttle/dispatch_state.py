"""What a domain keeps of dispatch: topics with their level, levels with their buckets, reads that are withheld."""

from dataclasses import dataclass, field

import pyarrow as pa

from headgate.core.kernels.domain_types import Ints
from headgate.throttle.columns import BUCKET_FIELDS, empty_columns, no_ints, no_strings
from headgate.throttle.seen import Seen

LEVEL_FIELDS = dict.fromkeys(BUCKET_FIELDS, 2) | dict.fromkeys(("born", "cause", "held_ns"), 1)
"""Columns stored for each level, and how many dimensions they have."""
READ_FIELDS = ("subscription", "at_ns", "messages", "bytes")


@dataclass
class DispatchState:
    """The dispatch part of a domain. It knows nothing of publish limiters, and their order not of it."""

    # Topics that dispatched while anything was attached, in that order, each with the position of its level.
    topics: pa.StringArray = field(default_factory=no_strings)
    level_of: Ints = field(default_factory=no_ints)
    # Levels by the key of their group (keys.group_key), in the order in which dispatches reached them.
    keys: pa.StringArray = field(default_factory=no_strings)
    levels: dict[str, Ints] = field(default_factory=lambda: empty_columns(LEVEL_FIELDS))
    # Subscriptions that wait, in the order of their retries: topic's position, name, when.
    subscription_topic: Ints = field(default_factory=no_ints)
    subscription_name: pa.StringArray = field(default_factory=no_strings)
    subscription_due_ns: Ints = field(default_factory=no_ints)
    # Their withheld reads (offered traffic), in order per subscription: columns of READ_FIELDS.
    reads: dict[str, Ints] = field(default_factory=lambda: empty_columns(dict.fromkeys(READ_FIELDS, 1)))
    seen: Seen = field(default_factory=Seen)

    @property
    def is_open(self) -> bool:
        """Whether time alone would bring output."""
        return bool(len(self.subscription_topic) or self.levels["cause"].any())
