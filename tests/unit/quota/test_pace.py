"""Batches that are longer than an epoch are said to be, once a minute, with what to set."""

import pytest

from headgate.quota.pace import Pace

LINE = (
    "batches take {} s and an epoch is 1.0 s: this job's reports come too late for the jobs of other brokers, and "
    "shares of quotas go wrong. Set resourceGroupEpochMillis to {} or more in the broker.conf of all of them, with a "
    "new --output; or {}"
)


def said(caplog, lengths_s, interval_ms=0, epoch_ms=1000):
    """The numbers of the batches after which something was said, and the last line. The batches are back to back."""
    pace, now_s, after = Pace(epoch_ms, interval_ms), 0.0, []
    for number, length_s in enumerate(lengths_s, 1):
        now_s += length_s
        count = len(caplog.records)
        pace.took(length_s, now_s)
        after += [number] * (len(caplog.records) - count)
    return after, caplog.records[-1].getMessage() if caplog.records else None


@pytest.mark.parametrize(
    ("lengths_s", "after"),
    [
        ([20, 0.4, 0.5, 0.9, 0.4, 0.9, 1.0, 1.0, 1.0, 1.0], []),
        ([20, 0.5, 0.9, 3.2, 0.9, 0.9, 3.2], []),
        ([20, 3.2, 3.2, 3.2], []),
        ([20, 3.2, 3.2, 3.2, 3.2], [5]),
        ([3.0] * 60, [5, 25, 45]),
        ([3.0] * 5 + [0.5] * 200 + [3.0] * 5, [5, 208]),
    ],
    ids=["short", "some are long", "few so far", "most", "for minutes", "it recovers"],
)
def test_most_of_the_last_batches_are_longer_than_an_epoch(caplog, lengths_s, after):
    assert after == said(caplog, lengths_s)[0]


def test_the_line_has_a_length_that_will_do(caplog):
    assert LINE.format("3.2", 5000, "give the job more cores or less input") == said(caplog, [3.2] * 5)[1]


def test_batches_that_a_trigger_keeps_apart_are_no_shorter_than_that(caplog):
    after, line = said(caplog, [0.3] * 5, interval_ms=4000)

    assert ([5], LINE.format("4.0", 6000, "lower trigger.interval_ms")) == (after, line)
