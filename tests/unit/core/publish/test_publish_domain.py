"""Publish limiters of one domain, step by step: birth, offered traffic, usage by second (rate-limiters 4)."""

import pytest

from headgate.core import usage as columns
from headgate.core.publish.publish_domain import DomainLimiter, Publish, PublishDomain
from headgate.core.publish.publish_limiter import Scope

SECOND = 1_000_000_000
MS = 1_000_000
TEN_A_SECOND = ("topic", 10, 0)


def domain_of(*limits, broker=None, **options):
    limiters = [DomainLimiter(Scope(scope), (messages, bytes_)) for scope, messages, bytes_ in limits]
    return PublishDomain(limiters, broker, **options)


def publish(domain, at_ms, messages, *, topic=0, group=None, producer=0, seq=0):
    """The topic belongs to `group` from now on."""
    domain.groups.pop(topic, None)
    if group is not None:
        domain.groups[topic] = group
    domain.publish(Publish(at_ms * MS, topic, producer, messages, 0, seq))


def marks(domain):
    """Marks so far as (ms, limiter, producer, "+" or "-")."""
    return [(mark.at_ns / MS, mark.limiter, mark.producer, "+" if mark.marked else "-") for mark in domain.marks]


def rows(domain, *names):
    """Closed seconds as (topic, second, columns named)."""
    return [(row.topic, row.second, *(row.counts[name] for name in names)) for row in domain.closed]


def counted(domain, *names, topic=0):
    """Counts over all closed seconds of a topic, and the open one."""
    closed = [row.counts for row in domain.closed if row.topic == topic]
    return [sum(counts[name] for counts in [*closed, domain.usage[topic].counts]) for name in names]


def test_a_limiter_is_born_full_at_its_first_publish():
    domain = domain_of(TEN_A_SECOND)
    publish(domain, 5000, 3)
    bucket = domain.limiters[0].made.buckets[0]

    assert (bucket.last_ns, bucket.balance) == (5 * SECOND, 7)


def test_a_limit_before_birth_only_sets_the_rates():
    domain = domain_of(TEN_A_SECOND)
    domain.set_limit(0, 20, 300, 2 * SECOND)

    assert (domain.limiters[0].rates, domain.limiters[0].made, domain.marks) == ((20, 300), None, [])

    publish(domain, 5000, 3)

    assert [bucket.balance for bucket in domain.limiters[0].made.buckets] == [17, 300]


def test_limiters_are_born_each_at_the_first_publish_that_it_is_charged_for():
    domain = domain_of(TEN_A_SECOND, ("broker", 100, 0), ("group", 5, 0), ("topic", 1, 0), broker=1)
    publish(domain, 1000, 1)
    publish(domain, 2000, 1, group=2)
    born_ns = [limiter.made and limiter.made.buckets[0].last_ns for limiter in domain.limiters]

    assert born_ns == [2 * SECOND, 2 * SECOND, 2 * SECOND, None]


def test_every_limiter_is_charged_and_marks_in_the_order_topic_broker_group():
    domain = domain_of(("group", 1, 0), TEN_A_SECOND, ("broker", 2, 0), broker=2)
    publish(domain, 0, 20, topic=1, group=0)

    assert marks(domain) == [(0, 1, 0, "+"), (0, 2, 0, "+"), (0, 0, 0, "+")]
    assert counted(domain, columns.THROTTLED, columns.BY_TOPIC, columns.BY_BROKER, columns.BY_GROUP, topic=1) == [
        1,
        1,
        1,
        1,
    ]


def test_drains_run_before_what_comes_later_each_at_its_own_time():
    domain = domain_of(TEN_A_SECOND, TEN_A_SECOND)
    publish(domain, 0, 15, topic=0, producer=7)
    publish(domain, 0, 12, topic=1, producer=8)
    publish(domain, 2000, 1, topic=0, producer=7)

    assert marks(domain) == [(0, 0, 7, "+"), (0, 1, 8, "+"), (300, 1, 8, "-"), (600, 0, 7, "-")]


