"""What a domain keeps of subscribes: who has a bucket, and the buckets."""

from dataclasses import dataclass, field

import pyarrow as pa

from headgate.core.kernels.domain_types import Ints
from headgate.throttle.columns import empty_columns, no_ints, no_strings

SUBSCRIBE_FIELDS = ("rate", "period_s", "balance", "last_ns", "remainder_ns")


@dataclass
class SubscribeState:
    """Who has a bucket, in the order of first attempts, and the buckets."""

    topic: pa.StringArray = field(default_factory=no_strings)
    client: pa.StringArray = field(default_factory=no_strings)
    consumer: pa.StringArray = field(default_factory=no_strings)
    consumer_id: Ints = field(default_factory=no_ints)
    buckets: dict[str, Ints] = field(default_factory=lambda: empty_columns(dict.fromkeys(SUBSCRIBE_FIELDS, 1)))
