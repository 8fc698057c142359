"""Limits of levels of dispatches: which one holds, what a change does, and rates relative to the publish rate."""

from dataclasses import replace

import pytest

from unit.throttle.domains import changes_block, dispatches_block, events_block, limit, step_through, tick_block
from unit.throttle.level_runs import (
    ADMITTED,
    MS_US,
    OFFERED,
    REPLICATOR,
    T0,
    T1,
    both_forms,
    level,
    of_broker,
    of_replicators,
    of_subscriptions,
    of_topics,
    run,
    told,
    total,
)
from unit.throttle.rows import SECOND_US, dispatch, event

KINDS = {
    "topic": (of_topics, "s", ""),
    "subscription": (of_subscriptions, "s", "s"),
    "replicator": (of_replicators, REPLICATOR, REPLICATOR),
}
every_kind = pytest.mark.parametrize("scope", KINDS)
NAMESPACE = {"scope": "namespace", "name": "acme/ns0"}
OTHER_NAMESPACE = {"scope": "namespace", "name": "acme/ns1"}
TOPIC = {"scope": "topic", "name": T0}
STATS = replace(ADMITTED, stats_interval_s=5)


@both_forms
@every_kind
@pytest.mark.parametrize(
    ("places", "expected"),
    [
        ([{}], [1, 0]),
        ([{}, NAMESPACE], [2, 0]),
        ([{}, NAMESPACE, TOPIC], [3, 0]),
        ([{}, TOPIC], [2, 0]),
        ([TOPIC, NAMESPACE, {}], [1, 0]),
        ([OTHER_NAMESPACE, {}], [2, 0]),
        ([OTHER_NAMESPACE], None),
    ],
    ids=["default", "namespace", "topic", "topic without", "in any order", "another's", "another's alone"],
)
def test_a_topics_own_policy_comes_before_its_namespaces_and_that_before_the_default(form, scope, places, expected):
    limited, subscription, name = KINDS[scope]
    changes = [limited(rate, **place) for rate, place in enumerate(places, 1)]
    outcome = run([dispatch(0, T0, messages=0, subscription=subscription)], changes, ADMITTED, form, 1)

    assert expected == level(outcome, "configured", scope, T0, name)


@both_forms
@every_kind
@pytest.mark.parametrize(
    ("rates", "expected"), [((0, 0), [0, 0]), ((None, None), [5, 0]), ((None, 7), [0, 7]), ((9, 0), [9, 0])]
)
def test_a_policy_replaces_the_wider_one_as_a_whole_or_lifts_it_and_one_that_is_gone_does_neither(
    form, scope, rates, expected
):
    limited, subscription, name = KINDS[scope]
    changes = [limited(5), limited(3, **NAMESPACE, at_us=0), limited(*rates, **NAMESPACE, at_us=2)]
    rows = [dispatch(at_us, T0, seq=at_us, messages=0, subscription=subscription) for at_us in (1, 3)]
    outcome = run(rows, changes, ADMITTED, form, 3)

    assert expected == (level(outcome, "configured", scope, T0, name) or [0, 0])


@both_forms
def test_partitions_have_the_policy_of_their_topic_and_a_level_each(form):
    partitions = [f"{T0}-partition-{number}" for number in range(2)]
    rows = [dispatch(0, topic, seq=seq, messages=6) for seq, topic in enumerate(partitions * 2)]
    outcome = run(rows, [of_topics(10, **TOPIC)], ADMITTED, form, 1)

    assert [[-2, 0], [-2, 0]] == [level(outcome, "balance", topic=topic) for topic in partitions]
    assert level(outcome, "balance", topic=T0) is None


