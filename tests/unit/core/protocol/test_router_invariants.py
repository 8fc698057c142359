"""What holds of the router whatever comes: numbers, copies, releases, restarts (throttle-protocol 7.1, 7.2)."""

from collections import Counter
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from headgate.core.protocol.broker.inputs import Close, CloseProducer, Connect, Mark, Open, Trip, Unmark
from headgate.core.protocol.broker.router import Router
from unit.core.protocol.routes import BUCKETS

thorough = settings(max_examples=examples(150))
CONNECTIONS, TOPICS = ("a", "b", "c"), ("t", "u")
PLACES = [(connection, id_) for connection in CONNECTIONS for id_ in (1, 2)]
REASONS = st.sampled_from([(0,), (0,), (1,), (0, 1), (1, 0)])


@st.composite
def inputs(draw, kinds="mmmmmuuuuo-x"):
    """Anything that may come, in the order of time; connections a to c have two producers each."""
    at, made = 0, []
    for connection, id_ in PLACES:
        made += [(connection, Connect(0, supports=True)), (connection, Open(0, id_, TOPICS[id_ - 1]))]
    for kind in draw(st.lists(st.sampled_from(kinds), max_size=40)):
        at += draw(st.sampled_from([0, 0, 1, 5]))
        (connection, id_), n = draw(st.sampled_from(PLACES)), draw(st.integers(1, 6))
        if kind == "m":
            made.append((connection, Mark(at, id_, [Trip(reason, n, BUCKETS) for reason in draw(REASONS)])))
        elif kind == "u":
            made.append((connection, Unmark(at, id_, draw(st.integers(0, 1)), n)))
        elif kind == "o":
            made += [(connection, Connect(at, supports=True)), (connection, Open(at, id_, "t"))]
        else:
            made.append((connection, CloseProducer(at, id_) if kind == "-" else Close(at)))
    return made


def played(router, given_):
    return [routed for connection, one in given_ for routed in router.feed(connection, one)]


def numbers(router):
    """Of every open producer and reason: marks, unmarks."""
    return {
        (producer.connection, producer.id, reason): (count.marked, count.unmarked)
        for topic in router._topics.values()
        for producer in topic.producers.values()
        for reason, count in producer.counts.items()
    }


class Watched:
    """Fed what a machine is fed, it knows who is open, and counts marks and unmarks."""

    def __init__(self):
        self.open = {}
        self.marks = Counter()
        self.unmarks = Counter()

    def take(self, connection, one):
        if isinstance(one, Open) and (connection, one.producer) not in self.open:
            self.open[connection, one.producer] = one.topic
        if isinstance(one, CloseProducer):
            self._forget((connection, one.producer))
        if isinstance(one, Close):
            for key in [key for key in self.open if key[0] == connection]:
                self._forget(key)
        if isinstance(one, Mark):
            for trip in one.trips:
                self.marks[connection, one.producer, trip.reason] += 1
                assert trip.ordinal == self.marks[connection, one.producer, trip.reason]
        if isinstance(one, Unmark):
            key = (connection, one.producer, one.reason)
            self.unmarks[key] += 1
            assert one.ordinal == self.unmarks[key] <= self.marks[key]

    def _forget(self, key):
        self.open.pop(key, None)
        for counts in (self.marks, self.unmarks):
            for counted in [counted for counted in counts if counted[:2] == key]:
                del counts[counted]

    def others(self, connection, producer):
        key = (connection, producer)
        return {other for other, topic in self.open.items() if other != key and topic == self.open[key]}


@thorough
@given(inputs())
def test_ordinals_have_no_gaps_and_nobody_gets_a_mark_twice(given_):
    router, watched = Router(), Watched()
    for connection, one in given_:
        routed = router.feed(connection, one)
        marks = [(where, what) for where, what in routed if isinstance(what, Mark) and what is not one]
        if marks:
            told = {(where, what.producer) for where, what in marks if not what.trigger}
            assert (connection, one.producer) == (marks[0][0], marks[0][1].producer)
            assert watched.others(connection, one.producer) == told
            assert len(told) + 1 == len(marks)
            assert [True] == [what.trigger for _, what in marks if what.trigger]
        for where, what in routed:
            if what is not one or not isinstance(what, Mark | Unmark):
                watched.take(where, what)


@thorough
@given(inputs(), st.integers(0, 5))
def test_every_copy_is_released_once_every_mark_is(given_, late_ms):
    """In whatever order the releases come."""
    router = Router()
    played(router, given_)
    over_ms = given_[-1][1].at_ms + late_ms
    for connection, id_ in PLACES[::-1]:
        for reason in (0, 1):
            router.feed(connection, Unmark(over_ms, id_, reason, 6))

    assert all(marks == unmarks for marks, unmarks in numbers(router).values())


@thorough
@given(inputs())
def test_every_copy_is_released_once_those_that_tripped_are_gone(given_):
    router = Router()
    played(router, given_)
    waiting = [
        (producer.connection, producer.id)
        for topic in router._topics.values()
        for producer in topic.producers.values()
        if any(count.waits for count in producer.counts.values())
    ]
    for connection, id_ in waiting:
        router.feed(connection, CloseProducer(given_[-1][1].at_ms, id_))

    assert all(marks == unmarks for marks, unmarks in numbers(router).values())


@thorough
@given(inputs(), st.sets(st.integers(0, 60)))
def test_a_restart_anywhere_changes_nothing(given_, restarts):
    whole, restarted, actual = Router(), Router(), []
    expected = played(whole, given_)
    for place, one in enumerate(given_):
        if place in restarts:
            restarted = Router.from_state(restarted.state(), needs_buckets=True)
        actual += played(restarted, [one])

    assert expected == actual
    assert whole.state() == restarted.state()


@thorough
@given(inputs("mmmuu"), st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=8))
def test_marks_and_releases_that_come_again_change_nothing(given_, again):
    """At the time of the row that they come after."""
    repeated = list(given_)
    for place, later in again:
        connection, one = given_[place % len(given_)]
        where = min(len(repeated), repeated.index((connection, one)) + 1 + later)
        repeated.insert(where, (connection, replace(one, at_ms=repeated[where - 1][1].at_ms)))

    expected, actual = Router(), Router()
    marks = [one for one in played(expected, given_) if isinstance(one.given, Mark | Unmark)]
    assert marks == [one for one in played(actual, repeated) if isinstance(one.given, Mark | Unmark)]
    assert expected.state() == actual.state()
