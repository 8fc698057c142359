"""The time range of an address: what it means, and what is refused."""

import pytest

from headgate.errors import PageError
from headgate.service.pages.span import SECOND_US, Asked, Span, asked, iso, together

AT = 1_767_603_600
NEWEST = (AT - 1000) * SECOND_US, AT * SECOND_US + 5


@pytest.mark.parametrize(
    ("query", "first_s", "end_s"),
    [
        ({}, AT - 299, AT + 1),
        ({"last": "60"}, AT - 59, AT + 1),
        ({"last": " 60 ", "from": "", "to": ""}, AT - 59, AT + 1),
        ({"last": "86400"}, AT - 1000, AT + 1),  # it begins with the first row
        ({"from": "2026-01-05T09:00:00Z", "to": "2026-01-05T09:01:00Z"}, AT, AT + 60),
        ({"from": "2026-01-05T09:00:00", "to": "2026-01-05T10:01:00+01:00"}, AT, AT + 60),
        ({"to": "2026-01-05T08:59:00Z"}, AT - 360, AT - 60),
        ({"from": "2026-01-05T08:59:00Z"}, AT - 60, AT + 1),
    ],
)
def test_an_address_says_a_range_of_whole_seconds(query, first_s, end_s):
    assert asked(query).span(NEWEST) == Span(first_s * SECOND_US, end_s * SECOND_US)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"last": "0"}, "last: got '0'"),
        ({"last": "-5"}, "last: got '-5'"),
        ({"last": "٣"}, "last: got '٣'"),
        ({"last": "9" * 99}, "last: got '9999"),
        ({"from": "yesterday"}, "from: got 'yesterday'"),
        ({"to": "2026-13-01"}, "to: got '2026-13-01'"),
        ({"from": "0001-01-01T00:00:00+23:00"}, "from: got"),
        ({"from": "2026-01-05T09:00:00Z", "to": "2026-01-05T09:00:00Z"}, "not before the end"),
        ({"from": "2025-01-05T09:00:00Z", "to": "2026-01-05T09:00:00Z"}, "longer than 31 days"),
    ],
)
def test_what_is_no_range_is_refused_in_words(query, said):
    with pytest.raises(PageError, match=said) as refused:
        asked(query).span(NEWEST)
    assert refused.value.status == 400


def test_without_a_row_there_is_no_range_yet():
    with pytest.raises(PageError, match="No publish is there yet") as nothing:
        Asked().span(None, "publish")
    assert nothing.value.status == 200


@pytest.mark.parametrize(("seconds", "step_s"), [(1, 1), (300, 1), (301, 2), (3600, 12)])
def test_a_chart_has_at_most_300_steps_which_cover_the_range(seconds, step_s):
    span = Span(AT * SECOND_US, (AT + seconds) * SECOND_US)
    steps = span.steps_us
    assert (span.step_s, len(steps) <= 301) == (step_s, True)
    assert sum(map(span.seconds_of, steps)) == seconds


def test_sql_has_the_range_in_words_that_anybody_reads():
    assert Span(0, SECOND_US).where("at") == "at >= '1970-01-01T00:00:00Z' AND at < '1970-01-01T00:00:01Z'"
    assert iso(1) == "1970-01-01T00:00:00.000001Z"


def test_several_tables_together_have_the_oldest_and_the_newest_row():
    assert together([None, (2, 5), (1, 3)]) == (1, 5)
    assert together([None]) is None
