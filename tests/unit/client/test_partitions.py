"""A wrapped producer with partitions (throttle-protocol 12)."""

from zlib import crc32

import pytest

from headgate.errors import InvalidArgument
from unit.client.doubles import ToldLibrary, scene_of


@pytest.fixture
def scene():
    with scene_of(ToldLibrary(partitions=4), partitions=4, topic="t") as scene:
        yield scene


def test_messages_without_a_key_pass_over_throttled_partitions(scene):
    for request_id, partition in enumerate((1, 3), 1):
        scene.producer.on_command(request_id, partition, 0, 50)
    for number in range(6):
        scene.producer.send(number)

    assert scene.library.writes == [(0, 0), (2, 1), (0, 2), (2, 3), (0, 4), (2, 5)]
    assert scene.producer.is_throttled()
    assert [scene.producer.is_throttled(partition) for partition in range(4)] == [False, True, False, True]


def test_messages_with_a_partition_or_a_key_wait_where_they_belong(scene):
    keyed = crc32(b"k") % 4
    scene.producer.on_command(1, keyed, 0, 50)
    scene.producer.send("key", key=b"k")
    scene.producer.send("partition", partition=keyed)
    assert scene.library.writes == []
    scene.at(50)
    assert scene.library.writes == [(keyed, "key"), (keyed, "partition")]


@pytest.mark.parametrize("partition", [4, -1, True, "0"])
def test_a_partition_that_is_not_there_is_refused(scene, partition):
    with pytest.raises(InvalidArgument, match=r"partition of t: got .*, allowed is 0 to 3"):
        scene.producer.send("a", partition=partition)
    assert scene.producer.flush(0)


def test_close_fails_what_waits_in_all_partitions(scene):
    scene.producer.on_command(1, 2, 0, 50)
    futures = [scene.producer.send("a", partition=2), scene.producer.send("b", partition=0)]
    scene.producer.close(0)
    assert [str(future.exception(0)).partition(":")[0] for future in futures] == ["t-partition-2", "t-partition-0"]
