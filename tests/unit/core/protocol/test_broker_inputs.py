"""The order in which inputs are fed, and the counters that outlive connections (throttle-protocol 7.1, 14)."""

import random

from headgate.core.protocol import inputs
from headgate.core.protocol.counters import Counters, Increment
from headgate.core.protocol.inputs import place

IN_ORDER = [
    (inputs.Connect(None, True), "z"),
    (inputs.Close(1), "z"),
    (inputs.Connect(2, True), "z"),
    (inputs.Open(2, 1, "t"), "y"),
    (inputs.Open(2, 2, "t"), "x"),
    (inputs.Publish(2, 2), "a"),
    (inputs.Publish(2, 2), "b"),
    (inputs.Mark(2, 0, ()), "z"),
    (inputs.Mark(2, 1, [inputs.Trip(0, 2)]), "a"),
    (inputs.Mark(2, 1, [inputs.Trip(0, 1)]), "b"),
    (inputs.Receipt(2, None), "z"),
    (inputs.Receipt(2, 9), "z"),
    (inputs.Receipt(2, 10), "a"),
    (inputs.Quote(2, 1, 0, ()), "z"),
    (inputs.ConditionSet(2, 6, 8), "z"),
    (inputs.ConditionSet(2, 5, 9), "a"),
    (inputs.ConditionSet(2, 4, 1, producer=0), "a"),
    (inputs.Unmark(2, 1, 1, 1), "z"),
    (inputs.Unmark(2, 1, 0, 2), "a"),
    (inputs.ConditionClear(2, 6, 1), "z"),
    (inputs.CloseProducer(2, 1), "z"),
    (inputs.Close(2), "z"),
    (inputs.Connect(3, True), "a"),
]


def test_inputs_are_fed_by_time_rank_producer_number_and_event_id():
    shuffled = random.Random(1).sample(IN_ORDER, len(IN_ORDER))

    assert sorted(shuffled, key=lambda event: place(*event)) == IN_ORDER


def test_counters_are_written_with_their_labels_and_absent_at_0():
    counters = Counters()
    counters.add("b", (("k", "v"), ("l", "w")))
    counters.add("b", (("k", "v"), ("l", "w")), 2)
    counters.add("a", amount=5)
    counters.add("z", amount=0)

    assert counters.values() == {"a{}": 5, "b{k=v,l=w}": 3}


def test_counters_are_taken_once():
    counters = Counters()
    counters.add("b", (("k", "v"),))
    counters.add("a", amount=5)

    assert counters.taken() == [Increment("a", (), 5), Increment("b", (("k", "v"),), 1)]
    assert (counters.taken(), counters.values()) == ([], {})
