"""How many messages a library may have at once: what it is done with in ten seconds."""

import pytest

from headgate.client import in_library
from headgate.client.in_library import LEAST, STOPPED_MS, InLibrary
from unit.client.doubles import SOON_S, ToldLibrary, scene_of


def filled(one, now_ms=0):
    """How many more it takes."""
    taken = 0
    while one.take(now_ms):
        taken += 1
    return taken


def emptied(one, now_ms, count):
    for _ in range(count):
        one.drop(now_ms)


def grown(to):
    """One that has room for that many and has one."""
    one = InLibrary(0)
    while (room := filled(one)) < to // 2:
        emptied(one, 0, room)
    emptied(one, 0, room)
    one.take(0)
    return one


def test_room_is_again_once_half_of_it_is_free():
    one = InLibrary(0)
    assert filled(one) == LEAST
    assert one.is_full
    assert [number for number in range(1, LEAST + 1) if one.drop(0)] == [LEAST // 2]
    assert not one.is_full


def test_to_ask_whether_it_is_full_changes_nothing():
    one = InLibrary(0)
    for _ in range(LEAST):
        one.take(0)
    assert not one.is_full, "none was turned away yet"
    one.drop(0)
    assert one.take(0)


def test_room_doubles_whenever_it_was_full_and_so_many_were_done_with():
    """However long each of them took: the library may wait for company for a batch."""
    one = InLibrary(0)
    for number in range(8):
        assert filled(one, 3000 * number) == 2**number * LEAST
        emptied(one, 3000 * (number + 1), 2**number * LEAST)


def test_room_stays_where_it_was_not_full():
    one = InLibrary(0)
    for number in range(10 * LEAST):
        assert one.take(number)
        one.drop(number)
    assert filled(one, 10 * LEAST) == LEAST


def test_room_stays_where_it_takes_five_seconds_to_be_done_with_so_many():
    one = InLibrary(0)
    filled(one)
    emptied(one, STOPPED_MS - 1, LEAST - 1)
    one.drop(STOPPED_MS)
    assert filled(one, STOPPED_MS) == LEAST


def test_a_message_that_fails_ends_the_room():
    one = grown(8 * LEAST)
    one.drop(0, is_failed=True)
    assert filled(one) == LEAST


def test_an_outage_ends_the_room_for_what_comes_while_none_is_done_with():
    one = grown(8 * LEAST)
    for _ in range(2 * LEAST - 1):
        assert one.take(STOPPED_MS - 1)
    assert not one.take(STOPPED_MS)
    assert [number for number in range(1, 2 * LEAST + 1) if one.drop(STOPPED_MS)] == [3 * LEAST // 2]
    assert filled(one, STOPPED_MS) == LEAST


def test_a_library_that_had_nothing_to_do_has_not_stopped():
    one = grown(4 * LEAST)
    one.drop(0)
    assert one.take(10 * STOPPED_MS)
    one.drop(10 * STOPPED_MS + 1)
    assert filled(one, 10 * STOPPED_MS + 1) == 4 * LEAST


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