def test_drains_due_together_run_in_the_order_of_registration():
    domain = domain_of(TEN_A_SECOND, TEN_A_SECOND)
    publish(domain, 0, 15, topic=1, producer=1)
    publish(domain, 0, 15, topic=0, producer=0)
    domain.advance(SECOND, finish=False)

    assert marks(domain)[2:] == [(600, 0, 0, "-"), (600, 1, 1, "-")]


def test_a_new_rate_releases_at_once():
    domain = domain_of(TEN_A_SECOND)
    publish(domain, 0, 15)
    domain.set_limit(0, 0, 0, 250 * MS)

    assert marks(domain) == [(0, 0, 0, "+"), (250, 0, 0, "-")]
    assert domain.limiters[0].made.next_drain_ns is None


def test_a_quantum_releases_in_portions_sixteen_milliseconds_apart():
    domain = domain_of(TEN_A_SECOND, quantum=1)
    publish(domain, 0, 10, producer=0)
    publish(domain, 0, 0, producer=1)
    domain.advance(SECOND, finish=False)

    assert marks(domain)[2:] == [(100, 0, 0, "-"), (116, 0, 1, "-")]


@pytest.mark.parametrize(
    ("until_ms", "finish", "seconds"),
    [
        (999, False, []),
        (1000, False, [(0, 0, 1000 * MS)]),
        (3000, False, [(0, 0, 1000 * MS)]),
        (3700, False, [(0, 0, 1000 * MS)]),
        (4000, False, [(0, 0, 1000 * MS), (0, 3, 2600 * MS)]),
        (999, True, [(0, 0, 999 * MS)]),
        (1000, True, [(0, 0, 1000 * MS)]),
        (2500, True, [(0, 0, 1000 * MS), (0, 2, 1500 * MS)]),
        (3700, True, [(0, 0, 1000 * MS), (0, 3, 2600 * MS)]),
        (9000, True, [(0, 0, 1000 * MS), (0, 3, 2600 * MS)]),
    ],
)
def test_throttled_time_goes_into_rows_up_to_the_end_of_their_second_and_then_into_the_next_row(
    until_ms, finish, seconds
):
    domain = domain_of(TEN_A_SECOND)
    publish(domain, 0, 45)
    domain.advance(until_ms * MS, finish=finish)

    assert rows(domain, columns.THROTTLED_NS) == seconds


def test_throttled_time_runs_while_any_producer_of_the_topic_waits_anywhere():
    domain = domain_of(TEN_A_SECOND, ("group", 10, 0))
    publish(domain, 0, 12, group=1, producer=0)
    publish(domain, 100, 2, group=1, producer=1)
    publish(domain, 700, 1, group=1, producer=1)
    domain.advance(SECOND, finish=True)

    assert marks(domain) == [
        (0, 0, 0, "+"),
        (0, 1, 0, "+"),
        (100, 0, 1, "+"),
        (100, 1, 1, "+"),
        (500, 0, 0, "-"),
        (500, 0, 1, "-"),
        (500, 1, 0, "-"),
        (500, 1, 1, "-"),
    ]
    assert rows(domain, columns.THROTTLED_NS) == [(0, 0, 500 * MS)]


def test_a_topic_in_two_limiters_is_throttled_until_the_last_lets_it_go():
    domain = domain_of(TEN_A_SECOND, ("group", 5, 0))
    publish(domain, 100, 12, group=1)
    domain.advance(5 * SECOND, finish=True)

    assert marks(domain) == [(100, 0, 0, "+"), (100, 1, 0, "+"), (400, 0, 0, "-"), (1700, 1, 0, "-")]
    assert rows(domain, columns.THROTTLED, columns.THROTTLED_NS) == [(0, 0, 1, 900 * MS), (0, 1, 0, 700 * MS)]


