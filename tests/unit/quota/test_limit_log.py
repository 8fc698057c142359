"""rg_limits gets one row for each epoch and cell of which a change matters, however often it changes, however late."""

from dataclasses import replace

import pytest

from headgate.core.quota.evaluation.step_parameters import CellLimit, Reason
from headgate.core.quota.settings import QuotaSettings
from headgate.errors import TableError
from headgate.quota.degraded import Cause, Degraded
from headgate.quota.limit_log import LimitLog
from headgate.quota.tables.rg_limits import LimitRow

OUTCOME = CellLimit(0, 5, 3, None, 1, 2, 9, Reason.GATED)


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
    log = LimitLog(sink, Degraded(), QuotaSettings())
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
    log = LimitLog(sink, degraded, QuotaSettings())
    sink.is_away = True
    for epoch in (7, 8, 9):
        log.write([row(epoch, 0, epoch)], epoch, ("a", epoch))
    assert Cause.LIMITS in degraded
    sink.is_away = False
    log.write([], 10, ("a", 10))

    assert [(7, 0, 7), (8, 0, 8), (9, 0, 9)] == sink.rows
    assert [("a", 8), ("a", 9), ("a", 10)] == sink.transactions
    assert Cause.LIMITS not in degraded


def said(changes, epochs, **settings):
    """What is in the table after so many epochs, and what the end of the job adds.

    changes: by epoch, limit and reason of one broker.
    """
    sink = Sink()
    log = LimitLog(sink, Degraded(), QuotaSettings(**settings))
    for epoch in range(epochs):
        rows = []
        if epoch in changes:
            limit, reason = changes[epoch]
            rows = [LimitRow(epoch, 0, 1, 0, 0, replace(OUTCOME, limit=limit, reason=Reason(reason)))]
        log.write(rows, epoch, ("a", epoch))
    before = [(epoch, limit) for epoch, _, limit in sink.rows]
    log.flush(("a", epochs))
    return before, [(epoch, limit) for epoch, _, limit in sink.rows][len(before) :]


T, G = "target", "gated"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({1: (1000, T), 3: (1050, T), 4: (1000, T), 6: (951, T), 7: (990, T)}, ([(1, 1000)], [(7, 990)])),
        ({1: (1000, T), 3: (1051, T), 5: (998, T)}, ([(1, 1000), (3, 1051), (5, 998)], [])),
        ({1: (1000, T), 3: (1020, T), 5: (1040, T), 7: (1060, T)}, ([(1, 1000), (7, 1060)], [])),
        ({1: (1000, T), 3: (1020, T)}, ([(1, 1000), (3, 1020)], [])),
        ({1: (1000, T), 3: (1000, G), 5: (1000, T), 7: (1000, "dead_band")}, ([(1, 1000)], [(7, 1000)])),
        ({1: (1000, T), 3: (1000, G)}, ([(1, 1000), (3, 1000)], [])),
        ({1: (1000, T), 2: (1020, T), 3: (1000, T)}, ([(1, 1000)], [])),
        ({1: (1000, T), 7: (1020, T), 8: (1000, T)}, ([(1, 1000)], [])),
        ({1: (1, T), 3: (0, "blocked"), 5: (None, "unset"), 7: (9, T)}, ([(1, 1), (3, 0), (5, None), (7, 9)], [])),
        ({1: (1000, T), 3: (1020, T), 4: (2000, T)}, ([(1, 1000), (4, 2000)], [])),
    ],
    ids=[
        "a flicker",
        "more than the tolerance",
        "steps in one direction",
        "a small change that stays",
        "another reason now and then",
        "another reason that stays",
        "there and back",
        "back in the last epoch",
        "to 0 and to no limit",
        "a large change after a small one",
    ],
)
def test_a_change_has_a_row_if_it_is_large_or_stays_and_the_end_of_the_job_says_what_holds(changes, expected):
    assert expected == said(changes, 9)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"tolerance_percent": 0}, ([(1, 1000), (3, 1001)], [(5, 1001)])),
        ({"suppress_rounds": 0}, ([(1, 1000), (3, 1001), (5, 1001)], [])),
        ({"suppress_rounds": -1, "tolerance_percent": 0}, ([(1, 1000), (3, 1001)], [(5, 1001)])),
        ({"suppress_rounds": -1}, ([(1, 1000)], [(5, 1001)])),
    ],
)
def test_how_large_and_how_long_are_those_of_reports_of_usage(settings, expected):
    assert expected == said({1: (1000, T), 3: (1001, T), 5: (1001, G)}, 9, **settings)
