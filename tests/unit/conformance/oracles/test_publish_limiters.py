"""Sets of publish limiters in one ordered time (rate-limiters 3.1, 4)."""

import pytest

from headgate.conformance.oracles.publish_limiters import PublishLimiters
from headgate.core.numbers import MAX, MIN
from headgate.errors import InvalidArgument

SECOND = 1_000_000_000
MS = 1_000_000


@pytest.fixture
def limiters():
    """Topics t and u with 10 messages/s, the broker with 1000; p and q share connection c, r is on d."""
    made = PublishLimiters(created_ns=0)
    made.add_limiter("t", "topic", 10, 0, 0)
    made.add_limiter("u", "topic", 10, 0, 0)
    made.add_limiter("b", "broker", 1000, 0, 0)
    made.add_producer("p", "c", ["b", "t"], 0, topic="t")
    made.add_producer("q", "c", ["u"], 0, topic="u")
    made.add_producer("r", "d", ["t"], 0, topic="t")
    return made


def test_limiters_throttle_in_the_order_topic_broker_group(limiters):
    limiters.add_limiter("g", "group", 1, 0, 0)
    limiters.attach("p", "g", 0)

    assert limiters.publish("p", 2000, 0, 0) == ["t", "b", "g"]
    assert limiters.marks("c", 0) == {"TopicPublishRate": 1, "ResourceGroupPublishRate": 1, "BrokerPublishRate": 1}


def test_a_late_operation_acts_at_the_highest_time_seen(limiters):
    limiters.publish("p", 15, 0, 5 * SECOND)

    assert limiters.next_drain_ns("t", 0) == 5_600 * MS
    assert limiters.publish("q", 15, 0, MIN) == ["u"]
    assert limiters.next_drain_ns("u", 0) == 5_600 * MS
    assert limiters.high_ns == 5 * SECOND


def test_drains_that_are_due_run_before_the_operation_each_at_its_own_time(limiters):
    limiters.publish("p", 15, 0, 0)
    limiters.publish("q", 12, 0, 0)
    limiters.publish("r", 1, 0, 0)

    assert limiters.publish("q", 0, 0, 10 * SECOND) == []
    assert limiters.releases(10 * SECOND) == [
        [300 * MS, "u", "q"],
        [700 * MS, "t", "p"],
        [700 * MS, "t", "r"],
    ]
    assert limiters.releases(10 * SECOND) == []


def test_drains_due_together_run_in_the_order_of_registration(limiters):
    limiters.publish("q", 15, 0, 0)
    limiters.publish("p", 15, 0, 0)
    limiters.advance(SECOND)

    assert limiters.releases(SECOND) == [[600 * MS, "t", "p"], [600 * MS, "u", "q"]]


def test_work_created_by_a_drain_runs_too_if_it_is_due():
    limiters = PublishLimiters(created_ns=0, release_quantum=1)
    limiters.add_limiter("t", "topic", 10, 0, 0)
    limiters.add_producer("p", "c", ["t"], 0)
    for _ in range(3):
        limiters.publish("p", 10, 0, 0)
    limiters.advance(10 * SECOND)

    assert [at_ns for at_ns, *_ in limiters.releases(10 * SECOND)] == [2_100 * MS, 2_116 * MS, 2_132 * MS]


def test_a_drain_at_the_end_of_time_never_runs():
    limiters = PublishLimiters(created_ns=MAX - 1)
    limiters.add_limiter("t", "topic", 1, 0, MAX)
    limiters.add_producer("p", "c", ["t"], MAX)
    limiters.publish("p", 5, 0, MAX)

    assert limiters.next_drain_ns("t", MAX) == MAX
    assert limiters.queue("t", MAX) == ["p"]
    assert limiters.drain("t", MAX) == []
    limiters.update("t", 0, 0, MAX)
    assert limiters.releases(MAX) == [[MAX, "t", "p"]]


def test_without_auto_drain_only_the_operation_and_updates_drain():
    limiters = PublishLimiters(created_ns=0, auto_drain=False)
    limiters.add_limiter("t", "topic", 10, 0, 0)
    limiters.add_producer("p", "c", ["t"], 0)
    limiters.publish("p", 11, 0, 0)
    limiters.advance(60 * SECOND)

    assert limiters.queue("t", 60 * SECOND) == ["p"]
    assert limiters.drain("t", 60 * SECOND) == ["p"]
    assert limiters.releases(60 * SECOND) == [[60 * SECOND, "t", "p"]]


