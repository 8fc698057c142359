"""How many messages a library may have at once: what it is done with in two seconds."""

import pytest

from headgate.client import in_library
from headgate.client.in_library import LEAST, InLibrary
from unit.client.doubles import SOON_S, ToldLibrary, scene_of


def filled(one):
    """How many more it takes."""
    taken = 0
    while not one.is_full:
        one.take()
        taken += 1
    return taken


def test_room_is_again_once_half_of_it_is_free():
    one = InLibrary(0)
    assert filled(one) == LEAST
    assert [number for number in range(1, LEAST + 1) if one.drop(0)] == [LEAST // 2]
    assert filled(one) == LEAST


@pytest.mark.parametrize(("done", "room"), [(LEAST, 2 * LEAST), (100 * LEAST, 200 * LEAST), (LEAST // 4, LEAST)])
def test_room_is_for_twice_the_rate_of_the_last_second(done, room):
    one = InLibrary(0)
    for number in range(done):
        one.take()
        one.drop(1000 * (number + 1) // done)
    assert filled(one) == room


def test_an_outage_leaves_no_rate():
    one = InLibrary(0)
    for number in range(10 * LEAST):
        one.take()
        one.drop(number // 10)
    assert filled(one) == LEAST, "a second is not over"
    one.drop(1000)
    assert filled(one) == 19 * LEAST + 3
    one.drop(100_000)
    left = 20 * LEAST + 1
    assert [number for number in range(1, left + 1) if one.drop(100_000)] == [left - LEAST // 2]
    assert filled(one) == LEAST


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(in_library, "LEAST", 4)


def test_a_producer_hands_over_no_more_than_there_is_room_for_and_drops_what_times_out_meanwhile(few):
    with scene_of(send_timeout_ms=100) as scene:
        futures = [scene.producer.send(number) for number in range(6)]
        assert scene.library.written == [0, 1, 2, 3]
        scene.at(50)
        late = [scene.producer.send(number) for number in range(6, 9)]
        scene.at(100)
        assert [scene.error(future).may_be_stored for future in futures] == [True] * 4 + [False] * 2
        scene.library.ack(0, 1)
        scene.producer._outbox.carry_out()
        scene.library.ack(2, 3, *scene.library.written[4:])
        scene.producer._outbox.carry_out()
        scene.library.ack(*scene.library.written[6:])
        assert scene.library.written == [0, 1, 2, 3, 6, 7, 8]
        assert [future.result(SOON_S) for future in late] == ["6 stored", "7 stored", "8 stored"]


def test_a_flush_has_a_full_library_send_what_waits_for_company(few):
    library = ToldLibrary()
    library.flush = lambda _: library.ack(*set(library.written) - acknowledged) or acknowledged.update(library.written)
    acknowledged = set()
    with scene_of(library) as scene:
        for number in range(20):
            scene.producer.send(number)
        assert library.written == [0, 1, 2, 3]
        assert scene.producer.flush(SOON_S)
    assert library.written == list(range(20))


def test_a_partition_without_room_holds_up_no_other(few):
    with scene_of(partitions=2, topic="t") as scene:
        for number in range(6):
            scene.producer.send(number, partition=0)
        scene.producer.send("other", partition=1)
        assert scene.library.written == [0, 1, 2, 3, "other"]