def test_a_row_counts_what_came_in_its_second():
    domain = domain_of(TEN_A_SECOND, TEN_A_SECOND)
    publish(domain, 0, 3)
    publish(domain, 999, 4)
    publish(domain, 999, 0, topic=1)
    publish(domain, 2000, 5)
    domain.advance(2001 * MS, finish=False)

    assert rows(domain, columns.PUBLISHES, columns.MESSAGES) == [(0, 0, 2, 7), (1, 0, 1, 0)]
    assert domain.usage[0].counts[:2] == [1, 5]


def test_finish_closes_the_running_seconds_and_opens_no_empty_ones():
    domain = domain_of(TEN_A_SECOND, TEN_A_SECOND)
    publish(domain, 0, 3)
    publish(domain, 1500, 4, topic=1)
    domain.advance(1500 * MS, finish=True)

    assert rows(domain, columns.PUBLISHES) == [(0, 0, 1), (1, 1, 1)]
    assert [usage.second for usage in domain.usage.values()] == [None, None]

    domain.advance(9000 * MS, finish=True)

    assert len(domain.closed) == 2


OFFERED = {"offered": True, "timeout_ns": 30 * SECOND}


def test_offered_arrivals_of_a_waiting_producer_are_withheld_and_charged_in_order_at_releases():
    domain = domain_of(TEN_A_SECOND, **OFFERED)
    publish(domain, 0, 15)
    publish(domain, 100, 3, seq=1)
    publish(domain, 200, 4, seq=2)

    assert [event.seq for event in domain.withheld[0]] == [1, 2]

    domain.advance(600 * MS, finish=False)

    assert [event.seq for event in domain.withheld[0]] == [2]

    domain.advance(2 * SECOND, finish=True)

    assert marks(domain) == [
        (0, 0, 0, "+"),
        (600, 0, 0, "-"),
        (600, 0, 0, "+"),
        (900, 0, 0, "-"),
        (900, 0, 0, "+"),
        (1300, 0, 0, "-"),
    ]
    assert [mark.seq for mark in domain.marks] == [0, None, 1, None, 2, None]
    assert counted(domain, columns.PUBLISHES, columns.ADMITTED, columns.ADMITTED_MESSAGES, columns.FAILED) == [
        3,
        3,
        22,
        0,
    ]
    assert counted(domain, columns.DELAYED, columns.DELAY_NS) == [2, 1200 * MS]
    assert rows(domain, columns.MAX_DELAY_NS) == [(0, 0, 700 * MS), (0, 1, 0)]


def test_offered_arrivals_of_others_go_on_while_a_producer_waits():
    domain = domain_of(TEN_A_SECOND, **OFFERED)
    publish(domain, 0, 15, producer=0)
    publish(domain, 100, 3, producer=1)

    assert marks(domain) == [(0, 0, 0, "+"), (100, 0, 1, "+")]
    assert counted(domain, columns.ADMITTED, columns.DELAYED) == [2, 0]


def test_several_withheld_arrivals_are_charged_at_one_release_until_a_limiter_throttles():
    domain = domain_of(("topic", 1000, 0), **OFFERED)
    publish(domain, 0, 1500)
    for seq, messages in enumerate([4, 5, 0, 1, 7], start=1):
        publish(domain, 100, messages, seq=seq)
    domain.advance(510 * MS, finish=False)

    assert marks(domain) == [(0, 0, 0, "+"), (510, 0, 0, "-"), (510, 0, 0, "+")]
    assert [event.seq for event in domain.withheld[0]] == [5]
    assert counted(domain, columns.ADMITTED, columns.DELAYED, columns.DELAY_NS) == [5, 4, 4 * 410 * MS]


