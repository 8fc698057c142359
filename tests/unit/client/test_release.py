"""How fast what a window held back leaves when it is over: at most twice as fast as the producer wrote before."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headgate.client import ProducerThrottledError
from headgate.client.release import LEAST_PER_S, SECOND_MS, Release
from unit.client.doubles import SOON_S, ToldLibrary, scene_of


def written(release, now_ms, most=10**6):
    """How many writes may be made at once."""
    for number in range(most):
        if release.due_ms(now_ms) > now_ms:
            return number
        release.wrote(now_ms)
    return most


def steady(release, from_ms, to_ms, per_s):
    """Write steadily. Nothing holds the producer back."""
    for number in range((to_ms - from_ms) * per_s // 1000):
        at_ms = from_ms + number * 1000 // per_s
        assert release.due_ms(at_ms) <= at_ms
        release.wrote(at_ms)


def test_nothing_is_written_in_a_window_and_all_of_it_where_there_was_none():
    release = Release(0)
    assert written(release, 0, most=1000) == 1000
    release.hold(300, 100)
    release.hold(500, 200)
    assert (written(release, 499), release.due_ms(499)) == (0, 500)


@pytest.mark.parametrize(("per_s", "first"), [(100, 200), (1000, 2000), (1, LEAST_PER_S)])
def test_twice_the_rate_leaves_in_the_first_second_and_twice_as_much_in_each_that_follows(per_s, first):
    release = Release(0)
    steady(release, 0, 8000, per_s)
    release.hold(8000, 8000 - 1)
    assert (written(release, 8000), release.due_ms(8000)) == (first, 9000)
    assert (written(release, 8999), written(release, 9000)) == (0, 2 * first)
    assert written(release, 10_000) == 4 * first


def test_pauses_count_as_time():
    release = Release(0)
    steady(release, 0, 1000, 400)
    release.hold(4000, 1000)
    assert written(release, 4000) == 200


def test_what_was_written_since_the_last_release_counts_once_a_second_is_over():
    release = Release(0)
    steady(release, 0, 2000, 500)
    release.hold(2000, 1999)
    assert written(release, 2000) == 1000
    release.hold(2900, 2001)
    assert (written(release, 2900), release.due_ms(2900)) == (0, 3000), "the second is used up"
    assert written(release, 3000) == 2000, "1000 in a second"
    release.hold(23_000, 3001)
    assert written(release, 23_000) == 200, "2000 in 20 s"


def test_what_a_window_leaves_of_a_second_may_be_written_and_then_what_the_rate_allows():
    release = Release(0)
    steady(release, 0, 1000, 100)
    release.hold(1000, 999)
    assert written(release, 1000, most=150) == 150
    release.hold(1800, 1100)
    assert (written(release, 1900), release.due_ms(1900)) == (50, 2000)
    assert (written(release, 2000), written(release, 3000)) == (400, 800), "200 in a second, and twice as many"


@given(
    per_s=st.integers(0, 100),
    steps=st.lists(st.tuples(st.integers(0, 1500), st.integers(0, 1500)), max_size=10),
)
@example(per_s=10, steps=[(0, 50)] * 10)
def test_no_second_has_more_than_twice_what_one_before_had_whatever_the_windows(per_s, steps):
    """Of a producer with a backlog; each step is a wait and a window."""
    release, at_ms, seconds, began_ms = Release(0), 2500, [], -SECOND_MS
    steady(release, 0, at_ms, per_s)
    for wait_ms, window_ms in [(0, 1), *steps]:
        end_ms = at_ms + wait_ms + window_ms
        release.hold(end_ms, at_ms + wait_ms)
        for looked_ms in (end_ms, end_ms + 300):
            if count := written(release, looked_ms):
                if looked_ms >= began_ms + SECOND_MS:
                    began_ms = looked_ms
                    seconds.append(0)
                seconds[-1] += count
        at_ms = end_ms + 300
    for number, count in enumerate(seconds):
        assert count <= max(LEAST_PER_S, 2 * max([per_s, *seconds[:number]]))


def test_a_second_in_which_less_is_written_than_might_be_ends_it():
    release = Release(0)
    release.hold(100, 0)
    assert written(release, 100, most=LEAST_PER_S - 1) == LEAST_PER_S - 1
    assert written(release, 1100, most=1000) == 1000


def test_a_second_begins_with_its_first_write():
    """A library that was held up meanwhile lets nothing out at once."""
    release = Release(0)
    steady(release, 0, 1000, 100)
    release.hold(2000, 1000)
    assert (written(release, 3500), release.due_ms(4499)) == (100, 4500)
    assert (written(release, 9000), release.due_ms(9999)) == (200, 10_000)


def test_what_is_older_than_ten_seconds_does_not_count():
    release = Release(0)
    steady(release, 0, 10_000, 1000)
    steady(release, 10_000, 20_001, 100)
    release.hold(20_000, 20_000 - 1)
    assert written(release, 20_000) == 200


def test_a_producer_lets_a_backlog_out_in_steps():
    with scene_of(ToldLibrary(acknowledges=True), send_timeout_ms=0) as scene:
        scene.producer.on_command(1, 0, 0, 500)
        for number in range(3 * LEAST_PER_S + 1):
            scene.producer.send(number)
        scene.at(500)
        assert scene.library.written == list(range(LEAST_PER_S))
        scene.at(1499)
        assert len(scene.library.written) == LEAST_PER_S
        scene.at(1500)
        assert scene.library.written == list(range(3 * LEAST_PER_S))
        scene.clock.ring(2500)
        assert scene.producer.flush(SOON_S)
        assert len(scene.library.written) == 3 * LEAST_PER_S + 1


def test_the_wait_for_the_next_second_is_told_once_without_windows():
    release = Release(0)
    steady(release, 0, 1000, 10)
    release.hold(1000, 999)
    assert (release.waited_ms(1500), written(release, 1600, LEAST_PER_S), release.waited_ms(1700)) == (0, 20, 100)
    assert (release.waited_ms(1700), release.waited_ms(9000)) == (0, 900)
    assert written(release, 9000) == 2 * LEAST_PER_S
    release.hold(9900, 9300)
    assert (release.waited_ms(9600), release.waited_ms(9900)) == (300, 0)


def test_the_wait_for_the_next_second_goes_on_after_a_window_within_it():
    release = Release(0)
    steady(release, 0, 1000, 10)
    release.hold(1000, 999)
    assert written(release, 1000) == LEAST_PER_S
    release.hold(1500, 1300)
    release.hold(1600, 1400)
    assert (release.waited_ms(1550), release.waited_ms(1700), release.waited_ms(2500)) == (300, 100, 300)


def test_what_waits_for_its_second_until_it_times_out_was_throttled():
    with scene_of(ToldLibrary(acknowledges=True), send_timeout_ms=3000) as scene:
        scene.producer.on_command(1, 0, 0, 1000)
        futures = [scene.producer.send(number) for number in range(200)]
        for ms in (1000, 2000, 3000):
            scene.at(ms)
        error = scene.error(futures[-1])
        assert (type(error), error.throttled_ms, error.may_be_stored) == (ProducerThrottledError, 3000, False)
        assert any("ProducerThrottledError" in name for name in scene.producer.metrics())


def test_a_partition_that_is_let_out_in_steps_holds_up_no_other():
    with scene_of(partitions=2, topic="t") as scene:
        for request_id, partition in enumerate((0, 1), 1):
            scene.producer.on_command(request_id, partition, 0, 500)
        for number in range(2 * LEAST_PER_S):
            scene.producer.send(number, partition=0)
        scene.producer.send("other", partition=1)
        scene.at(500)
        assert "other" in scene.library.written
        assert len(scene.library.written) == LEAST_PER_S + 1
