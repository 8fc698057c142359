"""Dispatches against the levels of broker, topic, subscription or replicator, and group (rate-limiters 6, 7)."""

from dataclasses import replace

import pytest

from headgate.core.numbers import SECOND_NS
from unit.throttle.domains import changes_block, dispatches_block, step_through, tick_block
from unit.throttle.level_runs import (
    ADMITTED,
    DELAYS,
    HELD,
    MS_US,
    OFFERED,
    REPLICATOR,
    T0,
    T1,
    T2,
    both_forms,
    both_traffics,
    level,
    of_broker,
    of_group,
    of_replicators,
    of_subscriptions,
    of_topics,
    run,
    told,
    total,
)
from unit.throttle.rows import BROKER, SECOND_US, dispatch

LEVELS = ([of_broker(10)], [of_topics(10)], [of_subscriptions(10)], of_group(10))
MINUTE_US = 60 * SECOND_US


@both_forms
@both_traffics
@pytest.mark.parametrize("first", range(4), ids=["broker", "topic", "subscription", "group"])
def test_the_first_level_without_a_permit_holds_a_read_back(form, rules, first):
    changes = [change for level in LEVELS[first:] for change in level]
    outcome = run([dispatch(0, messages=10), dispatch(1, seq=1)], changes, rules, form, 2)

    assert [(0, 2, 1, *(int(place == first) for place in range(4)))] == told(outcome, "reads", "allowed_reads", *HELD)


@both_forms
@both_traffics
@pytest.mark.parametrize("last", range(1, 4), ids=["topic", "subscription", "group"])
def test_a_level_that_has_permits_lets_the_next_one_decide(form, rules, last):
    wide = [of_broker(1000), of_topics(1000), of_subscriptions(1000)][:last]
    outcome = run([dispatch(0, messages=10), dispatch(1, seq=1)], [*wide, *LEVELS[last]], rules, form, 2)

    assert tuple(int(place == last) for place in range(4)) == total(outcome, *HELD)


@both_forms
@both_traffics
@pytest.mark.parametrize(
    ("rates", "amounts", "held"),
    [
        ((10, 0), (10, 0), 1),
        ((0, 50), (10, 50), 1),
        ((10, 50), (9, 50), 1),
        ((10, 50), (9, 49), 0),
        ((0, 0), (9, 9), 0),
    ],
)
def test_a_permit_is_needed_in_every_limited_dimension(form, rules, rates, amounts, held):
    first = dispatch(0, messages=amounts[0], bytes_=amounts[1])
    outcome = run([first, dispatch(1, seq=1)], [of_topics(*rates)], rules, form, 2)

    assert (held,) == total(outcome, "held_by_topic")


@both_forms
@both_traffics
def test_what_nothing_limits_is_counted_and_leaves_no_level(form, rules):
    rows = [dispatch(0, messages=10**9, bytes_=7), dispatch(SECOND_US, T1, seq=1, subscription=REPLICATOR)]
    outcome = run(rows, [], rules, form, SECOND_US)
    names = ("reads", "messages", "bytes", "allowed_reads", "allowed_messages", "allowed_bytes", *HELD, *DELAYS)

    assert [(0, 1, 10**9, 7, 1, 10**9, 7, *[0] * 7), (1, 1, 1, 0, 1, 1, 0, *[0] * 7)] == told(outcome, *names)
    assert [] == outcome.state.domains[BROKER].dispatch.keys.to_pylist()


@both_forms
def test_a_delivery_is_charged_to_every_level_also_where_one_holds_it_back(form):
    """10 a second: 25 leave -15, at 1.5 s nothing, and 5 more -5; the next step comes later than 2.5 s."""
    times = [(0, 25), (1500, 5), (2500, 0), (2501, 1)]
    rows = [dispatch(ms * MS_US, seq=seq, messages=messages) for seq, (ms, messages) in enumerate(times)]
    outcome = run(rows, [of_broker(1000), of_topics(10)], ADMITTED, form, 3 * SECOND_US)

    assert [(0, 1, 1, 0), (1, 1, 0, 1), (2, 2, 1, 1)] == told(outcome, "reads", "allowed_reads", "held_by_topic")
    assert [4, 0] == level(outcome, "balance")
    assert (0, 0, 0) == total(outcome, *DELAYS)
    assert (31, 26) == total(outcome, "messages", "allowed_messages")


