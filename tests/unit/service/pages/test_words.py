"""Numbers, names and addresses on pages, and charts as paths."""

from urllib.parse import parse_qs, unquote

import pytest

from headgate.service.pages import words
from headgate.service.pages.charts import Chart, Course, ceiling, course, held_on
from headgate.service.pages.read import _quoted
from headgate.service.pages.span import Span
from headgate.tables.query import text
from page_outputs import HOSTILE, LONG, ORDERS

SPAN = Span(0, 4_000_000)


@pytest.mark.parametrize(
    ("function", "value", "expected"),
    [
        *((words.number, value, said) for value, said in ((None, "-"), (0, "0"), (0.01, "<0.1"), (2.54, "2.5"))),
        *((words.number, value, said) for value, said in ((7.0, "7"), (1234567, "1,234,567"), (-1.5, "-1.5"))),
        *((words.in_bytes, value, said) for value, said in ((None, "-"), (999, "999 B"), (1500, "1.5 KB"))),
        *((words.in_bytes, value, said) for value, said in ((250_000, "250 KB"), (10**18, "1000 PB"))),
        *(
            (words.percent, value, said)
            for value, said in ((None, "-"), (0, "0 %"), (0.004, "0.4 %"), (12.5, "1,250 %"))
        ),
        *((words.seconds, value, said) for value, said in ((0.25, "250 ms"), (2, "2.0 s"), (90, "1.5 min"))),
        (words.instant, 0, "1970-01-01 00:00:00"),
        (words.instant, None, "-"),
    ],
)
def test_values_have_units_and_thousands_apart(function, value, expected):
    assert function(value) == expected


@pytest.mark.parametrize(
    "topic", [ORDERS, HOSTILE, LONG, "kafka.topic", "persistent://a/b/c/d e?#%2F", "non-persistent://a/b/c"]
)
def test_the_address_of_a_topic_leads_back_to_it(topic):
    path = words.topic_path(topic)
    assert not set(path) & set(" <>\"'?#`{}&")
    assert words.topic_of(unquote(path.removeprefix("/topics/"))) == topic


@pytest.mark.parametrize("name", ["s", "a/b", "/10.0.0.1:5 & #%2F?", HOSTILE, LONG])
def test_the_address_of_a_subscription_or_connection_leads_back_to_it(name):
    path, _, query = words.why_subscription_path(ORDERS, name, "?last=60").partition("?")
    assert parse_qs(query) == {"last": ["60"], "subscription": [name]}
    assert f"/why{path.removeprefix('/why-subscription')}" == words.why_path(ORDERS)
    assert words.why_subscription_path(ORDERS, name).endswith(f"?{query.partition('&')[2]}")
    connection = words.why_connection_path("b1", name)
    assert not set(connection) & set(" <>\"'?#`{}&")
    assert unquote(connection) == f"/why-connection/b1/{name}"


def test_every_reason_is_in_words():
    assert words.held_by(words.HeldReason.GROUP_BLOCKED) == "the group is blocked: its quota is 0"
    assert all(map(words.held_by, words.HeldReason))


@pytest.mark.parametrize(
    ("value", "top"), [(0, 1), (0.3, 1), (1.1, 1.5), (10, 10), (11, 15), (799, 1000), (2001, 2500)]
)
def test_the_scale_of_a_chart_ends_with_a_round_number(value, top):
    assert ceiling(value) == top


def test_areas_are_stacked_and_lines_have_gaps():
    chart = Chart(
        "t", "messages/s", SPAN, (Course("a", "allowed", (1, 0, 0, 0)), Course("b", "held", (3, 0, 0, 0))),
        (Course("l", "limit-1", (None, 2, 2, None)),),
    )  # fmt: skip
    assert (chart.highest, chart.top, chart.is_empty) == (4, 4, False)
    (_, allowed), (_, held), (_, line) = chart.paths()
    assert allowed.startswith("M0.0,75.0 250.0,75.0 250.0,100.0")
    assert held.startswith("M0.0,0.0 250.0,0.0 ")
    assert line == "M250.0,50.0 500.0,50.0 500.0,50.0 750.0,50.0"
    assert [values for _, values in chart.numbers(1)] == [(0, 0, None)]


def test_what_holds_until_the_next_change_is_a_course():
    assert held_on(SPAN, [(-5, 7.0), (1_500_000, None), (2_000_000, 3.0)]) == (7.0, None, 3.0, 3.0)
    assert course("c", "k", SPAN, {0: 8}).values == (8, 0, 0, 0)


def test_commands_and_literals_are_quoted():
    assert text("o'clock") == "'o''clock'"
    assert _quoted('SELECT "$a" `b` \\') == '"SELECT \\"\\$a\\" \\`b\\` \\\\"'
    assert _quoted("a != 'b'") == "'a != '\"'\"'b'\"'\"''"


@pytest.mark.parametrize(
    ("topic", "short"), [(ORDERS, "acme/shop/orders"), ("non-persistent://a/b/c", "non-persistent://a/b/c"), ("k", "k")]
)
def test_tables_leave_out_the_scheme_that_nearly_all_topics_have(topic, short):
    assert words.short_topic(topic) == short
