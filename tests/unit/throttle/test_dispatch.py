"""Dispatch against a group's level, step by step: deliveries, reads that wait, limits and moves (rate-limiters 6)."""

from dataclasses import replace

import pytest

from headgate.core.numbers import MAX
from headgate.throttle.array_form import run_arrays
from headgate.throttle.form import Rules
from headgate.throttle.key_operator import step_key
from headgate.throttle.schemas import PROGRESS
from headgate.throttle.state import KeyState
from unit.throttle.domains import (
    FORMS,
    attach,
    changes_block,
    dispatch_limit,
    dispatches_block,
    events_block,
    limit,
    picture,
    rows_in,
    step_through,
    tick_block,
)
from unit.throttle.rows import BROKER, SECOND_US, START_US, TOPICS, dispatch, event

T0, T1, T2, T3 = TOPICS
MS_US = 1000
START_MS = START_US // 1000
ADMITTED = Rules(slot_ms=250, epoch_ms=1000)
OFFERED = replace(ADMITTED, offered=True)
GOLD = [attach(T0, "gold"), attach(T1, "gold")]
TEN = dispatch_limit("gold", 10)
both_forms = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)


def run(rows, changes, rules, form, until_us):
    blocks = [changes_block([*GOLD, *changes]), dispatches_block(rows), tick_block(until_us)]
    return step_through([blocks], rules, form)


def used(outcome):
    """Usage as (ms after the start, group, admitted and offered messages, topics)."""
    rows = sorted(outcome.group_usage, key=lambda row: (row["at_ms"], row["group"]))
    assert {1} >= {row["class"] for row in rows}
    return [
        (row["at_ms"] - START_MS, row["group"], row["admitted_msgs"], row["offered_msgs"], row["topics"])
        for row in rows
    ]


def waited(outcome):
    """Waits as (group, from and until in ms after the start, throttled messages, bytes)."""
    assert {1} >= {row["class"] for row in outcome.group_waits}
    columns = ("group", "from_ms", "until_ms", "throttled_msgs", "throttled_bytes")
    rows = [tuple(row[name] for name in columns) for row in outcome.group_waits]
    return [(group, start - START_MS, end - START_MS, *flags) for group, start, end, *flags in rows]


