"""The small parts of the loop: who is overdue, topics of an epoch, what changed and back, what is new."""

from types import SimpleNamespace

from headgate.core.quota.evaluation.step_parameters import CellLimit, Reason
from headgate.core.quota.usage.reports import ReportReason
from headgate.core.quota.usage.usage import NOTHING
from headgate.core.quota.usage.usage_report import ReportKind, ReportRow, UsageReport
from headgate.quota.changed_groups import ChangedGroups
from headgate.quota.control_rows import AppliedLimits
from headgate.quota.failure_detection import FailureDetection
from headgate.quota.limit_book import LimitBook
from headgate.quota.topic_counts import TopicCounts

KEY = (1, 0)


def heard(epoch, incarnation=1):
    return {7: SimpleNamespace(incarnation=incarnation, covered_epoch=epoch)}


def test_a_member_is_overdue_when_no_new_heartbeat_came_for_the_bound_while_the_table_was_read():
    watch = FailureDetection(3000)
    steps = [(0, heard(1)), (1000, heard(1)), (2000, heard(2)), (4000, heard(2)), (5000, heard(2))]

    assert [{}, {}, {}, {}, {7: 1}] == [watch.overdue(members, at_ms, at_ms) for at_ms, members in steps]


def test_time_in_which_the_table_was_not_read_and_former_lives_do_not_count():
    watch = FailureDetection(3000)
    watch.overdue(heard(1), 0, 0)
    watch.overdue(heard(1), 2000, 2000)
    watch.interrupt()
    after_outage = watch.overdue(heard(1), 60_000, 60_000)
    new_life = watch.overdue(heard(5, incarnation=2), 62_000, 62_000)

    assert [{}, {}, {7: 2}] == [after_outage, new_life, watch.overdue(heard(5, incarnation=2), 65_000, 65_000)]


def test_time_by_which_one_clock_alone_went_on_does_not_count():
    """A first batch takes event time to now at once; a batch that was long in coming brings what it brings."""
    watch = FailureDetection(3000)
    steps = [(0, 1000), (1_700_000_000_000, 3000), (1_700_000_000_500, 10_000), (1_700_000_001_000, 10_500)]
    found = [watch.overdue(heard(1), *at_ms) for at_ms in steps]

    assert [{}, {}, {}, {7: 1}] == found


def test_a_life_that_has_not_said_anything_yet_has_longer_to_begin():
    """Its first batch starts workers, and compiles what is new."""
    watch = FailureDetection(3000)
    steps = [(0, heard(None)), (14_000, heard(None)), (15_000, heard(None))]

    assert [{}, {}, {7: 1}] == [watch.overdue(members, at_ms, at_ms) for at_ms, members in steps]


def cut(epoch, kind=ReportKind.PERIODIC, at_ms=0):
    return UsageReport(
        1, epoch, kind, kind is ReportKind.PERIODIC, at_ms, 0, (ReportRow(*KEY, NOTHING, ReportReason.FIRST),)
    )


def test_topics_are_those_of_the_epoch_and_inside_it_those_so_far():
    topics = TopicCounts(1000)
    for at_ms, count in ((9_950, 1), (10_000, 2), (10_500, 4), (10_700, 8), (11_000, 16)):
        topics.add(KEY, at_ms, count)
    again = TopicCounts.from_state(topics.state(), 1000)
    early = again.of(cut(10, ReportKind.EVENT, 10_600))
    whole = again.of(cut(10))
    again.forget(11_000)

    assert ({KEY: 6}, {KEY: 14}, {}, {}) == (early, whole, again.of(cut(10)), again.of(cut(11, ReportKind.LEAVE)))


def outcome(limit, reason=Reason.TARGET):
    return CellLimit(limit, limit, limit, limit, 0, 0, 0, reason)


def test_a_limit_that_changed_and_changed_back_between_two_looks_did_not_change():
    book = LimitBook()
    book.decide((1, 0, 0), 3, outcome(5))
    first = list(book.settle())
    book.decide((1, 0, 0), 3, outcome(6))
    book.decide((1, 0, 0), 3, outcome(5))

    assert ([(3, (1, 0, 0), outcome(5))], []) == (first, list(book.settle()))
    assert (5, None) == book.limits(KEY, 3)


def test_only_limits_that_differ_are_told_and_none_is_kept_of_what_is_not_limited():
    told = AppliedLimits()
    first = told.limit({("a", "g", 0): (5, None), ("a", "h", 0): (None, None)}, 1000)
    same = told.limit({("a", "g", 0): (5, None)}, 2000)
    gone = told.limit({("a", "g", 0): (None, None)}, 3000)

    assert [("g", 5, 1000)] == [(row.group, row.messages_per_s, row.effective_ms) for row in first]
    assert ((), [None], {}) == (same, [row.messages_per_s for row in gone], told.limits)


def test_news_is_due_until_a_view_shows_it_and_what_comes_later_not_before():
    changed_groups = ChangedGroups()
    changed_groups.expect(KEY, 10)
    changed_groups.expect_later((2, 0), 12)
    found = []
    for epoch in (9, 10, 11, 12, 13):
        found.append(changed_groups.due(epoch))
        changed_groups.evaluated(epoch)

    assert [{KEY}, {KEY}, set(), {(2, 0)}, set()] == found


def test_a_row_of_an_idle_broker_counts_until_the_epoch_after_it():
    for idle, last in ((False, 5), (True, 6)):
        changed_groups = ChangedGroups()
        changed_groups.accepted(SimpleNamespace(key=KEY, epoch=5), idle=idle, early=False)
        changed_groups.evaluated(last - 1)
        before = changed_groups.due(last)
        changed_groups.evaluated(last)

        assert [{KEY}, set()] == [before, changed_groups.due(last + 1)]
