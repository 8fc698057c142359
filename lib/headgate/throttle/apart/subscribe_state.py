"""What a domain keeps of subscribes: who has a bucket, and the buckets."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pyarrow as pa

from headgate.arrow.columns import empty_columns, no_ints, no_strings, numbers, whole
from headgate.core.kernels.columns import Flags, Ints
from headgate.throttle.idle import are_forgotten
from headgate.throttle.state_tables import StatePart

SUBSCRIBE_FIELDS = ("rate", "period_s", "balance", "last_ns", "remainder_ns")


@dataclass
class SubscribeState(StatePart):
    """Who has a bucket, in the order of first attempts, and the buckets."""

    TABLES: ClassVar = ("subscribes",)

    topic: pa.StringArray = field(default_factory=no_strings)
    client: pa.StringArray = field(default_factory=no_strings)
    consumer: pa.StringArray = field(default_factory=no_strings)
    consumer_id: Ints = field(default_factory=no_ints)
    buckets: dict[str, Ints] = field(default_factory=lambda: empty_columns(dict.fromkeys(SUBSCRIBE_FIELDS, 1)))

    @property
    def is_begun(self) -> bool:
        """See StatePart."""
        return len(self.topic) > 0

    def is_due(self, until_ns: int) -> bool:
        """See StatePart: a bucket is forgotten by then."""
        return bool(self.are_forgotten(until_ns).any())

    def are_forgotten(self, at_ns: int) -> Flags:
        """See idle.are_forgotten."""
        return are_forgotten(self.buckets, self.buckets["period_s"], at_ns)

    def tables(self) -> Iterator[tuple[str, pa.Table]]:
        """See StatePart."""
        names = {"topic": self.topic, "client": self.client, "consumer": self.consumer}
        yield "subscribes", pa.table({**names, "consumer_id": self.consumer_id, **self.buckets})

    def take(self, _name: str, table: pa.Table) -> None:
        """See StatePart."""
        self.topic, self.client, self.consumer = (whole(table[name]) for name in ("topic", "client", "consumer"))
        self.consumer_id = numbers(table["consumer_id"])
        self.buckets = {name: numbers(table[name]) for name in SUBSCRIBE_FIELDS}

    def keep(self, stays: Flags) -> None:
        """Forget all others."""
        if stays.all():
            return
        kept = pa.array(np.flatnonzero(stays))
        self.topic, self.client, self.consumer = (
            column.take(kept) for column in (self.topic, self.client, self.consumer)
        )
        self.consumer_id = self.consumer_id[stays]
        self.buckets = {name: column[stays] for name, column in self.buckets.items()}