@both_forms
def test_a_read_that_is_held_is_charged_nowhere_and_starts_at_a_retry_a_second_later(form):
    rows = [dispatch(0, messages=15), dispatch(300 * MS_US, seq=1, messages=3, bytes_=2)]
    changes = [of_broker(1000), of_topics(10)]
    waiting = run(rows, changes, OFFERED, form, 1299 * MS_US, finish=False)
    outcome = run(rows, changes, OFFERED, form, 2 * SECOND_US)
    names = ("reads", "messages", "allowed_reads", "allowed_messages", "allowed_bytes", "held_by_topic", *DELAYS)

    assert ([985, 0], [-5, 0]) == (level(waiting, "balance", "broker"), level(waiting, "balance"))
    assert [(0, 2, 18, 1, 15, 0, 1, 0, 0, 0), (1, 0, 0, 1, 3, 2, 0, 1, SECOND_NS, SECOND_NS)] == told(outcome, *names)


@both_forms
def test_a_read_is_retried_every_second_and_counts_as_held_once(form):
    """-15 at 0.3 s, -2 at the retry of 1.3 s; that of 2.3 s comes at the step's own instant, too early."""
    rows = [dispatch(0, messages=25), dispatch(300 * MS_US, seq=1)]
    outcome = run(rows, [of_topics(10)], OFFERED, form, 4 * SECOND_US)

    assert [(0, 1, 0), (3, 0, 3 * SECOND_NS)] == told(outcome, "held_by_topic", "delay_ns")


@both_forms
def test_reads_that_come_behind_one_that_waits_are_held_by_what_holds_that(form):
    """The retry of 1.3 s has -5 + 13: it starts all three."""
    rows = [dispatch(0, messages=15)]
    rows += [dispatch(ms * MS_US, seq=ms, messages=2) for ms in (300, 500, 1299)]
    outcome = run(rows, [of_topics(10)], OFFERED, form, 2 * SECOND_US)
    names = ("reads", "held_by_topic", "allowed_reads", *DELAYS)

    assert [(0, 3, 2, 1, 0, 0, 0), (1, 1, 1, 3, 3, 1_801_000_000, SECOND_NS)] == told(outcome, *names)


@both_forms
def test_a_read_can_wait_for_one_level_after_the_other(form):
    """At the retry of 1.3 s the broker has permits again, the subscription not before that of 2.3 s."""
    changes = [of_broker(10), of_subscriptions(10, period_s=2)]
    rows = [dispatch(0, messages=10), dispatch(300 * MS_US, seq=1, messages=1)]
    at_first = run(rows, changes, OFFERED, form, 1299 * MS_US, finish=False)
    later = run(rows, changes, OFFERED, form, 1300 * MS_US, finish=False)
    outcome = run(rows, changes, OFFERED, form, MINUTE_US)

    assert [1] == at_first.state.domains[BROKER].dispatch.subscription_held_by.tolist()
    assert [3] == later.state.domains[BROKER].dispatch.subscription_held_by.tolist()
    assert [(0, 1, 0, 0), (2, 0, 0, 2 * SECOND_NS)] == told(
        outcome, "held_by_broker", "held_by_subscription", "delay_ns"
    )


@both_forms
@pytest.mark.parametrize("period_s", [1, 3, 3600])
def test_permits_come_back_in_steps_of_more_than_a_period(form, period_s):
    times = [0, period_s * SECOND_US, period_s * SECOND_US + 1]
    rows = [dispatch(at_us, seq=seq, messages=5 * (seq != 1)) for seq, at_us in enumerate(times)]
    outcome = run(rows, [of_topics(5, period_s=period_s)], ADMITTED, form, times[-1])

    assert (3, 2, 1) == total(outcome, "reads", "allowed_reads", "held_by_topic")
    assert [0, 0] == level(outcome, "balance")


