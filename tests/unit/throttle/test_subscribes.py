"""Attempts to subscribe in a domain: whose bucket it is, what limits it, and what batches do not change."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.conformance.oracles.subscribe_limiter import SubscribeLimiter
from headgate.throttle.form import Rules
from headgate.throttle.limits.effective_limits import EffectiveLimits
from unit.throttle.domains import (
    KeyState,
    changes_block,
    events_block,
    limit,
    picture,
    run_arrays,
    step_key,
    step_through,
    subscribe_limit,
    subscribes_block,
    tick_block,
)
from unit.throttle.drawn import quick
from unit.throttle.rows import SECOND_US, START_US, TOPICS, event, subscribe

T0, T1 = TOPICS[0], TOPICS[1]
TWO_IN_TEN = subscribe_limit("default", "", 2, 10)


def said(outcome):
    return [(row["seq"], row["allowed"], row["left"]) for row in outcome.subscribe_decisions]


def decided(rows, *changes):
    return step_through([[changes_block(changes), subscribes_block(rows)]], Rules())


def test_without_a_limit_every_attempt_is_allowed_and_nothing_is_kept():
    outcome = decided([subscribe(0, seq=number) for number in range(3)])

    assert [(0, True, None), (1, True, None), (2, True, None)] == said(outcome)
    assert {} == picture(outcome.state)["broker-1"]["subscribes"]
    assert {None} == {row["period_s"] for row in outcome.subscribe_decisions}


def test_a_consumer_has_so_many_attempts_in_a_period_and_a_refused_one_takes_nothing():
    times_s = [0, 0, 0, 4, 5, 5.5, 30]
    rows = [subscribe(int(at * SECOND_US) + (at > 0), seq=seq) for seq, at in enumerate(times_s)]

    expected = [(0, True, 1), (1, True, 0), (2, False, 0), (3, False, 0), (4, True, 0), (5, False, 0), (6, True, 1)]
    assert expected == said(decided(rows, TWO_IN_TEN))


@pytest.mark.parametrize(
    "other",
    [{"topic": T1}, {"client": "another"}, {"consumer": "another"}, {"consumer_id": 2}],
    ids=lambda other: next(iter(other)),
)
def test_a_bucket_is_of_a_topic_and_a_consumer(other):
    """Of the consumer its host, its name and its id."""
    rows = [subscribe(0), subscribe(0, seq=1, **other)]

    assert [(0, True, 0), (1, True, 0)] == said(decided(rows, subscribe_limit("default", "", 1, 10)))


@pytest.mark.parametrize(
    ("changes", "left"),
    [
        pytest.param([], [1, 1], id="the default"),
        pytest.param([subscribe_limit("namespace", "acme/ns0", 5, 30)], [4, 1], id="a namespace's"),
        pytest.param([subscribe_limit("namespace", "acme/ns0", 0, 30)], [None, 1], id="a namespace's that is off"),
        pytest.param(
            [subscribe_limit("namespace", "acme/ns0", 5, 30), subscribe_limit("topic", T0, 9, 1)],
            [8, 1],
            id="a topic's before its namespace's",
        ),
        pytest.param([subscribe_limit("topic", T1, 9, 0)], [1, None], id="a period of 0 is off"),
    ],
)
def test_the_limit_is_the_topics_else_its_namespaces_else_the_default(changes, left):
    outcome = decided([subscribe(0, T0), subscribe(0, T1, seq=1)], TWO_IN_TEN, *changes)

    assert left == [row["left"] for row in outcome.subscribe_decisions]


def test_another_limit_makes_buckets_full_an_equal_one_changes_nothing_and_none_forgets_them():
    second = SECOND_US
    changes = [
        subscribe_limit("default", "", 2, 10, at_us=1 * second),
        subscribe_limit("default", "", 3, 10, at_us=2 * second),
        subscribe_limit("default", "", 0, 10, at_us=4 * second),
        subscribe_limit("default", "", 1, 10, at_us=5 * second),
    ]
    rows = [subscribe(at * second // 2, seq=at) for at in (0, 1, 2, 4, 5, 6, 7, 8, 10, 11)]
    expected = [
        *[(0, True, 1), (1, True, 0), (2, False, 0)],  # the equal one comes before the third
        *[(4, True, 2), (5, True, 1), (6, True, 0), (7, False, 0)],
        (8, True, None),
        *[(10, True, 0), (11, False, 0)],
    ]

    assert expected == said(decided(rows, TWO_IN_TEN, *changes))


def test_a_limit_that_changes_for_a_namespace_leaves_the_buckets_of_others():
    changes = [TWO_IN_TEN, subscribe_limit("namespace", "acme/ns0", 5, 10, at_us=SECOND_US)]
    rows = [subscribe(at, topic, seq=at) for at in (0, SECOND_US) for topic in (T0, T1)]

    assert [(T0, 1), (T1, 1), (T0, 4), (T1, 0)] == [
        (row["topic"], row["left"]) for row in decided(rows, *changes).subscribe_decisions
    ]


def test_a_limit_that_goes_and_comes_back_between_two_attempts_leaves_no_bucket():
    """The one that comes then begins at the attempt, not at the change."""
    changes = [
        subscribe_limit("default", "", rate, 10, at_us=SECOND_US, seq=seq) for seq, rate in enumerate((0, 2, 3, 2))
    ]
    rows = [subscribe(at * SECOND_US, seq=at) for at in (0, 3, 4, 7, 9)]

    assert [(0, True, 1), (3, True, 1), (4, True, 0), (7, False, 0), (9, True, 0)] == said(
        decided(rows, TWO_IN_TEN, *changes)
    )


def test_a_change_looks_at_the_topics_under_it_alone(monkeypatch):
    asked = []
    rate_of = EffectiveLimits.subscribe_rate_of
    monkeypatch.setattr(
        EffectiveLimits,
        "subscribe_rate_of",
        lambda in_force, topic: asked.append(topic) or rate_of(in_force, topic),
    )
    partition = f"{T0}-partition-1"
    state, rows = KeyState(), [subscribe(0, topic) for topic in (*TOPICS, partition)]
    step_key("key", state, [changes_block([TWO_IN_TEN]), subscribes_block(rows)], Rules(), run_arrays)
    asked.clear()
    changes = [
        subscribe_limit(scope, name, 5, 10, at_us=SECOND_US)
        for scope, name in (("topic", T0), ("namespace", "acme/ns1"), ("topic", "persistent://acme/ns0/other"))
    ]
    step_key("key", state, [changes_block(changes), tick_block(2 * SECOND_US)], Rules(), run_arrays)

    assert sorted([T0, partition, T1, TOPICS[3]]) == sorted(asked)


def test_a_late_attempt_acts_at_the_domains_clock_and_is_written_with_its_time():
    batches = [
        [changes_block([TWO_IN_TEN]), subscribes_block([subscribe(0), subscribe(0, seq=1)]), tick_block(9 * SECOND_US)],
        [subscribes_block([subscribe(SECOND_US, seq=2)])],
    ]
    rows = step_through(batches, Rules()).subscribe_decisions

    assert [(2, True)] == [(row["seq"], row["allowed"]) for row in rows[2:]]
    assert START_US + SECOND_US == rows[2]["event_time"].timestamp() * 1e6


def test_with_a_hold_back_attempts_wait_and_keep_the_domain_open():
    rules = Rules(hold_back_ms=1000)
    first = [changes_block([TWO_IN_TEN]), subscribes_block([subscribe(5, seq=1)])]
    early = step_through([first], rules)
    late = step_through([first, [subscribes_block([subscribe(0)])], [tick_block(2 * SECOND_US)]], rules)

    assert ([], True) == (early.subscribe_decisions, early.state.domains["broker-1"].is_open)
    assert [(0, True, 1), (1, True, 0)] == said(late)
    assert not late.state.domains["broker-1"].is_open


def test_subscribes_and_publishes_do_not_know_each_other():
    changes = [TWO_IN_TEN, limit("default", messages=1)]
    publishes, attempts = [event(at, T0, seq=at) for at in range(4)], [subscribe(at, T0, seq=at) for at in range(4)]
    both = step_through([[changes_block(changes), events_block(publishes), subscribes_block(attempts)]], Rules())
    one, other = (
        step_through([[changes_block(changes), block]], Rules())
        for block in (events_block(publishes), subscribes_block(attempts))
    )

    assert (one.marks, other.subscribe_decisions) == (both.marks, both.subscribe_decisions)
    assert one.marks


ATTEMPTS = st.lists(
    st.builds(
        lambda at, topic, consumer: {"at_us": at, "topic": topic, "consumer": consumer},
        st.integers(0, 40).map(lambda at: at * SECOND_US // 2),
        st.sampled_from(TOPICS[:3]),
        st.sampled_from(["c", "d"]),
    ),
    max_size=30,
).map(lambda rows: [subscribe(row.pop("at_us"), seq=seq, **row) for seq, row in enumerate(rows)])
LIMITS = st.lists(
    st.builds(
        lambda place, rate, at, seq: subscribe_limit(*place, *rate, at_us=at * SECOND_US, seq=seq),
        st.sampled_from([("default", ""), ("namespace", "acme/ns0"), ("topic", TOPICS[1])]),
        st.sampled_from([(None, None), (0, 30), (1, 5), (3, 5), (3, 60)]),
        st.integers(0, 20),
        st.integers(0, 99),
    ),
    max_size=5,
)


@quick
@given(ATTEMPTS, LIMITS, st.sampled_from([0, 400]), st.data())
def test_neither_batches_nor_ticks_nor_the_state_between_them_change_a_decision(rows, limits, hold_back_ms, data):
    rules = Rules(hold_back_ms=hold_back_ms)
    rows = sorted(rows, key=lambda row: (row["event_time_us"], row["seq"]))
    end = [tick_block(60 * SECOND_US, finish=True)]
    whole = step_through([[changes_block([TWO_IN_TEN, *limits]), subscribes_block(rows)], end], rules, stored=False)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=4)))
    parts = [rows[low:high] for low, high in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
    first, *others = ([subscribes_block(part)] if part else [] for part in parts)
    cut = step_through([[changes_block([TWO_IN_TEN, *limits]), *first], *filter(None, others), end], rules)

    assert replace(whole, state=None) == replace(cut, state=None)
    assert picture(whole.state) == picture(cut.state)


@quick
@given(ATTEMPTS, st.sampled_from([(1, 5), (2, 3), (5, 60)]))
def test_decisions_are_those_of_the_limiter_of_each_topic(rows, rate):
    rows = sorted(rows, key=lambda row: (row["event_time_us"], row["seq"]))
    limiters = {topic: SubscribeLimiter(*rate, created_ns=0) for topic in TOPICS}
    expected = [
        limiters[row["topic"]].attempt(row["client"], row["consumer"], row["consumer_id"], row["event_time_us"] * 1000)
        for row in rows
    ]

    assert expected == [
        row["allowed"] for row in decided(rows, subscribe_limit("default", "", *rate)).subscribe_decisions
    ]
