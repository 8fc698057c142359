"""What a domain keeps of unloads: where its broker's limiter stands."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import ClassVar

import pyarrow as pa

from headgate.core.kernels.columns import NO_VALUE
from headgate.throttle.state_tables import StatePart


@dataclass
class UnloadState(StatePart):
    """The limiter of a broker's unloads, from the first one on (rate-limiters 9). Its limits are in those in force.

    busy_until_ns: the running unload, or the last, ends. next_free_ns: the next permit is due. credit: billionths of a
    permit. NO_VALUE: there was no unload yet.
    """

    TABLES: ClassVar = ("unloads",)

    busy_until_ns: int = NO_VALUE
    next_free_ns: int = NO_VALUE
    credit: int = 0

    @property
    def is_begun(self) -> bool:
        """See StatePart."""
        return self.busy_until_ns != NO_VALUE

    def tables(self) -> Iterator[tuple[str, pa.Table]]:
        """See StatePart."""
        if self.is_begun:
            yield "unloads", pa.table({name: [value] for name, value in asdict(self).items()})

    def take(self, _name: str, table: pa.Table) -> None:
        """See StatePart."""
        self.busy_until_ns, self.next_free_ns, self.credit = (table[name][0].as_py() for name in asdict(self))
