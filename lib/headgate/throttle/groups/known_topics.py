"""What counts the topics of a group once an epoch."""

from dataclasses import dataclass, field
from typing import Self

import pyarrow as pa

from headgate.arrow.columns import no_ints, numbers
from headgate.core.kernels.columns import NO_VALUE, Ints
from headgate.throttle.state_tables import number, with_numbers


@dataclass
class KnownTopics:
    """Topics, each with its group then, that had traffic in the newest epoch with traffic of any group.

    Both by position, topic among topics and group among limiters or levels.
    """

    epoch: int = NO_VALUE
    topic: Ints = field(default_factory=no_ints)
    group: Ints = field(default_factory=no_ints)

    @property
    def table(self) -> pa.Table:
        """As it is stored."""
        return with_numbers({"topic": self.topic, "group": self.group}, epoch=self.epoch)

    @classmethod
    def of(cls, table: pa.Table) -> Self:
        """The inverse of `table`."""
        return cls(number(table, "epoch"), numbers(table["topic"]), numbers(table["group"]))

    def clear(self) -> None:
        """As if there had been no epoch."""
        self.epoch, self.topic, self.group = NO_VALUE, no_ints(), no_ints()
