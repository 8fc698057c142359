"""Which producer obeys a command, and which connection its receipt goes to."""

from functools import partial

import pytest

from headgate.client.gate_commands import CommandRouter
from headgate.core.protocol.reasons import Reason
from headgate.errors import InvalidArgument
from headgate.wire import ThrottleProducer
from unit.client.doubles import Scene, StandingClock, ToldLibrary


class Obedient:
    """A producer that keeps its commands, and answers when it is told to."""

    def __init__(self, answer):
        self.told = []
        self.answer = answer

    def on_command(self, request_id, producer_id, reason, pause_ms):
        self.told.append((request_id, producer_id, reason, pause_ms))


class Router:
    """A router with producers 1 and 2, and the receipts of its connection."""

    def __init__(self):
        self.clock = StandingClock()
        self.router = CommandRouter(self.clock)
        self.producers = {number: self.router.add({number: f"t{number}"}, Obedient) for number in (1, 2)}
        self.receipts = []

    def command(self, request_id, producer_id=1, receipts=None, pause_ms=50):
        command = ThrottleProducer(request_id, producer_id, Reason.TopicProduceQuotaExceeded, pause_ms)
        self.router.route(command, (self.receipts if receipts is None else receipts).append)


def test_each_producer_hears_its_own_commands_numbered_without_gaps():
    scene = Router()
    for request_id, producer_id in ((1, 1), (2, 2), (3, 2), (4, 1)):
        scene.command(request_id, producer_id)
    reason = Reason.TopicProduceQuotaExceeded
    assert scene.producers[1].told == [(1, 1, reason, 50), (2, 1, reason, 50)]
    assert scene.producers[2].told == [(1, 2, reason, 50), (2, 2, reason, 50)]


def test_a_receipt_has_the_gates_own_id_and_comes_when_the_producer_answers():
    scene = Router()
    scene.command(5, 2)
    assert scene.receipts == []
    scene.producers[2].answer(1)
    assert scene.receipts == [5]


def test_a_copy_is_not_obeyed_again_and_answered():
    scene = Router()
    scene.command(1)
    scene.command(1)
    assert (len(scene.producers[1].told), scene.receipts) == (1, [1])


def test_a_command_for_nobody_is_answered():
    scene = Router()
    scene.command(1, producer_id=9)
    assert scene.receipts == [1]


def test_an_id_that_is_none_is_neither_obeyed_nor_answered():
    scene = Router()
    scene.command(0)
    assert (scene.producers[1].told, scene.receipts) == ([], [])


def test_ids_of_a_new_connection_are_new_and_answered_there():
    scene, again = Router(), []
    scene.command(1)
    scene.router.renumber()
    scene.command(1, receipts=again)
    scene.producers[1].answer(2)
    assert (scene.receipts, again) == ([], [1])
    scene.producers[1].answer(1)
    assert (scene.receipts, again) == ([1], [1])


def test_a_producer_obeys_what_is_in_force_when_it_comes_and_its_receipt_is_not_sent_again():
    scene = Router()
    for request_id, producer_id, pause_ms in ((1, 3, 100), (2, 4, 20), (3, 5, 500), (4, 3, 30)):
        scene.command(request_id, producer_id, pause_ms=pause_ms)
    scene.clock.ms = 20
    came = scene.router.add({3: "t3", 4: "t4"}, Obedient)
    came.answer(1)
    assert (came.told, scene.receipts) == ([(1, 3, Reason.TopicProduceQuotaExceeded, 80)], [1, 2, 3, 4])

    scene.command(5, producer_id=3)
    came.answer(2)
    assert (came.told[1:], scene.receipts[4:]) == ([(2, 3, Reason.TopicProduceQuotaExceeded, 50)], [5])


def test_a_command_that_comes_while_its_producer_is_made_is_answered_and_obeyed():
    scene = Router()

    def make(answer):
        scene.command(1, producer_id=3)
        return Obedient(answer)

    came = scene.router.add({3: "t3"}, make)
    assert (len(came.told), scene.receipts) == (1, [1])


def test_a_command_outlasts_a_try_to_make_its_producer_and_a_connection():
    scene = Router()
    scene.command(1, producer_id=3)
    with pytest.raises(TypeError):
        scene.router.add({3: "t3"}, lambda: None)
    scene.router.renumber()
    assert len(scene.router.add({3: "t3"}, Obedient).told) == 1


def test_a_number_that_was_never_told_is_answered_to_nobody():
    scene = Router()
    scene.producers[1].answer(1)
    assert scene.receipts == []


def test_an_id_that_is_taken_is_refused_and_takes_nothing():
    scene = Router()
    with pytest.raises(InvalidArgument, match=r"\[2\]"):
        scene.router.add({2: "t2", 3: "t3"}, Obedient)
    scene.router.add({3: "t3"}, Obedient)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_the_ids_of_a_producer_that_could_not_be_made_are_free_and_its_commands_answered(error):
    def fail(_answer):
        raise error

    scene = Router()
    with pytest.raises(error):
        scene.router.add({3: "t3", 4: "t4"}, fail)
    scene.command(1, producer_id=4)
    assert scene.receipts == [1]
    scene.router.add({3: "t3", 4: "t4"}, Obedient)


def test_what_no_producer_hears_of_is_counted_here_and_nothing_else():
    scene = Router()
    for request_id, producer_id in ((1, 1), (1, 1), (2, 9), (2, 9), (0, 1)):
        scene.command(request_id, producer_id)
    name, labels = "headgate.client.producer.throttle.command.count", "reason=TOPIC_PUBLISH_RATE"
    assert scene.router.metrics() == {
        f"{name}{{outcome=duplicate,{labels},topic=t1}}": 1,
        f"{name}{{outcome=unknown_producer,{labels},topic=}}": 1,
        f"{name}{{outcome=duplicate,{labels},topic=}}": 1,
        "headgate.input.rejected.count{error=bad_request_id}": 1,
    }


def test_the_ids_of_two_producers_in_turn_take_no_more_room_with_time():
    """A machine of its own for each producer would keep a gap a command if it heard the gate's ids."""
    router = CommandRouter(StandingClock())
    scenes = []

    def make(number, answer):
        scenes.append(Scene(ToldLibrary(), producers={number: "t"}))
        scenes[-1].producer._receipts = answer
        return scenes[-1].producer

    for number in (1, 2):
        router.add({number: "t"}, partial(make, number))
    receipts = []
    for request_id in range(1, 101):
        command = ThrottleProducer(request_id, 1 + request_id % 2, Reason.TopicProduceQuotaExceeded, 50)
        router.route(command, receipts.append)
    assert sorted(receipts) == list(range(1, 101))
    assert [scene.producer._machine.client._seen.spans for scene in scenes] == [1, 1]
    assert router._seen.spans == 1
    for scene in scenes:
        scene.producer.close(0)
