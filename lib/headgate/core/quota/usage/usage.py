"""Usage of one broker by one group and class over one epoch: the values of a report (resource-groups 5.2, 6)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from headgate.core.quota.groups import FlagPair, IntPair, RatePair

PAIR_OF_NONE: RatePair = (None, None)
NO_FLAGS: FlagPair = (False, False)


@dataclass(frozen=True, slots=True)
class Usage:
    """What passed, what was wanted and what bound it. Each field is a pair (messages, bytes).

    admitted: a second, >= 0.
    offered: a second, first attempts, admitted or not; None where arrivals do not show demand.
    limit: a second, in force at the end of the epoch; None is not limited.
    throttled: something was refused or delayed because of this cell.
    """

    admitted: IntPair
    offered: RatePair = PAIR_OF_NONE
    limit: RatePair = PAIR_OF_NONE
    throttled: FlagPair = NO_FLAGS

    @property
    def idle(self) -> bool:
        """Nothing admitted, nothing offered as far as that is known, nothing throttled. resource-groups 6.2"""
        (messages, of_bytes), (offered, offered_bytes), throttled = self.admitted, self.offered, self.throttled
        return not (messages or of_bytes or offered or offered_bytes or throttled[0] or throttled[1])

    @property
    def demand(self) -> IntPair:
        """Offered, or admitted where offered is None: what an early cut compares. resource-groups 6.2"""
        messages, of_bytes = self.offered
        return (
            self.admitted[0] if messages is None else messages,
            self.admitted[1] if of_bytes is None else of_bytes,
        )

    def plain(self) -> list[Any]:
        """The values as plain data, which `of_plain` takes."""
        return [list(self.admitted), list(self.offered), list(self.limit), list(self.throttled)]

    @classmethod
    def of_plain(cls, values: Sequence[Sequence[Any]]) -> Self:
        """The usage that `plain` wrote."""
        (admitted, admitted_bytes), (offered, offered_bytes), (limit, limit_bytes), (throttled, throttled_bytes) = (
            values
        )
        return cls(
            (admitted, admitted_bytes), (offered, offered_bytes), (limit, limit_bytes), (throttled, throttled_bytes)
        )


NOTHING = Usage((0, 0))
