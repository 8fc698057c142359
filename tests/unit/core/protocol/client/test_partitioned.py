"""Where the messages of a partitioned producer go (throttle-protocol 12)."""

import pytest

from headgate.core.protocol.client.partitioned import PartitionedProducer
from headgate.core.protocol.settings import PartitionedSettings, ProtocolSettingsError
from unit.core.protocol.client_steps import frame, said


def producer_of(partitions, throttled=(), **settings):
    """A producer whose partitions `throttled` (partition -> end) are throttled from 0 on."""
    producer = PartitionedProducer(PartitionedSettings.of({"partitions": partitions, **settings}))
    for request_id, (partition, end_ms) in enumerate(dict(throttled).items(), 1):
        producer.client.throttle(frame(request_id, partition, end_ms), 0)
    return producer


def routes(producer, times):
    """To which partition a message goes at each of the times."""
    emitted = [producer.send(f"m{number}", at_ms)[-1:] for number, at_ms in enumerate(times)]
    return [output.producer_id for outputs in emitted for output in outputs]


@pytest.mark.parametrize(
    ("throttled", "cursor", "expected"),
    [
        ({}, 0, [0, 1, 2, 3, 0, 1]),
        ({}, 2, [2, 3, 0, 1, 2, 3]),
        ({1: 100}, 0, [0, 2, 3, 0, 2, 3]),
        ({0: 100, 1: 100}, 0, [2, 3, 2, 3, 2, 3]),
        ({0: 100, 1: 100, 3: 100}, 3, [2, 2, 2, 2, 2, 2]),
        ({1: 3}, 0, [0, 2, 3, 0, 1, 2]),
    ],
)
def test_the_rotation_takes_the_first_partition_that_is_not_throttled(throttled, cursor, expected):
    assert expected == routes(producer_of(4, throttled, cursor=cursor), range(6))


def test_if_all_are_throttled_the_rotation_is_plain_and_messages_block_or_fail_there():
    producer = producer_of(3, {0: 50, 1: 200, 2: 50}, send_timeout_ms=100, cursor=2)

    assert [] == producer.send("a", 10)
    assert [] == producer.send("b", 10)
    assert ["10 fail 1 c ProducerThrottledError by 0: 0/100, left 190 at once"] == said(producer.send("c", 10))
    assert [] == producer.send("d", 10)
    assert ["50 write 0 b", "50 write 2 a", "50 write 2 d"] == said(producer.client.advance(50))


def test_a_message_with_a_partition_is_never_moved_and_moves_neither_rotation_nor_slice():
    producer = producer_of(3, {1: 50}, slice_ms=100)

    assert ["0 write 0 a"] == said(producer.send("a", 0))
    assert [] == producer.send("k", 1, partition=1)
    assert ["2 write 2 l"] == said(producer.send("l", 2, partition=2))
    assert ["3 write 0 b"] == said(producer.send("b", 3))
    assert ["50 write 1 k", "100 write 1 c"] == said(producer.send("c", 100))


def test_single_routing_stays_and_a_message_with_a_partition_goes_there():
    producer = producer_of(3, {2: 50}, routing="single", single_partition=2)

    assert [] == producer.send("a", 10)
    assert ["20 write 0 k"] == said(producer.send("k", 20, partition=0))
    assert ["50 write 2 a", "60 write 2 b"] == said(producer.send("b", 60))


@pytest.mark.parametrize(
    ("throttled", "times", "expected"),
    [
        ({}, [0, 49, 50, 99, 100], [0, 0, 1, 1, 2]),
        ({}, [0, 10, 500, 510], [0, 0, 1, 1]),
        ({0: 30, 1: 30, 2: 30}, [0, 10, 40, 60], [1, 2]),
    ],
)
def test_a_slice_uses_its_partition_again_until_it_is_over(throttled, times, expected):
    assert expected == routes(producer_of(3, throttled, slice_ms=50, send_timeout_ms=0), times)[-len(expected) :]


def test_a_slice_ends_when_its_partition_is_throttled():
    producer = producer_of(3, slice_ms=50)

    assert ["0 write 0 a"] == said(producer.send("a", 0))
    producer.client.throttle(frame(1, 0, 10), 5)
    assert ["6 write 1 b"] == said(producer.send("b", 6))
    assert ["40 write 1 c"] == said(producer.send("c", 40))
    assert ["56 write 2 d"] == said(producer.send("d", 56))


def test_a_partition_returns_to_the_rotation_at_the_end_of_its_window():
    producer = producer_of(2, {0: 100})

    assert [1, 1, 0, 1] == routes(producer, [50, 99, 100, 100])


def test_a_notice_does_not_count_as_throttled():
    producer = producer_of(2)
    producer.client.throttle(frame(1, 0, 0, reason=2), 0)

    assert [0, 1] == routes(producer, [1, 2])
    assert ["3 throttled []"] == said(producer.probe(3))


def test_a_closed_partition_is_not_throttled_and_what_is_sent_to_it_fails():
    producer = producer_of(2, {0: 100})
    producer.client.close(0, 10)

    assert ["20 throttled []"] == said(producer.probe(20))
    assert ["30 fail 0 a ProducerClosedError"] == said(producer.send("a", 30))
    assert ["40 write 1 b"] == said(producer.send("b", 40))


def test_it_is_throttled_when_any_partition_is():
    producer = producer_of(4, {1: 50, 3: 100})

    assert [(1, 3), (3,), ()] == [producer.throttled(at_ms) for at_ms in (49, 50, 100)]
    assert [True, True, False] == [producer.is_throttled(at_ms) for at_ms in (49, 50, 100)]
    assert ["60 throttled [3]"] == said(producer.probe(60))


def test_a_partition_that_does_not_exist_is_an_unknown_producer():
    producer = producer_of(2)

    assert ["0 rejected unknown_producer"] == said(producer.send("a", 0, partition=2))
    assert ["0 write 0 a"] == said(producer.send("a", 0))


def test_a_send_at_no_time_does_not_move_the_rotation():
    producer = producer_of(2)

    assert ["-1 rejected bad_time"] == said(producer.send("a", -1))
    assert [0, 1] == routes(producer, [0, 0])


def test_a_late_send_is_routed_at_the_clock():
    producer = producer_of(2, {0: 100})
    producer.client.advance(100)

    assert ["100 write 0 a"] == said(producer.send("a", 50))


def test_partitions_have_topics_of_their_own():
    producer = producer_of(3, {2: 10}, topic="orders")
    producer.client.advance(10)

    assert {"orders-partition-2"} == {name.rpartition("topic=")[2].rstrip("}") for name in producer.client.metrics()}


@pytest.mark.parametrize("config", [{"cursor": 2}, {"single_partition": 2}, {"partitions": 0}, {"producers": {}}])
def test_partitions_that_do_not_exist_are_refused(config):
    with pytest.raises(ProtocolSettingsError):
        PartitionedSettings.of({"partitions": 2, **config})