@both_forms
@every_kind
@pytest.mark.parametrize(
    ("then", "balance"),
    [
        ((20, 0), [19, 0]),
        ((10, 0), [-1, 0]),
        ((10, 50), [-1, 50]),
        ((10, 0, 2), [9, 0]),
        ((10, 0, 1, True), [9, 0]),
        ((0, 50), [0, 50]),
    ],
    ids=["rate", "none", "the other dimension", "period", "relation", "off"],
)
def test_a_dimension_begins_anew_if_its_rate_or_the_period_or_relation_changes(form, scope, then, balance):
    """All 10 are taken, the limit changes, and one more is taken."""
    limited, subscription, name = KINDS[scope]
    rows = [dispatch(at_us, seq=at_us, messages=n, subscription=subscription) for at_us, n in ((0, 10), (2, 1))]
    outcome = run(rows, [limited(10), limited(*then, at_us=1)], ADMITTED, form, 2)

    assert balance == level(outcome, "balance", scope, T0, name)


@both_forms
def test_a_brokers_level_begins_anew_too(form):
    rows = [dispatch(at_us, seq=at_us, messages=10) for at_us in (0, 2)]
    outcome = run(rows, [of_broker(10), of_broker(11, at_us=1)], ADMITTED, form, 2)

    assert [1, 0] == level(outcome, "balance", "broker")
    assert (2,) == total(outcome, "allowed_reads")


@both_forms
def test_a_level_that_was_off_for_a_time_is_full_when_it_is_asked_again(form):
    changes = [of_topics(10), of_topics(0, at_us=1), of_topics(10, at_us=3)]
    rows = [dispatch(at_us, seq=at_us, messages=10) for at_us in (0, 2, 4)]

    assert [0, 0] == level(run(rows, changes, ADMITTED, form, 4), "balance")


@both_forms
@pytest.mark.parametrize(("classic", "held"), [(True, [0, 1]), (False, [0, 0])], ids=["classic", "token bucket"])
def test_a_changed_rate_forgives_debt_but_of_classic_windows(form, classic, held):
    """The window begins anew with the change at 0.5 s: 25 taken of now 20, of which 5 are left after 1.5 s."""
    rows = [dispatch(0, messages=25), dispatch(1499 * MS_US, seq=1, messages=0), dispatch(1500 * MS_US, seq=2)]
    changes = [of_topics(10), of_topics(20, at_us=500 * MS_US)]
    outcome = run(rows, changes, replace(ADMITTED, classic=classic), form, 2 * SECOND_US)

    assert list(zip((0, 1), held, strict=True)) == told(outcome, "held_by_topic")


@both_forms
@pytest.mark.parametrize(
    "before", [[], [of_topics(5)], [of_topics(5), of_topics(0, at_us=1)]], ids=["none", "not asked yet", "off"]
)
@pytest.mark.parametrize("classic", [True, False])
def test_a_level_that_is_made_after_a_change_has_the_period_of_the_change(form, before, classic):
    """In periods of 2 s: what is taken at 2 us is there again after 2 s, not before."""
    times = [(2, 10), (SECOND_US + 3, 0), (2 * SECOND_US + 1, 0), (2 * SECOND_US + 3, 0)]
    rows = [dispatch(at_us, seq=at_us, messages=messages) for at_us, messages in times]
    first = [dispatch(0, messages=0)] if len(before) == 2 else [dispatch(0, T1, messages=0)]
    changes = [*before, of_topics(10, period_s=2, at_us=2)]
    outcome = run([*first, *rows], changes, replace(ADMITTED, classic=classic), form, 3 * SECOND_US)

    assert (2,) == total(outcome, "held_by_topic")


@both_forms
def test_steps_of_a_changed_level_begin_with_the_change(form):
    """Made anew at 1 us and used up at 0.5 s: the step is due after 1.000001 s, whoever asked before."""
    times = [(0, 10), (500 * MS_US, 20), (SECOND_US + 1, 0), (SECOND_US + 2, 0)]
    rows = [dispatch(at_us, seq=at_us, messages=messages) for at_us, messages in times]
    outcome = run(rows, [of_topics(10), of_topics(20, at_us=1)], ADMITTED, form, 2 * SECOND_US)

    assert [(0, 2, 0), (1, 1, 1)] == told(outcome, "allowed_reads", "held_by_topic")


@both_forms
def test_reads_that_wait_hear_of_a_change_at_their_retry(form):
    rows = [dispatch(0, messages=1000), dispatch(300 * MS_US, seq=1)]
    changes = [of_topics(10), of_topics(20, at_us=500 * MS_US)]

    assert (1_000_000_000,) == total(run(rows, changes, OFFERED, form, 2 * SECOND_US), "delay_ns")


