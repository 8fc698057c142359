"""Looks at what shares a resource's quota: topics of Pulsar, brokers of Kafka."""

from headgate.cluster.feed import Looked, of_resource
from headgate.conf.cluster import Client, Resource
from headgate.core.clusters.shared_quota import Amounts, TopicLook

LOOKED = [
    Looked("acme.1", "in", TopicLook(10, 20, Amounts(1, 100)), "a"),
    Looked("acme.2", "in", TopicLook(10, 20, Amounts(2, 200)), "a"),
    Looked("acme.3", "in", TopicLook(3, 20, Amounts(4, 400)), "a"),  # was elsewhere before
    Looked("acme.4", "in", TopicLook(11, 21, Amounts(8, 800)), "b"),
    Looked("other", "in", TopicLook(10, 20, Amounts(16, 1600)), "a"),
    Looked("acme.1", "out", TopicLook(10, 20, Amounts(32, 3200)), "a"),
    Looked("acme.1", "in", TopicLook(20, 30, Amounts(64, 6400)), "a"),
]


def test_a_broker_has_the_sum_of_a_clients_topics_in_each_look():
    assert list(of_resource(Client("user", "acme", {}, "acme."), "in", LOOKED)) == [
        ("a", TopicLook(10, 20, Amounts(7, 700))),
        ("b", TopicLook(11, 21, Amounts(8, 800))),
        ("a", TopicLook(20, 30, Amounts(64, 6400))),
    ]


def test_a_topic_has_looks_of_its_own():
    looks = [
        Looked(f"persistent://acme/a/{name}", "in", TopicLook(1, 2, Amounts(name, 0)), broker)
        for name, broker in ((1, "a"), (2, "a"), (3, "b"))
    ]
    assert [look.amounts.messages for _, look in of_resource(Resource("tenant", "acme", {}), "in", looks)] == [1, 2, 3]
