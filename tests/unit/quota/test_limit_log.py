"""rg_limits gets one row for each epoch and cell, however often a limit changes in it, and however late."""

from dataclasses import replace

from headgate.core.quota.step_parameters import Outcome, Reason
from headgate.errors import TableError
from headgate.quota.degraded import Cause, Degraded
from headgate.quota.limit_log import LimitLog
from headgate.quota.limits import LimitRow

OUTCOME = Outcome(0, 5, 3, None, 1, 2, 9, Reason.GATED)


class Sink:
    """Takes rows in, or refuses them."""

    def __init__(self):
        self.rows = []
        self.transactions = []
        self.is_away = False

    def append(self, rows, transaction):
        if self.is_away:
            raise TableError("away")
        self.rows += [(row.epoch, row.broker_id, row.outcome.limit) for row in rows]
        self.transactions.append(transaction)


def row(epoch, broker, limit):
    return LimitRow(epoch, broker, 1, 0, 0, replace(OUTCOME, limit=limit))


def test_of_an_epoch_the_last_limit_of_each_cell_is_written_once_it_is_over():
    sink = Sink()
    log = LimitLog(sink, Degraded())
    log.write([row(7, 0, 100), row(7, 1, 50)], 7, ("a", 1))
    log.write([row(7, 0, 10)], 7, ("a", 2))
    assert [] == sink.rows
    log.write([row(8, 1, 60)], 8, ("a", 3))
    assert [(7, 0, 10), (7, 1, 50)] == sink.rows
    log.flush(("a", 4))

    assert [(7, 0, 10), (7, 1, 50), (8, 1, 60)] == sink.rows
    assert [("a", 3), ("a", 4)] == sink.transactions


def test_epochs_that_could_not_be_written_are_written_later_in_order():
    sink, degraded = Sink(), Degraded()
    log = LimitLog(sink, degraded)
    sink.is_away = True
    for epoch in (7, 8, 9):
        log.write([row(epoch, 0, epoch)], epoch, ("a", epoch))
    assert Cause.LIMITS in degraded
    sink.is_away = False
    log.write([], 10, ("a", 10))

    assert [(7, 0, 7), (8, 0, 8), (9, 0, 9)] == sink.rows
    assert [("a", 8), ("a", 9), ("a", 10)] == sink.transactions
    assert Cause.LIMITS not in degraded
