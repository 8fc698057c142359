"""The counters that outlive connections (throttle-protocol 14)."""

from headgate.core.protocol.counters import Counters, Increment


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
