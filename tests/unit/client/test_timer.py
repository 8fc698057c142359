"""The timer acts when the earliest planned time has come."""

import time
from queue import SimpleQueue

import pytest

from headgate.client.clock import MonotonicClock
from headgate.client.timer import Timer
from unit.client.doubles import SOON_S, StandingClock, scene_of


@pytest.fixture
def clock():
    return StandingClock()


@pytest.fixture
def timer(clock):
    timer = Timer(clock, lambda: timer.acts.put(clock.ms))
    timer.acts = SimpleQueue()
    yield timer
    timer.stop(SOON_S)


def test_it_acts_at_the_planned_time_and_once(clock, timer):
    timer.plan(100)
    for ms in (50, 100, 150):
        clock.ring(ms)
        if ms >= 100:
            timer.plan(ms)
            assert timer.acts.get(timeout=SOON_S) == ms
    assert timer.acts.empty()


def test_an_earlier_plan_comes_first_and_takes_the_later_with_it(clock, timer):
    timer.plan(100)
    timer.plan(50)
    timer.plan(None)
    timer.plan(70)
    clock.ms = 50
    timer.plan(90)
    assert timer._due_ms in {50, None}
    clock.ring(50)
    assert timer.acts.get(timeout=SOON_S) == 50


def test_what_is_planned_while_it_acts_is_not_lost(clock):
    acts = SimpleQueue()

    def act():
        acts.put(clock.ms)
        if clock.ms < 3:
            clock.ms += 1
            timer.plan(clock.ms)

    timer = Timer(clock, act)
    timer.plan(0)
    assert [acts.get(timeout=SOON_S) for _ in range(4)] == [0, 1, 2, 3]
    timer.stop(SOON_S)


def test_after_stop_it_does_not_act(clock, timer):
    timer.stop(SOON_S)
    timer.plan(0)
    clock.ring(10)
    assert not timer._thread.is_alive()
    assert timer.acts.empty()


def test_it_may_stop_itself(clock):
    timer = Timer(clock, lambda: timer.stop(SOON_S))
    timer.plan(0)
    timer._thread.join(SOON_S)
    assert not timer._thread.is_alive()


def test_a_producer_lets_messages_out_without_being_asked():
    with scene_of() as scene:
        written = SimpleQueue()
        scene.library.on_write = written.put
        scene.producer.on_command(1, 0, 0, 50)
        scene.producer.send("a")
        scene.clock.ring(50)
        assert written.get(timeout=SOON_S) == "a"


def test_a_producer_whose_window_became_longer_is_let_out_at_its_end():
    with scene_of() as scene:
        written, acted = SimpleQueue(), SimpleQueue()
        scene.library.on_write = written.put
        advance = scene.producer._timer._act
        scene.producer._timer._act = lambda: (advance(), acted.put(scene.clock.ms))
        scene.producer.on_command(1, 0, 0, 50)
        scene.producer.send("a")
        scene.producer.on_command(2, 0, 0, 90)
        scene.clock.ring(50)
        assert acted.get(timeout=SOON_S) == 50
        assert written.empty()
        scene.clock.ring(90)
        assert written.get(timeout=SOON_S) == "a"


def test_the_monotonic_clock_begins_with_the_wall_clock_and_does_not_go_back():
    before_ms = time.time_ns() // 1_000_000
    clock = MonotonicClock()
    times = [clock.now_ms() for _ in range(1000)]
    assert before_ms <= times[0] <= time.time_ns() // 1_000_000 + 1
    assert times == sorted(times)


def test_the_monotonic_clock_waits_until_a_time_not_shorter():
    clock = MonotonicClock()
    acts = SimpleQueue()
    timer = Timer(clock, lambda: acts.put(clock.now_ms()))
    due_ms = clock.now_ms() + 20
    timer.plan(due_ms)
    assert acts.get(timeout=SOON_S) >= due_ms
    timer.plan(2**70)
    timer.stop(SOON_S)