@both_forms
@pytest.mark.parametrize(("at_us", "held"), [(4 * SECOND_US, 1), (5 * SECOND_US, 0), (5 * SECOND_US + 1, 0)])
def test_a_change_that_comes_early_acts_at_its_time_before_the_rows_of_that_instant(form, at_us, held):
    batches = [
        [changes_block([of_topics(1, period_s=3600), of_topics(2, at_us=5 * SECOND_US, seq=1)])],
        [dispatches_block([dispatch(0)])],
        [dispatches_block([dispatch(at_us, seq=1)]), tick_block(9 * SECOND_US)],
    ]

    assert (held,) == total(step_through(batches, ADMITTED, form), "held_by_topic")


@both_forms
@pytest.mark.parametrize("at_us", [None, SECOND_US, 5 * SECOND_US])
def test_a_late_change_acts_at_the_clock(form, at_us):
    """The window of 1 in an hour is used up; from 5 s on there are 2."""
    batches = [
        [changes_block([of_topics(1, period_s=3600)]), dispatches_block([dispatch(0)]), tick_block(5 * SECOND_US)],
        [changes_block([of_topics(2, at_us=at_us, seq=1)]), dispatches_block([dispatch(2 * SECOND_US, seq=1)])],
        [tick_block(6 * SECOND_US)],
    ]

    assert [(0, 1), (5, 1)] == told(step_through(batches, ADMITTED, form), "allowed_reads")


@both_forms
def test_a_change_for_one_broker_leaves_others(form):
    rows = [dispatch(0, messages=5), dispatch(1, seq=1)]

    assert (1,) == total(run(rows, [of_topics(5), of_topics(99, broker="b-2")], ADMITTED, form, 1), "held_by_topic")


RELATIVE = of_topics(10, 0, relative=True)
ASKED = (dispatch(0, messages=0),)
PUBLISHED = [event(at_us, T0, seq=at_us, messages=50, bytes_=500) for at_us in (0, SECOND_US)]


def follow(form, until_us, *, rules=STATS, changes=(RELATIVE,), rows=ASKED, events=PUBLISHED):
    """100 messages and 1000 bytes are published in the first of the intervals of 5 s: 20 and 200 a second."""
    changes = [replace(change, seq=seq) for seq, change in enumerate(changes)]
    blocks = [changes_block(changes), dispatches_block(list(rows)), events_block(events), tick_block(until_us)]
    return step_through([blocks], rules, form, stored=False)


@both_forms
@pytest.mark.parametrize(
    ("until_us", "rate"), [(0, 10), (5 * SECOND_US - 1, 10), (5 * SECOND_US, 30), (10 * SECOND_US - 1, 30)]
)
def test_the_average_of_an_interval_is_added_at_its_end_to_what_is_limited(form, until_us, rate):
    assert [rate, 0] == level(follow(form, until_us), "rate")


@both_forms
@pytest.mark.parametrize("until_us", [10 * SECOND_US, 60 * SECOND_US])
def test_where_nothing_is_published_any_more_the_rate_is_the_configured_one(form, until_us):
    assert [10, 0] == level(follow(form, until_us), "rate")


@both_forms
@every_kind
def test_each_kind_of_level_can_follow_the_publish_rate(form, scope):
    limited, subscription, name = KINDS[scope]
    rows = [dispatch(0, messages=0, subscription=subscription)]
    outcome = follow(form, 5 * SECOND_US, changes=[limited(10, 100, relative=True)], rows=rows)

    assert [30, 300] == level(outcome, "rate", scope, T0, name)


@both_forms
@pytest.mark.parametrize("changes", [[of_topics(10)], [of_broker(10, relative=True)]], ids=["not relative", "broker"])
def test_other_levels_do_not_follow(form, changes):
    outcome = follow(form, 5 * SECOND_US, changes=changes)

    assert [[10, 0]] == [
        level(outcome, "rate", scope) for scope in ("broker", "topic") if level(outcome, "rate", scope)
    ]


