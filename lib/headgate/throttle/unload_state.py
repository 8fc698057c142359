"""What a domain keeps of unloads: where its broker's limiter stands."""

from dataclasses import dataclass

from headgate.core.kernels.domain_types import NONE


@dataclass
class UnloadState:
    """The limiter of a broker's unloads, from the first one on (rate-limiters 9). Its limits are in the book.

    busy_until_ns: the running unload, or the last, ends. next_free_ns: the next permit is due. credit: billionths of a
    permit. NONE: there was no unload yet.
    """

    busy_until_ns: int = NONE
    next_free_ns: int = NONE
    credit: int = 0

    @property
    def is_begun(self) -> bool:
        return self.busy_until_ns != NONE