def waiting(outcome):
    """Who waits, in the order of retries: (us after the start, topic, subscription)."""
    line = picture(outcome.state)[BROKER]["dispatch"]
    return [(due_ns // 1000 - START_US, *who) for due_ns, who in zip(line["due_ns"], line["line"], strict=True)]


def level(outcome, group="gold"):
    """Balances of a level, messages and bytes."""
    state = outcome.state.domains[BROKER].dispatch
    return state.levels["balance"][state.keys.to_pylist().index(f"@group/{group}")].tolist()


@both_forms
@pytest.mark.parametrize("rules", [ADMITTED, OFFERED])
def test_what_a_group_does_not_limit_is_counted_alone(form, rules):
    rows = [dispatch(0, T0, messages=10**9), dispatch(300 * MS_US, T1, seq=1, messages=5), dispatch(1, T3, seq=2)]
    outcome = run(rows, [], rules, form, SECOND_US)

    assert [(0, "gold", 10**9, 10**9, 1), (250, "gold", 5, 5, 1)] == used(outcome)
    assert [] == waited(outcome)
    assert ([], []) == (outcome.marks, outcome.usage)


@both_forms
@pytest.mark.parametrize("rules", [ADMITTED, OFFERED])
def test_replicators_are_neither_charged_nor_counted(form, rules):
    rows = [dispatch(0, T0, messages=50, subscription="pulsar.repl.west"), dispatch(1, T0, seq=1, messages=10)]
    outcome = run(rows, [TEN], rules, form, 2)

    assert [(0, "gold", 10, 10, 1)] == used(outcome)
    assert [0, 0] == level(outcome)


@both_forms
def test_deliveries_are_charged_into_debt_and_the_wait_ends_with_the_step_that_refills(form):
    """10 a second: 25 leave -15. A step later than a second that earns 16 comes after 1.6 s."""
    outcome = run([dispatch(0, T0, messages=25)], [TEN], ADMITTED, form, 5 * SECOND_US)

    assert [("gold", 0, 1600, True, False)] == waited(outcome)
    assert [-15, 0] == level(outcome)


@both_forms
def test_a_refill_takes_strictly_more_than_a_second(form):
    outcome = run([dispatch(0, T0, messages=10)], [TEN], ADMITTED, form, 5 * SECOND_US)

    assert [("gold", 0, 1001, True, False)] == waited(outcome)


@both_forms
def test_a_delivery_within_the_step_adds_to_the_debt(form):
    rows = [dispatch(0, T0, messages=10), dispatch(SECOND_US, T0, seq=1, messages=10)]

    assert [("gold", 0, 1100, True, False)] == waited(run(rows, [TEN], ADMITTED, form, 5 * SECOND_US))


@both_forms
def test_both_dimensions_cause_waits(form):
    rows = [dispatch(0, T0, messages=10, bytes_=5), dispatch(500 * MS_US, T1, seq=1, messages=0, bytes_=95)]
    outcome = run(rows, [dispatch_limit("gold", 10, 100)], ADMITTED, form, 5 * SECOND_US)

    assert [("gold", 0, 500, True, False), ("gold", 500, 1001, True, True)] == waited(outcome)


@both_forms
def test_debt_is_bounded_as_configured(form):
    outcome = run([dispatch(0, T0, messages=MAX)], [TEN], replace(ADMITTED, max_debt_ms=500), form, 3 * SECOND_US)

    assert [-5, 0] == level(outcome)
    assert [("gold", 0, 1001, True, False)] == waited(outcome)


@both_forms
def test_a_read_without_permits_starts_at_a_retry_a_second_later(form):
    """The level is full at 0. Its first step is after 1 s: the retry at 1.1 s finds it, charged with 15 - 10."""
    rows = [dispatch(0, T0, messages=15), dispatch(100 * MS_US, T1, seq=1, messages=3)]
    outcome = run(rows, [TEN], OFFERED, form, 3 * SECOND_US)

    assert [(0, "gold", 15, 18, 2), (1000, "gold", 3, 0, 1)] == used(outcome)
    assert [("gold", 100, 1100, True, False)] == waited(outcome)
    assert [3, 0] == level(outcome)


@both_forms
def test_a_retry_exactly_a_second_after_the_refill_comes_too_early(form):
    rows = [dispatch(0, T0, messages=15), dispatch(0, T1, seq=1, messages=3)]

    assert [(0, "gold", 15, 18, 2), (2000, "gold", 3, 0, 1)] == used(run(rows, [TEN], OFFERED, form, 3 * SECOND_US))


@both_forms
def test_reads_of_a_subscription_wait_behind_its_first_and_start_at_one_instant_while_permits_last(form):
    """At 1.1 s there are -1 + 11: reads of 6 and 5 start, the one of 1 waits another second."""
    amounts = [(0, 11), (100, 6), (200, 5), (300, 1)]
    rows = [dispatch(ms * MS_US, T0, seq=seq, messages=messages) for seq, (ms, messages) in enumerate(amounts)]
    outcome = run(rows, [TEN], OFFERED, form, 1200 * MS_US)
    state = outcome.state.domains[BROKER].dispatch

    assert [(0, "gold", 11, 22, 1), (250, "gold", 0, 1, 0), (1000, "gold", 11, 0, 1)] == used(outcome)
    assert [(2100 * MS_US, T0, "s")] == waiting(outcome)
    assert [1] == state.reads["messages"].tolist()


@both_forms
def test_subscriptions_do_not_wait_behind_each_other(form):
    """Of two that wait, the read of the one is 9 and takes all; of one more, which comes as a step is due, 3 start."""
    rows = [
        dispatch(0, T0, messages=15),
        dispatch(100 * MS_US, T0, seq=1, messages=30, subscription="a"),
        dispatch(1050 * MS_US, T0, seq=2, messages=3, subscription="b"),
    ]
    outcome = run(rows, [TEN], OFFERED, form, 1099 * MS_US)

    assert [(0, "gold", 15, 45, 1), (1000, "gold", 3, 3, 1)] == used(outcome)
    assert [(1100 * MS_US, T0, "a")] == waiting(outcome)


@both_forms
def test_retries_of_one_instant_go_in_the_order_in_which_reads_were_skipped(form):
    rows = [dispatch(0, T0, messages=11)]
    rows += [dispatch(100 * MS_US, T1, seq=seq, messages=9, subscription=name) for seq, name in ((2, "b"), (1, "c"))]
    outcome = run([*rows, dispatch(100 * MS_US, T0, seq=3, messages=9)], [TEN], OFFERED, form, 1100 * MS_US)

    assert [(0, "gold", 11, 38, 2), (1000, "gold", 18, 0, 1)] == used(outcome)
    assert [(2100 * MS_US, T0, "s")] == waiting(outcome)


@both_forms
@pytest.mark.parametrize("block", [dispatch_limit("gold", 0), dispatch_limit("gold", None, 0)])
def test_a_blocked_group_lets_no_read_start_until_a_retry_after_the_change(form, block):
    changes = [block, dispatch_limit("gold", at_us=5 * SECOND_US, seq=1)]
    outcome = run([dispatch(100 * MS_US, T0, messages=7)], changes, OFFERED, form, 6 * SECOND_US)

    assert [(0, "gold", 0, 7, 1), (5000, "gold", 7, 0, 1)] == used(outcome)
    assert [("gold", 100, 5100)] == [wait[:3] for wait in waited(outcome)]


@both_forms
def test_time_may_leap_while_everything_is_blocked(form):
    years_us = 20 * 365 * 86_400 * SECOND_US
    changes = [dispatch_limit("gold", 0), dispatch_limit("gold", 5, at_us=years_us)]
    rows = [dispatch(0, T0, seq=0), dispatch(300 * MS_US, T1, seq=1)]
    outcome = run(rows, changes, OFFERED, form, years_us + 1)

    assert [(years_us + 300 * MS_US, T1, "s"), (years_us + SECOND_US, T0, "s")] == waiting(outcome)


@both_forms
def test_what_is_delivered_by_a_blocked_group_all_the_same_is_counted(form):
    changes = [dispatch_limit("gold", 0, 100), dispatch_limit("gold", 10, 100, at_us=SECOND_US, seq=1)]
    outcome = run([dispatch(0, T0, messages=7, bytes_=30)], changes, ADMITTED, form, 3 * SECOND_US)

    assert [(0, "gold", 7, 7, 1)] == used(outcome)
    assert [("gold", 0, 2001, True, False)] == waited(outcome)
    assert [0, 70] == level(outcome)


@both_forms
def test_a_changed_rate_neither_refills_nor_forgives(form):
    changes = [TEN, dispatch_limit("gold", 1000, at_us=500 * MS_US, seq=1)]
    outcome = run([dispatch(0, T0, messages=25)], changes, ADMITTED, form, 900 * MS_US)

    assert [-15, 0] == level(outcome)
    assert [1000, 0] == outcome.state.domains[BROKER].dispatch.levels["rate"][0].tolist()


@both_forms
def test_a_limit_that_is_lifted_ends_the_wait(form):
    changes = [TEN, dispatch_limit("gold", at_us=500 * MS_US, seq=1)]

    assert [("gold", 0, 500, True, False)] == waited(
        run([dispatch(0, T0, messages=25)], changes, ADMITTED, form, SECOND_US)
    )


@both_forms
def test_limits_of_publishes_and_of_dispatches_do_not_know_each_other(form):
    changes = [*GOLD, limit("group", "gold", 3), TEN]
    blocks = [
        changes_block(changes),
        events_block([event(0, T0, messages=5)]),
        dispatches_block([dispatch(0, T0, messages=5)]),
        tick_block(1),
    ]
    outcome = step_through([blocks], ADMITTED, form)

    assert [0, 1] == sorted(row["class"] for row in outcome.group_usage)
    assert [0] == [row["class"] for row in outcome.group_waits]
    assert [5, 0] == level(outcome)
    assert 1 == len(outcome.marks)


@both_forms
def test_a_topic_that_moves_is_charged_to_the_other_group_from_then_on(form):
    rows = [dispatch(at_us, T0, seq=at_us, messages=4) for at_us in (0, 1, 2)]
    changes = [TEN, dispatch_limit("iron", 100), attach(T0, "iron", at_us=1), attach(T0, None, at_us=2)]
    outcome = run(rows, changes, ADMITTED, form, SECOND_US)

    assert [(0, "gold", 4, 4, 1), (0, "iron", 4, 4, 1)] == used(outcome)
    assert ([6, 0], [96, 0]) == (level(outcome), level(outcome, "iron"))


@both_forms
@pytest.mark.parametrize(
    ("group", "after"), [("iron", [(500, "iron", 3, 0, 1)]), (None, []), ("shut", [])], ids=["free", "none", "blocked"]
)
def test_withheld_reads_are_tried_at_the_instant_at_which_their_topic_moves(form, group, after):
    rows = [dispatch(0, T1, messages=15), dispatch(100 * MS_US, T0, seq=1, messages=3)]
    changes = [TEN, dispatch_limit("shut", 0), attach(T0, group, at_us=500 * MS_US)]
    outcome = run(rows, changes, OFFERED, form, 600 * MS_US)
    waits = [("gold", 100, 500, True, False)] + [("shut", 500, 600, True, False)] * (group == "shut")

    assert [(0, "gold", 15, 18, 2), *after] == used(outcome)
    assert waits == waited(outcome)
    assert [(1500 * MS_US, T0, "s")] * (group == "shut") == waiting(outcome)


@both_forms
def test_who_moves_is_retried_at_once_and_takes_its_place_in_the_line_of_the_other_group(form):
    rows = [
        dispatch(0, T0, messages=11),
        dispatch(100 * MS_US, T1, seq=1, messages=3),
        dispatch(200 * MS_US, T2, seq=2, messages=3, subscription="other"),
    ]
    changes = [TEN, dispatch_limit("shut", 0), attach(T2, "shut"), attach(T2, "gold", at_us=500 * MS_US)]
    outcome = run(rows, changes, OFFERED, form, 600 * MS_US)

    assert [(1100 * MS_US, T1, "s"), (1500 * MS_US, T2, "other")] == waiting(outcome)


@both_forms
def test_a_late_row_acts_at_the_clock(form):
    blocks = [
        [changes_block([*GOLD, TEN]), dispatches_block([dispatch(0, T0)]), tick_block(5 * SECOND_US)],
        [dispatches_block([dispatch(1, T0, seq=1, messages=9)]), tick_block(5 * SECOND_US)],
    ]
    outcome = step_through(blocks, ADMITTED, form)

    assert [(0, "gold", 1, 1, 1), (5000, "gold", 9, 9, 1)] == used(outcome)


def test_a_dispatch_moves_the_clock_and_is_accounted_like_a_publish():
    state = KeyState()
    blocks = [changes_block([*GOLD, TEN]), events_block([event(0)]), dispatches_block([dispatch(7), dispatch(9)])]
    first = step_key("key", state, blocks, OFFERED, run_arrays)
    later = step_key("key", state, [dispatches_block([dispatch(3, messages=30)])], OFFERED, run_arrays)
    last = step_key("key", state, [dispatches_block([dispatch(9)])], OFFERED, run_arrays)

    expected = [(BROKER, 3, 0, START_US + 9, 0), (BROKER, 1, 1, START_US + 9, 0), (BROKER, 1, 0, START_US + 9, 1)]
    columns = ("broker", "rows", "late", "event_time_us", "waiting")
    assert expected == [
        tuple(row[name] for name in columns)
        for out in (first, later, last)
        for row in rows_in(out, "progress", PROGRESS)
    ]
    assert state.domains[BROKER].is_open


def test_a_topic_that_only_dispatches_has_no_publish_limiter():
    blocks = [changes_block([*GOLD, TEN, limit("default", messages=1)]), dispatches_block([dispatch(0, messages=50)])]
    outcome = step_through([blocks, [tick_block(3 * SECOND_US, finish=True)]], ADMITTED)

    assert ([], []) == (outcome.usage, outcome.state.domains[BROKER].keys.to_pylist())


def test_without_attachments_nothing_is_kept_of_dispatches():
    blocks = [changes_block([TEN]), dispatches_block([dispatch(0, messages=50)])]
    state = step_through([blocks], OFFERED).state.domains[BROKER].dispatch

    assert [] == state.topics.to_pylist()


def test_what_was_not_attached_is_looked_up_when_that_changes():
    blocks = [
        [changes_block([attach(T1, "gold"), TEN]), dispatches_block([dispatch(0, T0), dispatch(1, T3)])],
        [changes_block([attach(T0, "gold", at_us=5)]), dispatches_block([dispatch(5, T0, messages=2)])],
    ]

    assert [(0, "gold", 2, 2, 1)] == used(step_through(blocks, ADMITTED))
