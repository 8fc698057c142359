"""Causes at the level of a connection (throttle-protocol 7.7)."""

import pytest

from headgate.core.protocol.broker.inputs import CloseProducer, Open, Receipt
from unit.core.protocol.broker import (
    WAIT,
    clear,
    mark,
    metrics,
    opened,
    paused,
    play,
    producer,
    resumed,
    set_,
    told,
    unmark,
)

BREACHES = "pulsar.broker.topic.publish.rate.limit.count"


def breaches(connection):
    return {key: count for key, count in metrics(connection).values().items() if key.startswith(BREACHES)}


@pytest.mark.parametrize("reason", [2, 3, 4])
def test_every_open_producer_is_told_by_ascending_id_before_reads_go_off(reason):
    connection = opened(producers=(7, 1, 3))
    play(connection, [(CloseProducer(10, 3), [])])

    notices = [told(20, 1, 0, "notice", 1, reason), told(20, 2, 0, "notice", 7, reason)]
    play(connection, [(set_(20, reason), [*notices, paused(20, "condition", reason, None)])])
    play(connection, [(Open(30, 9, "t9"), []), (clear(40, reason), [resumed(40, 20)])])


@pytest.mark.parametrize("reason", [5, 6])
def test_two_causes_are_never_told(reason):
    play(opened(), [(set_(20, reason), [paused(20, "condition", reason, None)]), (clear(25, reason), [resumed(25, 5)])])


@pytest.mark.parametrize(("supports", "keys"), [(False, {}), (True, {WAIT: 0})])
def test_nobody_is_told_without_cooperation(supports, keys):
    play(opened(supports=supports, **keys), [(set_(20, 2), [paused(20, "condition", 2, None)])])


def test_a_notice_is_sent_in_every_state_and_changes_none():
    connection = opened(producers=(1, 2, 3))
    play(connection, [(mark(10, 900, producer=2), [told(10, 1, 900, producer=2)])])
    play(connection, [(mark(60, 900, producer=3), [told(60, 2, 900, producer=3)]), (Receipt(61, 2), [])])
    play(connection, [(110, [paused(110, "no_receipt", producer=2)])])

    play(connection, [(set_(120, 3), [told(120, 2 + id_, 0, "notice", id_, 3) for id_ in (1, 2, 3)])])

    assert [producer(connection, id_)[0] for id_ in (1, 2, 3)] == ["N", "P", "C"]
    assert [producer(connection, id_)[3] for id_ in (1, 2, 3)] == [[], [], []]


def test_a_condition_that_is_set_is_not_set_again():
    connection = play(
        opened(), [(set_(10, 5), [paused(10, "condition", 5, None)]), (set_(11, 5), []), (set_(12, 5, 4), [])]
    )

    play(connection, [(clear(13, 5, 3), []), (clear(14, 5, 4), [resumed(14, 4)]), (clear(15, 5, 4), [])])


def test_a_clear_that_overtook_its_setting_ends_it_before_it_begins():
    connection = play(opened(), [(clear(10, 4, 2), []), (set_(11, 4, 1, 1), []), (set_(12, 4, 2, 1), [])])
    assert breaches(connection) == {}

    play(connection, [(set_(13, 4, 3, 1), [told(13, 1, 0, "notice", 1, 4), paused(13, "condition", 4, None)])])


def test_each_reason_has_ordinals_of_its_own():
    play(
        opened(),
        [(clear(10, 5, 9), []), (set_(11, 6, 1), [paused(11, "condition", 6, None)]), (clear(12, 6), [resumed(12, 1)])],
    )


def test_the_brokers_limiter_counts_the_topic_of_an_open_producer_that_tripped_it():
    connection = opened(producers=(1, 2), supports=False)
    for n, tripped_by in enumerate((2, 9, None, True), start=1):
        connection.feed(set_(n, 4, n, tripped_by))
        connection.feed(set_(n, 4, n, 1))
        connection.feed(clear(n, 4, n))

    assert breaches(connection) == {f"{BREACHES}{{pulsar.publish.rate_limiter=broker,pulsar.topic=t2}}": 1}


def test_a_condition_and_a_producer_hold_together():
    connection = play(
        opened(), [(mark(0, 900), [told(0, 1, 900)]), (100, [paused(100, "no_receipt")]), (set_(150, 6), [])]
    )

    play(connection, [(unmark(200), []), (clear(250, 6), [resumed(250, 150)])])
