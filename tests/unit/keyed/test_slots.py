"""Slots: names that Spark spreads evenly, and brokers that begin in different ones."""

import pytest

from headgate.keyed.slots import place_of, slot_keys


def test_names_are_distinct_and_the_same_in_every_process():
    keys = slot_keys(64)

    assert len(set(keys)) == 64
    assert keys[:3] == ("slot-0000-000345", "slot-0001-000247", "slot-0002-000194")


@pytest.mark.parametrize(
    "brokers",
    [
        [f"broker-{i}" for i in range(9, 17)],
        [f"pulsar-broker-{i}.pulsar-broker.ns.svc.cluster.local:8080" for i in range(8)],
        [f"10.0.0.{i}:6650" for i in range(97, 105)],
    ],
)
def test_brokers_that_are_numbered_have_slots_one_after_the_other(brokers):
    places = [place_of(broker) for broker in brokers]

    assert [place - places[0] for place in places] == list(range(8))


@pytest.mark.parametrize("broker", ["", "b", "ü", "9" * 5000])
def test_any_name_has_a_place(broker):
    assert place_of(broker) >= 0