def test_a_producer_in_two_queues_is_withheld_until_both_have_released_it():
    domain = domain_of(TEN_A_SECOND, ("group", 5, 0), **OFFERED)
    publish(domain, 0, 15, group=1)
    publish(domain, 100, 1, group=1)
    domain.advance(2199 * MS, finish=False)

    assert marks(domain) == [(0, 0, 0, "+"), (0, 1, 0, "+"), (600, 0, 0, "-")]
    assert counted(domain, columns.ADMITTED) == [1]

    domain.advance(2200 * MS, finish=False)

    assert marks(domain)[3:] == [(2200, 1, 0, "-"), (2200, 1, 0, "+")]
    assert counted(domain, columns.ADMITTED, columns.DELAY_NS) == [2, 2100 * MS]


@pytest.mark.parametrize(
    ("timeout_ms", "until_ns", "failed", "admitted"),
    [
        (200, 300 * MS, 0, 1),
        (200, 300 * MS + 1, 1, 1),
        (200, 400 * MS + 1, 2, 1),
        (500, 600 * MS, 0, 2),
        (400, 600 * MS, 1, 2),
        (0, 100 * MS + 1, 1, 1),
    ],
)
def test_an_arrival_fails_one_nanosecond_after_the_time_out(timeout_ms, until_ns, failed, admitted):
    domain = domain_of(TEN_A_SECOND, offered=True, timeout_ns=timeout_ms * MS)
    publish(domain, 0, 15)
    publish(domain, 100, 3, seq=1)
    if until_ns >= 200 * MS:
        publish(domain, 200, 4, seq=2)
    domain.advance(until_ns, finish=False)

    assert counted(domain, columns.FAILED, columns.ADMITTED) == [failed, admitted]
    assert counted(domain, columns.FAILED_MESSAGES) == [[0, 3, 7][failed]]


def test_a_release_beats_a_time_out_of_the_same_nanosecond():
    domain = domain_of(("topic", 1000, 0), offered=True, timeout_ns=510 * MS - 1)
    publish(domain, 0, 1500)
    publish(domain, 0, 1)
    domain.advance(510 * MS, finish=False)

    assert counted(domain, columns.FAILED, columns.ADMITTED, columns.DELAY_NS) == [0, 2, 510 * MS]


def test_a_failed_arrival_is_never_charged():
    domain = domain_of(TEN_A_SECOND, offered=True, timeout_ns=10 * MS)
    publish(domain, 0, 15)
    publish(domain, 100, 1000)
    domain.advance(2 * SECOND, finish=True)

    assert marks(domain) == [(0, 0, 0, "+"), (600, 0, 0, "-")]
    assert rows(domain, columns.PUBLISHES, columns.MESSAGES, columns.ADMITTED_MESSAGES, columns.FAILED_MESSAGES) == [
        (0, 0, 2, 1015, 15, 1000)
    ]


def test_a_new_rate_releases_the_withheld_too():
    domain = domain_of(TEN_A_SECOND, **OFFERED)
    publish(domain, 0, 15)
    publish(domain, 100, 300)
    domain.set_limit(0, 0, 0, 250 * MS)

    assert marks(domain) == [(0, 0, 0, "+"), (250, 0, 0, "-")]
    assert counted(domain, columns.ADMITTED, columns.DELAY_NS) == [2, 150 * MS]


def test_advancing_between_events_changes_nothing():
    def played(ticks_ms):
        domain = domain_of(TEN_A_SECOND, ("group", 7, 0), **OFFERED)
        publishes = [(0, 15), (350, 2), (1100, 9), (1900, 1), (4200, 3)]
        for at_ms, messages in sorted([(tick_ms, -1) for tick_ms in ticks_ms] + publishes):
            if messages < 0:
                domain.advance(at_ms * MS, finish=False)
            else:
                publish(domain, at_ms, messages, group=1, producer=at_ms % 2)
        domain.advance(30 * SECOND, finish=True)
        return marks(domain), sorted(domain.closed)

    assert played([]) == played([0, 350, 1000, 1000, 4100, 9000])
