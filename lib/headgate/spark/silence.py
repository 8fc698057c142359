"""An input that does not answer: Spark says nothing while it asks, or while its tasks wait, for a minute or more."""

from collections.abc import Callable
from typing import Any

WATCHED_S, ASKED_S, AT_WORK_S = 11, 15, 30
"""Spark says every 10 s at the latest that there was nothing new, unless it is set otherwise: only later than that is
its status asked for. A status is of one moment: of an idle query that asks its input for most of the time it may say
each time that it asks.
"""
_ASKING, _WAITING = "Getting offsets from ", "Waiting for "


class Silence:
    """Tells once that the input has not answered for ASKED_S, or a batch takes AT_WORK_S, and once that it goes on.

    That Spark waits for data or its trigger is a sign of life, however seldom it says that there was nothing new.
    status: what Spark says that the query does now. interval_s: of the trigger, which comes on top.
    """

    def __init__(self, status: Callable[[], str], tell: Callable[[str], None], interval_s: float) -> None:
        self._status, self._tell, self._interval_s = status, tell, interval_s
        self._sign: Any = None
        self._since_s = 0.0
        self._is_told = False

    def look(self, sign: Any, now_s: float) -> None:
        """Look at how it is now. sign: differs from the last time if a batch has ended, or nothing new was found."""
        silent_s = now_s - self._since_s
        status = self._status() if silent_s > WATCHED_S + self._interval_s else ""
        if sign != self._sign or status.startswith(_WAITING):
            if self._is_told:
                self._tell(f"goes on, after {silent_s:.0f} s")
            self._sign, self._since_s, self._is_told = sign, now_s, False
        elif not self._is_told and silent_s > ASKED_S + self._interval_s:
            is_asking = status.startswith(_ASKING)
            if is_asking or silent_s > AT_WORK_S + self._interval_s:
                self._is_told = True
                self._tell(_of_input(status, silent_s) if is_asking else _of_batch(status, silent_s))


def _of_input(status: str, silent_s: float) -> str:
    asked = f"the input has not answered for {silent_s:.0f} s: {status.removeprefix(_ASKING)}"
    return f"{asked}; the job goes on when it does: see whether it is up, and can be reached from here"


def _of_batch(status: str, silent_s: float) -> str:
    taken = f"no batch has ended for {silent_s:.0f} s ({status})"
    return f"{taken}: the input does not answer, or there is much to do; the job goes on by itself"
