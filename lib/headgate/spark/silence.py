"""An input that does not answer: while it is asked Spark says nothing, for a minute or more."""

from collections.abc import Callable
from typing import Any

PATIENCE_S = 15
"""More than the 10 s after which Spark says again that there was nothing new."""
_ASKING = "Getting offsets from "


class Silence:
    """Tells once that the input has not answered for PATIENCE_S, and once that it does again.

    status: what Spark says that the query does now. interval_s: of the trigger.
    """

    def __init__(self, status: Callable[[], str], tell: Callable[[str], None], interval_s: float) -> None:
        self._status, self._tell = status, tell
        self._patience_s = PATIENCE_S + interval_s
        self._sign: Any = None
        self._since_s = 0.0
        self._is_told = False

    def look(self, sign: Any, now_s: float) -> None:
        """Look at how it is now. sign: differs from the last time if the query has looked for input meanwhile."""
        silent_s = now_s - self._since_s
        if sign != self._sign:
            if self._is_told:
                self._tell(f"the input answers again, after {silent_s:.0f} s")
            self._sign, self._since_s, self._is_told = sign, now_s, False
        elif not self._is_told and silent_s > self._patience_s and (status := self._status()).startswith(_ASKING):
            self._is_told = True
            self._tell(
                f"the input has not answered for {silent_s:.0f} s: {status.removeprefix(_ASKING)}; the job goes on "
                "when it does: see whether it is up, and can be reached from here"
            )
