"""When a connection of which nothing has come for long begins anew, so that it can be forgotten before that."""

from typing import NamedTuple

import numpy as np

from headgate.core.kernels.columns import Flags
from headgate.core.kernels.protocol.types import FREE, NONE, READS_ON
from headgate.protocol.state import NOT_YET, SlotState


class Silence(NamedTuple):
    """A connection begins anew, with decision 1, after more than `silent_ms` (0: never) since its close; with
    `ends_open` also since the last row of one that is open and held by nothing.

    Rows at or before `horizon_ms` open nothing: it is `silent_ms` behind the watermark before this step (NONE: there
    is none). So what a later step would begin anew whatever comes can be forgotten, and no table shows it.
    """

    silent_ms: int = 0
    horizon_ms: int = NONE
    ends_open: bool = False

    @classmethod
    def before(cls, done_ms: int, silent_ms: int, *, ends_open: bool) -> "Silence":
        """That of a step which begins with this watermark."""
        horizon_ms = done_ms - silent_ms if silent_ms and done_ms != NOT_YET else NONE
        return cls(silent_ms, max(NONE, horizon_ms), ends_open)

    def is_over(self, last_ms: int, at_ms: int) -> bool:
        """Whether what was heard of last at `last_ms` begins anew with a row of `at_ms`."""
        return self.silent_ms > 0 and last_ms + self.silent_ms <= max(at_ms - 1, self.horizon_ms)

    def forget(self, state: SlotState) -> None:
        """Leave out of the state what any row of the next step begins anew."""
        if not self.silent_ms or state.done_ms == NOT_YET:
            return
        until_ms = state.done_ms - 2 * self.silent_ms
        connections = state.machines["connections"]
        is_open = connections["is_open"] != 0
        gone = ~is_open & (connections["closed_ms"] <= until_ms)
        if self.ends_open:
            gone |= is_open & (connections["heard_ms"] <= until_ms) & ~_are_held(state)
        if gone.any():
            state.keep(~gone)
            state.drop_unused()


def _are_held(state: SlotState) -> Flags:
    tables = state.machines
    held: Flags = tables["connections"]["off_at_ms"] != READS_ON
    producers, conditions = tables["producers"], tables["conditions"]
    held[producers["connection"][producers["phase"] != FREE]] = True
    held[conditions["connection"][conditions["marked"] > conditions["released"]]] = True
    return np.asarray(held)