@both_forms
@pytest.mark.parametrize(
    ("changes", "held"),
    [
        ([of_subscriptions(1), *of_group(1)], (0, 0, 0, 0)),
        ([of_subscriptions(1), of_replicators(2)], (0, 0, 1, 0)),
        ([of_topics(1), of_replicators(1000)], (0, 1, 0, 0)),
        ([of_broker(1)], (1, 0, 0, 0)),
    ],
    ids=["neither subscription nor group", "its own", "topic", "broker"],
)
def test_a_replicator_has_a_level_of_its_own_in_place_of_a_subscriptions_and_no_group(form, changes, held):
    rows = [dispatch(at_us, seq=at_us, messages=2, subscription=REPLICATOR) for at_us in range(2)]

    assert held == total(run(rows, changes, ADMITTED, form, 2), *HELD)


@both_forms
def test_subscriptions_of_a_topic_and_of_others_have_a_level_each(form):
    places = [(T0, "a"), (T0, "b"), (T1, "a")]
    rows = [dispatch(0, topic, seq=seq, messages=9, subscription=name) for seq, (topic, name) in enumerate(places)]
    outcome = run(rows, [of_subscriptions(10)], ADMITTED, form, 1)

    assert [[1, 0]] * 3 == [level(outcome, "balance", "subscription", *place) for place in places]


@both_forms
def test_a_brokers_level_is_that_of_all_its_topics(form):
    rows = [dispatch(0, T0, messages=6), dispatch(1, T1, seq=1, messages=6), dispatch(2, T2, seq=2)]
    outcome = run(rows, [of_broker(10)], ADMITTED, form, 2)

    assert (3, 2, 1) == total(outcome, "reads", "allowed_reads", "held_by_broker")


@both_forms
@pytest.mark.parametrize(
    ("options", "of_row", "balance"),
    [
        ({}, {"entries": 2}, 6),
        ({"charges_entries": True}, {"entries": 2}, 8),
        ({}, {"caught_up": True}, 6),
        ({"throttles_caught_up": False}, {"caught_up": True}, 10),
        ({"throttles_caught_up": False}, {}, 6),
        ({}, {"filtered": True}, 10),
        ({"filtered_entries": True}, {"filtered": True}, 6),
    ],
)
@both_traffics
def test_what_a_dispatch_of_4_messages_takes_of_10(form, rules, options, of_row, balance):
    rows = [dispatch(0, messages=0), dispatch(1, seq=1, messages=4, **of_row)]
    outcome = run(rows, [of_topics(10)], replace(rules, **options), form, 1)

    assert [balance, 0] == level(outcome, "balance")


@both_forms
@both_traffics
def test_a_read_of_consumers_that_are_caught_up_needs_no_permit_where_they_are_exempt(form, rules):
    rows = [dispatch(0, messages=10), dispatch(1, seq=1, messages=3, caught_up=True)]
    rules = replace(rules, throttles_caught_up=False)
    changes = [of_broker(10), of_topics(10), of_subscriptions(10), *of_group(10)]
    outcome = run(rows, changes, rules, form, 1)

    assert (2, 2, 13) == total(outcome, "reads", "allowed_reads", "allowed_messages")
    assert [0, 0] == level(outcome, "balance")


@both_forms
@both_traffics
def test_filtered_entries_that_do_not_count_are_no_reads(form, rules):
    outcome = run([dispatch(0, filtered=True)], [of_topics(10)], rules, form, SECOND_US)

    assert [] == outcome.dispatch_decisions


@both_forms
def test_debt_is_bounded_by_tokens_of_the_period(form):
    """500 ms of 10 tokens in 2 s are 2."""
    rules = replace(ADMITTED, max_debt_ms=500)
    outcome = run([dispatch(0, messages=99)], [of_topics(10, period_s=2)], rules, form, 1)

    assert [-2, 0] == level(outcome, "balance")


