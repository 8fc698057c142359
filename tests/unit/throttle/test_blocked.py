"""A group with a rate of 0 lets nothing of its topics in, and all of it once that is lifted (resource-groups 1)."""

from dataclasses import replace

import pytest

from headgate.throttle.form import Rules
from unit.throttle.domains import FORMS, attach, limit, step_through, whole
from unit.throttle.rows import BROKER, SECOND_US, START_US, TOPICS, event

T0, T1 = TOPICS[:2]
ATTACHED = [attach(T0, "gold")]
BLOCK = limit("group", "gold", 0)
MS_US = 1000
both_forms = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
OFFERED = Rules(offered=True, send_timeout_ms=10_000)


def told(outcome):
    """Marks as (ms after the start, producer, seq or None)."""
    return [((mark["at_ns"] - START_US * 1000) / 1e6, mark["producer"], mark["seq"]) for mark in outcome.marks]


def counted(outcome, *columns):
    return [sum(row[column] for row in outcome.usage) for column in columns]


def lifted(at_us, messages=None):
    return limit("group", "gold", messages, at_us=at_us)


@both_forms
@pytest.mark.parametrize("block", [BLOCK, limit("group", "gold", None, 0), limit("group", "gold", 1000, 0)])
def test_what_was_let_in_all_the_same_is_counted_and_marked(form, block):
    rows = [event(0, T0, seq=0, bytes_=1), event(1, T0, seq=1, bytes_=1), event(2, T1, seq=2)]
    outcome = step_through(whole(rows, [*ATTACHED, block], until_us=3 * SECOND_US), Rules(), form)

    assert [0, 1] == [mark["seq"] for mark in outcome.marks]
    assert [2] == outcome.state.domains[BROKER].entry_count.tolist()


@both_forms
@pytest.mark.parametrize("null", [limit("group", "gold"), limit("group", "gold", None, 10**6)])
def test_null_does_not_limit(form, null):
    rows = [event(0, T0, messages=10**9)]

    assert (
        [] == step_through(whole(rows, [*ATTACHED, replace(BLOCK, seq=0), replace(null, seq=1)]), Rules(), form).marks
    )


@both_forms
def test_arrivals_of_a_blocked_group_wait_and_go_in_order_when_it_is_lifted(form):
    rows = [
        event(at_us, T0, seq=seq, producer=name) for seq, (at_us, name) in enumerate([(0, "p"), (1, "p"), (2, "q")])
    ]
    changes = [*ATTACHED, BLOCK, lifted(SECOND_US)]
    outcome = step_through(whole(rows, changes, until_us=2 * SECOND_US), OFFERED, form)

    assert [(0, "p", 0), (0.002, "q", 2), (1000, "p", None), (1000, "q", None)] == told(outcome)
    assert [3, 3, 3, 2, 2] == counted(
        outcome, "publishes", "admitted_publishes", "delayed_publishes", "throttled_publishes", "throttled_by_group"
    )


@both_forms
def test_arrivals_of_a_blocked_group_fail_after_the_send_time_out(form):
    rows = [event(0, T0), event(1, T0, seq=1)]
    outcome = step_through(whole(rows, [*ATTACHED, BLOCK], until_us=11 * SECOND_US), OFFERED, form)

    assert [0, 2] == counted(outcome, "admitted_publishes", "failed_publishes")


@both_forms
def test_a_blocked_group_that_is_limited_again_earns_from_then_on(form):
    rows = [event(0, T0, seq=0, messages=5), event(SECOND_US, T0, seq=1, messages=5)]
    changes = [*ATTACHED, BLOCK, lifted(5 * SECOND_US, messages=100)]
    outcome = step_through(whole(rows, changes, until_us=7 * SECOND_US), OFFERED, form)

    assert [(0, "p", 0), (5016, "p", None), (5016, "p", 1)][:1] == told(outcome)[:1]
    assert 5000 < told(outcome)[1][0] <= 5020
    assert [2] == counted(outcome, "admitted_publishes")


@both_forms
def test_who_a_topic_limiter_releases_into_a_blocked_group_waits_there(form):
    rows = [event(0, T0, seq=0, messages=15), event(1, T0, seq=1), event(2, T0, seq=2)]
    changes = [
        *ATTACHED,
        limit("default", messages=10),
        limit("group", "gold", 0, at_us=100 * MS_US),
        lifted(SECOND_US),
    ]
    outcome = step_through(whole(rows, changes, until_us=2 * SECOND_US), OFFERED, form)

    assert [(0, "p", 0), (600, "p", None), (600, "p", 1), (1000, "p", None)] == told(outcome)
    assert [3] == counted(outcome, "admitted_publishes")


@both_forms
def test_who_moves_into_a_blocked_group_waits_there(form):
    rows = [event(0, T1, seq=0, messages=15), event(1, T1, seq=1)]
    changes = [*ATTACHED, BLOCK, limit("group", "iron", 10), attach(T1, "iron"), attach(T1, "gold", at_us=100 * MS_US)]
    outcome = step_through(whole(rows, changes, until_us=SECOND_US), OFFERED, form)

    assert [(0, "p", 0), (100, "p", None), (100, "p", 1)] == told(outcome)