@both_forms
def test_a_topic_follows_its_own_publish_rate(form):
    outcome = follow(form, 5 * SECOND_US, rows=[dispatch(0, T1, messages=0)])

    assert [10, 0] == level(outcome, "rate", topic=T1)


@both_forms
def test_a_rate_that_moves_neither_refills_nor_forgives(form):
    outcome = follow(form, 5 * SECOND_US, rows=[dispatch(0, messages=25)])

    assert [-15, 0] == level(outcome, "balance")


@both_forms
def test_a_level_that_is_asked_for_the_first_time_has_the_average_already(form):
    outcome = follow(form, 7 * SECOND_US, rows=[dispatch(7 * SECOND_US, messages=4)])

    assert ([30, 0], [26, 0]) == (level(outcome, "rate"), level(outcome, "balance"))


@both_forms
def test_a_rate_that_becomes_relative_has_the_average_at_once(form):
    changes = [of_subscriptions(1, relative=True), of_topics(10), of_topics(10, relative=True, at_us=6 * SECOND_US)]

    assert [30, 0] == level(follow(form, 6 * SECOND_US, changes=changes), "rate")


@both_forms
@pytest.mark.parametrize(("offered", "rates"), [(False, [28, 10]), (True, [19, 19])], ids=["admitted", "offered"])
def test_the_publish_rate_is_of_what_was_let_in(form, offered, rates):
    """10 a second are let in: of two publishes of 45 the second starts when the debt of 35 is paid, after 5 s."""
    events = [event(at_us, T0, seq=at_us, messages=45) for at_us in (1_500_000, 1_500_001)]
    changes = [RELATIVE, limit("default", messages=10)]
    rules = replace(STATS, offered=offered, send_timeout_ms=30_000)
    ends = [
        follow(form, at_us, rules=rules, changes=changes, events=events) for at_us in (5 * SECOND_US, 10 * SECOND_US)
    ]

    assert rates == [level(outcome, "rate")[0] for outcome in ends]


@both_forms
@pytest.mark.parametrize(("at_us", "rate"), [(0, 30), (999_999, 30), (SECOND_US, 20), (2 * SECOND_US, 10)])
def test_publishes_count_from_the_second_on_in_which_a_rate_is_first_relative(form, at_us, rate):
    changes = [of_topics(10), of_topics(10, relative=True, at_us=at_us)]
    outcome = follow(form, 5 * SECOND_US, changes=changes)

    assert [rate, 0] == level(outcome, "rate")


@both_forms
@pytest.mark.parametrize("later", [False, True], ids=["from the start", "while it runs"])
def test_publishes_count_also_before_the_first_dispatch_wherever_batches_end(form, later):
    relative = replace(RELATIVE, seq=1) if not later else of_topics(10, relative=True, at_us=0, seq=1)
    batches = [
        [events_block([event(-SECOND_US, T0)]), changes_block([limit("default"), relative])],
        [events_block(PUBLISHED), tick_block(2 * SECOND_US)],
        [tick_block(6 * SECOND_US)],
        [dispatches_block([dispatch(7 * SECOND_US)])],
    ]
    whole = [[block for blocks in batches for block in blocks]]

    assert [30, 0] == level(step_through(whole, STATS, form), "rate")
    assert [30, 0] == level(step_through(batches, STATS, form), "rate")


@both_forms
def test_publishes_go_on_counting_while_no_rate_is_relative_for_a_time(form):
    batches = [
        [events_block([event(-SECOND_US, T0)]), changes_block([RELATIVE, of_topics(10, at_us=-1, seq=1)])],
        [tick_block(-1)],
        [events_block(PUBLISHED), tick_block(6 * SECOND_US)],
        [changes_block([of_topics(10, relative=True, at_us=7 * SECOND_US, seq=2)]), tick_block(7 * SECOND_US)],
        [dispatches_block([dispatch(8 * SECOND_US)])],
    ]
    whole = [[block for blocks in batches for block in blocks]]

    assert [30, 0] == level(step_through(whole, STATS, form), "rate")
    assert [30, 0] == level(step_through(batches, STATS, form), "rate")
