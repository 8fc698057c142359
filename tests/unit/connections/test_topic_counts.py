"""Pauses and marks of connections, as counts of their topics by second."""

import pytest

from headgate.connections.kept import Followed
from headgate.connections.topic_counts import Place, TopicCounts
from headgate.core.connections.connection_reads import ConnectionReads
from headgate.throttle.schemas import CONNECTION_TOPICS

SECOND = 1_000_000_000


class Topics(dict):
    """A connection's topics, that count how often they were gone through."""

    times = 0

    def __iter__(self):
        self.times += 1
        return super().__iter__()


def connection(*topics):
    return Followed(ConnectionReads(), list(topics))


def told(counts):
    table = counts.table()
    assert table.schema == CONNECTION_TOPICS
    return [(row.pop("event_time").timestamp(), *row.values()) for row in table.to_pylist()]


def test_without_pauses_or_marks_there_are_no_rows():
    counts = TopicCounts()
    counts.pause(Place.of(0, "b", "c"), connection(), by_quotas=True)

    assert [] == told(TopicCounts()) == told(counts)


@pytest.mark.parametrize(
    ("at_ns", "second"), [(0, 0), (SECOND - 1, 0), (SECOND, 1), (-1, -1)], ids=["first", "last", "next", "before 1970"]
)
def test_a_row_is_of_the_second_in_which_it_happened(at_ns, second):
    counts = TopicCounts()
    counts.mark(Place.of(at_ns, "b", "c"), "t")

    assert [(second, "b", "c", "t", 0, 0, 1)] == told(counts)


def test_a_pause_counts_for_the_topics_that_were_there():
    counts, c = TopicCounts(), connection("v", "t")
    place = Place.of(5, "b", "c")
    counts.pause(place, c, by_quotas=True)
    c.topics["u"] = None
    counts.mark(place, "u")
    counts.pause(place, c, by_quotas=False)

    assert [(0, "b", "c", "t", 2, 1, 0), (0, "b", "c", "u", 1, 0, 1), (0, "b", "c", "v", 2, 1, 0)] == told(counts)


def test_connections_of_one_name_one_after_another_or_on_two_brokers_have_their_own_topics():
    counts = TopicCounts()
    for broker, topic in (("b", "t"), ("b", "u"), ("a", "t")):
        counts.pause(Place.of(5, broker, "c"), connection(topic), by_quotas=True)

    assert [("a", "t"), ("b", "t"), ("b", "u")] == [(row[1], row[3]) for row in told(counts)]


def test_topics_are_gone_through_once_however_many_pauses_there_were():
    counts, c = TopicCounts(), connection()
    c.topics = Topics.fromkeys(["t", "u"])
    for at_s in range(10):
        counts.pause(Place.of(at_s * SECOND, "b", "c"), c, by_quotas=True)
        counts.pause(Place.of(at_s * SECOND, "b", "c"), c, by_quotas=True)

    assert [(at_s, "b", "c", topic, 2, 2, 0) for at_s in range(10) for topic in ("t", "u")] == told(counts)
    assert 1 == c.topics.times