@both_forms
@pytest.mark.parametrize(("ms", "held"), [(999, True), (1000, True), (1999, True), (2000, False)], ids=str)
def test_a_classic_window_renews_at_the_end_of_each_period_and_keeps_what_was_taken_too_much(form, ms, held):
    """25 of 10 are taken: 15 after the first renewal, 5 after the second."""
    rows = [dispatch(0, messages=25), dispatch(ms * MS_US, seq=1)]
    outcome = run(rows, [of_topics(10)], replace(ADMITTED, classic=True), form, 2 * SECOND_US)

    assert (int(held),) == total(outcome, "held_by_topic")


@both_forms
def test_a_classic_window_lets_a_read_start_at_its_retry(form):
    rows = [dispatch(0, messages=25), dispatch(300 * MS_US, seq=1)]
    outcome = run(rows, [of_topics(10)], replace(OFFERED, classic=True), form, 3 * SECOND_US)

    assert [(0, 1, 0), (2, 0, 2 * SECOND_NS)] == told(outcome, "held_by_topic", "delay_ns")


@both_forms
def test_groups_have_token_buckets_beside_classic_levels(form):
    rows = [dispatch(0, messages=10), dispatch(SECOND_US, seq=1)]
    outcome = run(rows, [of_topics(10), *of_group(10)], replace(ADMITTED, classic=True), form, SECOND_US)

    assert (0, 1) == total(outcome, "held_by_topic", "held_by_group")


@both_forms
@both_traffics
def test_a_second_is_written_when_it_has_ended_however_many_batches_it_took(form, rules):
    batches = [
        [dispatches_block([dispatch(0)]), tick_block(500 * MS_US)],
        [dispatches_block([dispatch(600 * MS_US, seq=1, messages=4)]), tick_block(SECOND_US - 1)],
    ]
    still_open, ended = (
        step_through(batches, rules, form),
        step_through([*batches, [tick_block(SECOND_US)]], rules, form),
    )

    assert [] == still_open.dispatch_decisions
    assert still_open.state.domains[BROKER].is_open
    assert [(0, 2, 5, 2)] == told(ended, "reads", "messages", "allowed_reads")
    assert {} == ended.state.domains, "nothing is left to remember"


@both_forms
def test_the_end_of_a_run_writes_open_seconds_as_far_as_they_went_and_a_later_run_the_rest(form):
    batches = [
        [dispatches_block([dispatch(0)])],
        [tick_block(500 * MS_US, finish=True)],
        [dispatches_block([dispatch(600 * MS_US, seq=1, messages=4)]), tick_block(SECOND_US)],
    ]

    assert [(0, 1), (0, 4)] == sorted(told(step_through(batches, ADMITTED, form), "messages"))


@both_forms
def test_a_read_that_waits_as_a_run_ends_starts_in_a_later_one(form):
    rows = [dispatch(0, messages=10), dispatch(1, seq=1, messages=2)]
    batches = [[changes_block([of_topics(10)]), dispatches_block(rows)], [tick_block(2, finish=True)]]
    names = ("reads", "allowed_reads", "delay_ns")

    assert [(0, 2, 1, 0)] == told(step_through(batches, OFFERED, form), *names)
    batches += [[tick_block(SECOND_US + 1)], [tick_block(SECOND_US + 1, finish=True)]]
    assert [(0, 2, 1, 0), (1, 0, 1, SECOND_NS)] == told(step_through(batches, OFFERED, form), *names)


@both_forms
def test_a_delivery_that_another_level_holds_back_is_charged_to_the_group_without_a_read_of_it(form):
    """The group's 2 a second: 3 at 0 leave -2, and the one at 1.5 s, which its topic holds, -3. The next step of more
    than a second counts from 0, so at 2.4 s it has earned 4.
    """
    rows = [
        dispatch(0, T0),
        dispatch(0, T1, seq=1, messages=3),
        dispatch(1_500 * MS_US, T0, seq=2),
        dispatch(2_400 * MS_US, T1, seq=3),
    ]
    changes = [*of_group(2), of_topics(1, period_s=10, scope="topic", name=T0)]
    outcome = run(rows, changes, ADMITTED, form, 3 * SECOND_US)
    rows = [row for row in outcome.dispatch_decisions if row["held_by_topic"] or row["held_by_group"]]

    assert [(T0, 1, 0)] == [(row["topic"], row["held_by_topic"], row["held_by_group"]) for row in rows]
