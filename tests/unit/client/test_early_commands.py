"""What came before its producer and is in force is kept for it, as one command of each kind."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.client import early_commands
from headgate.client.early_commands import NOTICE_TTL_MS, EarlyCommands
from headgate.core.protocol.client.windows import Window, join
from headgate.core.protocol.reasons import Reason
from headgate.wire import ThrottleProducer

TOPIC, GROUP = Reason.TopicProduceQuotaExceeded, Reason.ResourceGroupProduceQuotaExceeded


def command(pause_ms, reason=TOPIC, producer_id=1):
    return ThrottleProducer(1, producer_id, reason, pause_ms)


def kept(*steps):
    """What keeps commands that came at their times in ms."""
    early = EarlyCommands()
    for at_ms, one in steps:
        early.keep(one, at_ms)
    return early


@pytest.mark.parametrize(
    ("steps", "at_ms", "left"),
    [
        ([(0, command(50))], 20, [command(30)]),
        ([(0, command(50))], 49, [command(1)]),
        ([(0, command(50))], 50, []),
        ([(0, command(2**63 - 1))], 1, [command(2**63 - 2)]),
        ([(0, command(50)), (10, command(20, GROUP))], 20, [command(30)]),
        ([(0, command(20)), (10, command(50, GROUP))], 20, [command(40, GROUP)]),
        ([(0, command(50, GROUP)), (10, command(40))], 20, [command(30)]),
        ([(0, command(50)), (60, command(20, GROUP))], 70, [command(10, GROUP)]),
        ([(0, command(0))], NOTICE_TTL_MS - 1, [command(0)]),
        ([(0, command(0))], NOTICE_TTL_MS, []),
        ([(0, command(0, GROUP)), (5, command(0))], 6, [command(0)]),
        ([(0, command(50)), (5, command(0, GROUP))], 6, [command(44), command(0, GROUP)]),
        ([(0, command(50, producer_id=2))], 0, []),
    ],
)
def test_what_is_left_of_the_latest_end_and_of_the_last_notice_is_told(steps, at_ms, left):
    assert kept(*steps).take(1, at_ms) == left


def test_what_was_taken_is_forgotten():
    early = kept((0, command(50)), (0, command(0)))
    early.take(1, 10)
    assert early.take(1, 10) == []


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9), st.sampled_from([TOPIC, GROUP])), min_size=1))
def test_a_producer_that_comes_late_has_the_window_of_one_that_heard_all(commands):
    commands.sort(key=lambda one: one[0])
    early = kept(*((at_ms, command(pause_ms, reason)) for at_ms, pause_ms, reason in commands))
    now_ms = commands[-1][0]
    window = join(*(Window(at_ms + pause_ms, reason) for at_ms, pause_ms, reason in commands))
    assert early.take(1, now_ms) == [command(window.end_ms - now_ms, window.reason)]


def test_no_more_than_that_many_are_kept_and_those_that_end_first_give_way(monkeypatch):
    monkeypatch.setattr(early_commands, "MOST_KEPT", 3)
    early = kept(*((0, command(pause_ms, producer_id=pause_ms)) for pause_ms in (40, 10, 50, 30, 20)))
    assert len(early._kept) == 3
    assert [number for number in range(10, 60, 10) if early.take(number, 5)] == [20, 40, 50]


def test_those_that_are_over_give_way_together(monkeypatch):
    monkeypatch.setattr(early_commands, "MOST_KEPT", 3)
    early = kept(*((0, command(pause_ms, producer_id=pause_ms)) for pause_ms in (40, 10, 20)))
    early.keep(command(50, producer_id=50), 20)
    assert len(early._kept) == 2
