"""rg_limits as the loop writes it: every change once and in order, also where the table was out of reach meanwhile."""

from collections.abc import Sequence

from headgate.quota.degraded import Cause, Degraded
from headgate.quota.exchange import LimitSink
from headgate.quota.limits import LimitRow


class LimitLog:
    """Rows wait until they are in the table, each lot under its own transaction. resource-groups 5.4"""

    def __init__(self, writer: LimitSink, degraded: Degraded) -> None:
        self._writer = writer
        self._degraded = degraded
        self._waiting: list[tuple[tuple[str, int], Sequence[LimitRow]]] = []

    def write(self, rows: Sequence[LimitRow], transaction: tuple[str, int]) -> None:
        """Append what waits, and `rows`. transaction: an application id, and a version that grows with each call."""
        if rows:
            self._waiting.append((transaction, rows))
        if not self._waiting:
            return
        with self._degraded.attempt(Cause.LIMITS):
            while self._waiting:
                first_transaction, first = self._waiting[0]
                self._writer.append(first, first_transaction)
                del self._waiting[0]
