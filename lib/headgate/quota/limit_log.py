"""rg_limits as the loop writes it: what held at the end of each epoch, also where the table was out of reach then."""

from collections.abc import Sequence

from headgate.quota.degraded import Cause, Degraded
from headgate.quota.exchange import LimitSink
from headgate.quota.limits import LimitRow


class LimitLog:
    """One row for each epoch, broker and cell whose limit or reason changed. resource-groups 5.4

    A limit may change several times in an epoch, and rows of a table have no order: so rows of an epoch wait until it
    is over, and the last of each cell stands. They wait on while the table cannot be written, each lot under its own
    transaction. What a killed process had not written is explained anew by the rows of its next life.
    """

    def __init__(self, writer: LimitSink, degraded: Degraded) -> None:
        self._writer = writer
        self._degraded = degraded
        self._epoch = -1
        self._open: dict[tuple[int, int, int, int], LimitRow] = {}
        self._waiting: list[tuple[tuple[str, int], Sequence[LimitRow]]] = []

    def write(self, rows: Sequence[LimitRow], epoch: int, transaction: tuple[str, int]) -> None:
        """Take in `rows`, which are of `epoch`, and append those of epochs before.

        transaction: an application id, and a version that grows with each call.
        """
        if epoch > self._epoch:
            self.flush(transaction)
            self._epoch = epoch
        for row in rows:
            self._open[row.broker_id, row.group_id, row.traffic_class, row.dimension] = row

    def flush(self, transaction: tuple[str, int]) -> None:
        """Append what there is, also of the epoch that is not over."""
        if self._open:
            self._waiting.append((transaction, list(self._open.values())))
            self._open = {}
        if not self._waiting:
            return
        with self._degraded.attempt(Cause.LIMITS):
            while self._waiting:
                first_transaction, first = self._waiting[0]
                self._writer.append(first, first_transaction)
                del self._waiting[0]
