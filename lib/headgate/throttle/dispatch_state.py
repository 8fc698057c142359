"""What a domain keeps of dispatch: topics with their level, levels with their buckets, reads that are withheld."""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from headgate.core.kernels.domain_types import NONE, Ints
from headgate.throttle.schemas import DISPATCHES

LEVEL_FIELDS = {
    "rate": 2,
    "balance": 2,
    "last_ns": 2,
    "remainder_ns": 2,
    "born": 1,
    "cause": 1,
    "held_ns": 1,
}
"""Columns stored for each level, and how many dimensions they have. Floors follow from rates."""
READ_FIELDS = ("subscription", "at_ns", "messages", "bytes")


def _no_strings() -> pa.StringArray:
    return pa.array([], pa.string())


def _no_ints() -> Ints:
    return np.empty(0, np.int64)


def _no_levels() -> dict[str, Ints]:
    return {name: np.empty((0, 2) if width == 2 else 0, np.int64) for name, width in LEVEL_FIELDS.items()}


@dataclass
class DispatchState:
    """The dispatch part of a domain. It knows nothing of publish limiters, and their order not of it."""

    # Topics that dispatched while anything was attached, in that order, each with the position of its level.
    topics: pa.StringArray = field(default_factory=_no_strings)
    level_of: Ints = field(default_factory=_no_ints)
    # Levels by the key of their group (keys.group_key), in the order in which dispatches reached them.
    keys: pa.StringArray = field(default_factory=_no_strings)
    levels: dict[str, Ints] = field(default_factory=_no_levels)
    # Subscriptions that wait, in the order of their retries: topic's position, name, when.
    subscription_topic: Ints = field(default_factory=_no_ints)
    subscription_name: pa.StringArray = field(default_factory=_no_strings)
    subscription_due_ns: Ints = field(default_factory=_no_ints)
    # Their withheld reads (offered traffic), in order per subscription: columns of READ_FIELDS.
    reads: dict[str, Ints] = field(default_factory=lambda: {name: _no_ints() for name in READ_FIELDS})
    # Topics, each with its level then, that dispatched in the newest epoch with dispatches of any group.
    seen_epoch: int = NONE
    seen_topic: Ints = field(default_factory=_no_ints)
    seen_group: Ints = field(default_factory=_no_ints)
    held: pa.Table = field(default_factory=DISPATCHES.empty_table)

    @property
    def is_open(self) -> bool:
        """Whether time alone would bring output."""
        return bool(len(self.subscription_topic) or len(self.held) or self.levels["cause"].any())