def test_detached_and_closed_producers_are_released_as_usual(limiters):
    limiters.publish("p", 15, 0, 0)
    limiters.publish("r", 1, 0, 0)
    limiters.detach("p", "t", 0)
    limiters.close_producer("r", 0)

    assert limiters.publish("p", 5, 0, 0) == []
    assert limiters.queue("t", 0) == ["p", "r"]
    limiters.advance(SECOND)
    assert [producer for *_, producer in limiters.releases(SECOND)] == ["p", "r"]
    assert (limiters.marks("c", SECOND), limiters.marks("d", SECOND)) == ({}, {})


def test_a_producer_that_returns_on_another_connection_leaves_its_old_entry_alone(limiters):
    limiters.publish("r", 15, 0, 0)
    limiters.close_producer("r", 0)
    limiters.add_producer("r", "e", ["t"], 0)
    limiters.publish("r", 1, 0, 0)

    assert (limiters.marks("d", 0), limiters.marks("e", 0)) == ({"TopicPublishRate": 1}, {"TopicPublishRate": 1})
    limiters.advance(SECOND)
    assert (limiters.marks("d", SECOND), limiters.marks("e", SECOND)) == ({}, {})


def test_attaching_twice_and_detaching_twice_change_nothing(limiters):
    limiters.attach("q", "t", 0)
    limiters.attach("q", "t", 0)
    assert limiters.publish("q", 10, 0, 0) == ["u", "t"]

    limiters.detach("q", "t", 0)
    limiters.detach("q", "t", 0)
    assert limiters.publish("q", 0, 0, 0) == ["u"]


def test_a_closed_connection_keeps_its_reads_and_metrics(limiters):
    limiters.publish("p", 15, 0, 0)
    limiters.close_connection("c", 0)
    limiters.advance(SECOND)

    assert limiters.marks("c", SECOND) == {}
    assert limiters.auto_read("c", SECOND) is False
    assert limiters.metrics("c", SECOND) == {"paused": 1, "resumed": 0, "throttled_connections": 0}


def test_the_rate_limited_count_is_of_every_topic_on_the_paused_connection(limiters):
    limiters.publish("p", 15, 0, 0)
    limiters.publish("q", 15, 0, 0)

    assert [limiters.rate_limited(topic, 0) for topic in ("t", "u", "v")] == [1, 1, 0]
    assert [limiters.throttled_publishes(limiter, 0) for limiter in ("t", "u", "b")] == [1, 1, 0]


def test_reads_show_tokens_and_pauses(limiters):
    limiters.publish("p", 12, 0, 0)

    assert (limiters.balance("t", 0), limiters.balance("b", 0)) == ((-2, None), (988, None))
    assert (limiters.pause_ns("t", 0), limiters.pause_ns("b", 0)) == (300 * MS, 0)


@pytest.mark.parametrize(
    "operation",
    [
        lambda limiters: limiters.publish("x", 1, 1, 0),
        lambda limiters: limiters.publish("p", -1, 1, 0),
        lambda limiters: limiters.publish("q", 1, -1, 0),
        lambda limiters: limiters.publish(None, 1, 1, 0),
        lambda limiters: limiters.update("x", 1, 1, 0),
        lambda limiters: limiters.update("t", 1, 2**63, 0),
        lambda limiters: limiters.drain("x", 0),
        lambda limiters: limiters.balance("x", 0),
        lambda limiters: limiters.marks("x", 0),
        lambda limiters: limiters.attach("x", "t", 0),
        lambda limiters: limiters.attach("p", "x", 0),
        lambda limiters: limiters.detach("p", "x", 0),
        lambda limiters: limiters.close_producer("x", 0),
        lambda limiters: limiters.close_connection("x", 0),
        lambda limiters: limiters.add_limiter("t", "topic", 1, 1, 0),
        lambda limiters: limiters.add_limiter("n", "world", 1, 1, 0),
        lambda limiters: limiters.add_producer("p", "c", [], 0),
        lambda limiters: limiters.add_producer("n", "c", ["x"], 0),
        lambda limiters: limiters.add_producer(5, "c", [], 0),
        lambda limiters: limiters.advance(MAX + 1),
    ],
)
def test_a_refused_operation_changes_nothing(limiters, operation):
    before = limiters.state()

    with pytest.raises(InvalidArgument):
        operation(limiters)
    assert limiters.state() == before


def test_arguments_are_checked_after_the_work_that_is_due(limiters):
    limiters.publish("p", 15, 0, 0)
    with pytest.raises(InvalidArgument):
        limiters.publish("p", -1, 0, SECOND)

    assert limiters.high_ns == SECOND
    assert limiters.releases(0) == [[600 * MS, "t", "p"]]
