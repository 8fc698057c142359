"""rg_limits as the loop writes it: what held at the end of each epoch, also where the table was out of reach then."""

from collections.abc import Iterator, Sequence

from headgate.core.quota.evaluation.step_parameters import Reason
from headgate.core.quota.settings import QuotaSettings
from headgate.core.quota.usage.reports import moved
from headgate.quota.degraded import Cause, Degraded
from headgate.quota.exchange import LimitSink
from headgate.quota.tables.rg_limits import LimitRow

_Place = tuple[int, int, int, int]
"""Broker, group, class, dimension."""
_Said = tuple[int | None, Reason]


class LimitLog:
    """One row for each epoch, broker and cell of which a change matters. resource-groups 5.4

    A change matters as one of usage does (resource-groups 6.2): the limit moved by more than
    resourceUsageReportSuppressionTolerancePercentage of what the last row says, or it is another one, or has another
    reason, and stayed so for resourceUsageMaxUsageReportSuppressRounds epochs. So a limit that follows the noise of a
    demand has no row for each step, the newest row is never further off than the tolerance, and one that is at rest
    stands in the table as it is. At the end of the job all do.

    A limit may change several times in an epoch, and rows of a table have no order: so rows of an epoch wait until it
    is over, and the last of each cell stands. They wait on while the table cannot be written, each lot under its own
    transaction. What a killed process had not written is explained anew by the rows of its next life.
    """

    def __init__(self, writer: LimitSink, degraded: Degraded, settings: QuotaSettings) -> None:
        self._writer = writer
        self._degraded = degraded
        self._tolerance_percent = settings.tolerance_percent
        self._rest_epochs = settings.suppress_rounds
        self._epoch = -1
        self._said: dict[_Place, _Said] = {}
        self._open: dict[_Place, LimitRow] = {}
        self._small: dict[_Place, LimitRow] = {}
        self._waiting: list[tuple[tuple[str, int], Sequence[LimitRow]]] = []

    def write(self, rows: Sequence[LimitRow], epoch: int, transaction: tuple[str, int]) -> None:
        """Take in `rows`, which are of `epoch`, and append those of epochs before that matter.

        transaction: an application id, and a version that grows with each call.
        """
        if epoch > self._epoch:
            self._append(list(self._that_matter(epoch)), transaction)
            self._epoch = epoch
        for row in rows:
            self._open[_place(row)] = row

    def flush(self, transaction: tuple[str, int]) -> None:
        """Append what there is, also of the epoch that is not over, and changes that were small."""
        rows = (self._small | self._open).values()
        self._append([row for row in rows if self._said.get(_place(row)) != _of(row)], transaction)
        self._open, self._small = {}, {}

    def _that_matter(self, epoch: int) -> Iterator[LimitRow]:
        for place, row in self._open.items():
            said = self._said.get(place)
            self._small.pop(place, None)
            if said is None or moved(row.outcome.limit, said[0], self._tolerance_percent):
                yield row
            elif _of(row) != said:
                self._small[place] = row
        self._open = {}
        if self._rest_epochs >= 0:
            rested = [place for place, row in self._small.items() if epoch - row.epoch >= self._rest_epochs]
            yield from map(self._small.pop, rested)

    def _append(self, rows: Sequence[LimitRow], transaction: tuple[str, int]) -> None:
        self._said |= {_place(row): _of(row) for row in rows}
        if rows:
            self._waiting.append((transaction, rows))
        if not self._waiting:
            return
        with self._degraded.attempt(Cause.LIMITS):
            while self._waiting:
                first_transaction, first = self._waiting[0]
                self._writer.append(first, first_transaction)
                del self._waiting[0]


def _place(row: LimitRow) -> _Place:
    return row.broker_id, row.group_id, row.traffic_class, row.dimension


def _of(row: LimitRow) -> _Said:
    return row.outcome.limit, row.outcome.reason
